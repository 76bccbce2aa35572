/**
 * One task for each combination of values: what `for` stands for.
 *
 * The first variable turns slowest, as a person would write the list by hand. A task is named by its values,
 * `test[18,linux]`. Its values are in the environment of its command, and `${NAME}` stands for them wherever a task
 * has text that no shell reads: needs, locks, cwd, prompts, words.
 */

import type { Note } from "./problem.ts";
import { TASKS_MAX } from "./schema.ts";

export type Values = Readonly<Record<string, string>>;
export type Combination = { readonly name: string; readonly values: Values };

export function combinations(
  definition: string,
  given: Readonly<Record<string, readonly unknown[]>>,
  note: Note,
): Combination[] {
  const variables = Object.entries(given).map(([variable, list]) => [variable, list.map(String)] as const);
  const at = ["tasks", definition, "for"];
  if (variables.length === 0) return [{ name: definition, values: {} }];
  const count = variables.reduce((product, [, list]) => product * list.length, 1);
  if (count > TASKS_MAX) {
    note(`${definition} stands for ${count} tasks; a plan has at most ${TASKS_MAX}`, at, "key");
    return [];
  }
  for (const [variable, list] of variables) {
    const seen = new Set<string>();
    for (const [index, text] of list.entries()) {
      if (seen.has(text))
        note(`${definition}.for.${variable} has ${JSON.stringify(text)} twice`, [...at, variable, index]);
      seen.add(text);
    }
  }
  const all = variables.reduce<Values[]>(
    (rows, [variable, list]) =>
      rows.flatMap((row) => [...new Set(list)].map((value) => ({ ...row, [variable]: value }))),
    [{}],
  );
  return all.map((values) => ({ name: `${definition}[${Object.values(values).join(",")}]`, values }));
}

/** The text with `${NAME}` replaced where NAME is one of the values; anything else stays as it is. */
export function filledIn(text: string, values: Values): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (whole, name: string) =>
    Object.hasOwn(values, name) ? (values[name] ?? "") : whole,
  );
}
