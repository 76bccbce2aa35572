/**
 * What a run says of the log of a task that failed on a server.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientError } from "../../client/index.ts";
import { leavingsOnServer } from "./leavings.ts";
import type { Link } from "./link.ts";
import { newRow } from "./state.ts";

const row = newRow({ id: "t", name: "t" });
const ANSWERS: readonly [name: string, answer: unknown, expected: string[] | null][] = [
  ["has its last lines", { text: "2026Z out  one\n2026Z err  two" }, ["one", "two"]],
  ["is none where the worker keeps none", new ClientError("not_found", "keeps no logs"), null],
  ["may be there later where the worker is silent", new ClientError("worker_silent", ""), []],
];
for (const [name, answer, expected] of ANSWERS)
  test(`the log of a failed task on a server ${name}`, async () => {
    const call = async (): Promise<unknown> => {
      if (answer instanceof Error) throw answer;
      return answer;
    };
    assert.deepEqual(await leavingsOnServer({ call } as unknown as Link, "plan").tail(row, 5), expected);
  });
