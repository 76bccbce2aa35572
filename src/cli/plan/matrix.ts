/**
 * One task for each combination of values: what `for` stands for.
 *
 * The first variable turns slowest, as a person would write the list by hand. A task is named by its values,
 * `test[18,linux]`. Its values are in the environment of its command, and `${NAME}` stands for them wherever a task
 * has text that no shell reads: needs, locks, cwd, prompts, words.
 */
import type { Found } from "./check.ts";
import { TASKS_MAX } from "./schema.ts";
import type { Path } from "./source.ts";

export type Values = Readonly<Record<string, string>>;
export type Combination = { readonly name: string; readonly values: Values };

export function combinations(
  definition: string,
  given: Readonly<Record<string, readonly unknown[]>>,
  note: (message: string, path: Path, spot?: Found["spot"]) => void,
): Combination[] {
  const variables = Object.entries(given);
  if (variables.length === 0) return [{ name: definition, values: {} }];
  const count = variables.reduce((product, [, list]) => product * list.length, 1);
  if (count > TASKS_MAX) {
    note(
      `${definition} stands for ${count} tasks; a plan has at most ${TASKS_MAX}`,
      ["tasks", definition, "for"],
      "key",
    );
    return [];
  }
  for (const [variable, list] of variables) noteRepeats(definition, variable, list, note);
  const all = variables.reduce<Values[]>(
    (rows, [variable, list]) =>
      rows.flatMap((row) => [...new Set(list.map(String))].map((value) => ({ ...row, [variable]: value }))),
    [{}],
  );
  return all.map((values) => ({ name: `${definition}[${Object.values(values).join(",")}]`, values }));
}

function noteRepeats(
  definition: string,
  variable: string,
  list: readonly unknown[],
  note: (message: string, path: Path) => void,
): void {
  const texts = list.map(String);
  for (const [index, text] of texts.entries())
    if (texts.indexOf(text) < index)
      note(`${definition}.for.${variable} has ${JSON.stringify(text)} twice`, [
        "tasks",
        definition,
        "for",
        variable,
        index,
      ]);
}

/** The text with `${NAME}` replaced where NAME is one of the values; anything else stays as it is. */
export function filledIn(text: string, values: Values): string {
  return text.replaceAll(/\$\{(\w+)\}/g, (whole, name: string) =>
    Object.hasOwn(values, name) ? (values[name] ?? "") : whole,
  );
}
