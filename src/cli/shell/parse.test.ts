/**
 * The arguments of a verb are read twice in the program, without commander and with it. Both must make the same of the
 * same words.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LOADED_VERBS } from "../../../test/kits/cli/loaded-verbs.ts";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { holdsInTime } from "../../../test/kits/laws/cases.ts";
import { createProgram } from "../program.ts";
import { VERBS } from "../verbs.ts";
import { parseCall } from "./parse.ts";
import { CliProblem } from "./problem.ts";
import { GLOBAL_FLAGS, type Verb } from "./verb.ts";

type Callable = { readonly path: readonly string[]; readonly verb: Verb<never> };
const callable = (verb: Verb<never>, before: readonly string[]): Callable[] => {
  const path = [...before, verb.name];
  const own = verb.run === undefined ? [] : [{ path, verb }];
  return [...own, ...(verb.verbs ?? []).flatMap((inner) => callable(inner, path))];
};
const CALLABLE = LOADED_VERBS.flatMap((verb) => callable(verb, []));

/** Words that are right for many flags, and some that are right for none. */
const VALUES = ["1", "5", "20s", "100MiB", "a", "a,b", "none", "all", "1h", "", "-1", "-", "--", "a=b", "set", "list"];

const flagWords = (verb: Verb<never>): fc.Arbitrary<readonly string[]> => {
  const flags = [...GLOBAL_FLAGS, ...(verb.flags ?? [])];
  const chosen = flags.flatMap(({ choices }) => choices ?? []);
  return fc
    .record({
      flag: fc.constantFrom(...flags),
      value: fc.constantFrom(...VALUES, ...chosen),
      form: fc.constantFrom("long", "equals", "short", "together"),
    })
    .map(({ flag: { flags: text }, value, form }) => {
      const [, short, long = ""] = /^(?:(-\w), )?(--[\w-]+)/.exec(text) ?? [];
      const name = form === "short" || form === "together" ? (short ?? long) : long;
      if (!text.endsWith(">")) return [name];
      if (form === "equals") return [`${name}=${value}`];
      return form === "together" && short !== undefined ? [`${short}${value}`] : [name, value];
    });
};

const calls = fc
  .constantFrom(...CALLABLE)
  .chain(({ path, verb }) =>
    fc
      .array(
        fc.oneof(
          { weight: 4, arbitrary: flagWords(verb) },
          { weight: 3, arbitrary: fc.constantFrom(...VALUES).map((word) => [word]) },
          { weight: 1, arbitrary: fc.constantFrom(["--nosuch"], ["-h"], ["--json", "--json"]) },
        ),
        { maxLength: 4 },
      )
      .map((words) => [...path, ...words.flat()]),
  );

test("what is read without commander is what commander reads", async () => {
  let count = 0;
  await holdsInTime(5000, calls, async (words) => {
    const own = await parseCall(words, VERBS);
    if (own === null) return;
    count += 1;
    const read = await createProgram(testTerminal(), VERBS)
      .read(words)
      .catch((error: unknown) => {
        assert.ok(error instanceof CliProblem, String(error));
        return assert.fail(`commander: ${error.message}`);
      });
    assert.deepEqual({ ...read, flags: { ...read?.flags } }, { ...own, flags: { color: true, ...own.flags } });
  });
  assert.ok(count > 5, `${count} cases were read without commander`);
});

const simple: [words: string, args: string[], flags: Record<string, unknown>][] = [
  ["tasks", [], {}],
  [
    "tasks --project web --state queued,running -n 5 --json",
    [],
    { state: ["queued", "running"], limit: 5, json: true },
  ],
  ["task tsk_1 -wl", ["tsk_1"], { watch: true, logs: true }],
  ["serve --no-worker --no-color", [], { worker: false, color: false }],
  ["projects set web --max-concurrent=3", ["web"], { maxConcurrent: 3 }],
  ["cancel a b c", ["a", "b", "c"], {}],
];
for (const [words, args, flags] of simple)
  test(`without commander: drover ${words}`, async () => {
    const read = await parseCall(words.split(" "), VERBS);
    assert.deepEqual(read?.args, args);
    for (const [key, value] of Object.entries(flags)) assert.deepEqual(read?.flags[key], value, key);
  });

for (const words of [
  "tasks --help",
  "--json tasks",
  "tasks -V",
  "tasks extra",
  "task",
  "submit a --priority -1",
  "nosuch",
])
  test(`left to commander: drover ${words}`, async () => assert.equal(await parseCall(words.split(" "), VERBS), null));
