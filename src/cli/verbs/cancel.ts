/**
 * `drover cancel` and `drover retry`: end tasks, or run them again, by id or all that a filter names.
 *
 * Several ids are several calls: one that is refused does not keep the others from theirs, and the exit code is that of
 * the first refusal. With --json there is one line for each, as the API answers or refuses it.
 */

import { ClientError } from "../../client/index.ts";
import type { CancelFilter } from "../../protocol/index.ts";

import { clientFor, clientProblem } from "../shell/connection.ts";
import { reportProblem } from "../shell/output.ts";
import { CliProblem, EXIT, type ExitCode, type Problem, usageProblem } from "../shell/problem.ts";
import { plain } from "../shell/text.ts";
import { type Call, each, given, type VerbBody } from "../shell/verb.ts";
import { named, namedLive } from "./named.ts";

type Flags = { readonly where?: readonly string[]; readonly reason?: string };

/** One call of the server cancels at most 10 000; so many calls, and there is an end even if more keep coming. */
const ROUNDS_MAX = 1000;
const KEYS: ReadonlySet<string> = new Set([
  "agentId",
  "project",
  "type",
  "state",
  "label",
  "group",
  "parent",
  "root",
] satisfies (keyof CancelFilter)[]);

export const cancelVerb: VerbBody<Flags> = {
  about: "Cancel tasks. They are cancelled at once; what runs is stopped.",
  takes: [{ name: "[ids...]", about: "the tasks, by id or as PLAN/TASK" }],
  flags: [
    {
      flags: "--where <filter>",
      about:
        "project=, agent=, type=, label=KEY=VALUE, group=, parent=, root= (a task and all below it; also PLAN/TASK) " +
        "or state= (several with commas); given again; or all",
      read: each,
    },
    { flags: "--reason <text>", about: "for people; it becomes the task's error (not with --where)" },
  ],
  examples: [
    ["drover cancel tsk_12 tsk_13 --reason 'wrong branch'", "two of them"],
    ["drover cancel --where project=web --where state=waiting,queued", "whatever has not begun, of one project"],
    ["drover cancel --where label=run=7", "whatever has this label"],
    ["drover cancel --where root=plan-7", "a task and all below it"],
    ["drover cancel --where all", "everything"],
  ],
  run: async (call) => {
    const { args, flags } = call;
    const { where, reason } = flags;
    if ((args.length === 0) === (where === undefined))
      throw usageProblem("name the tasks, or say --where, and not both", "drover help cancel has examples");
    if (where !== undefined) return cancelAll(call, filterFrom(where));
    return forEachId(call, "cancelled", async (word) => {
      const { calls, id } = await named(call, word);
      return await calls.cancel(id, given({ reason }));
    });
  },
};

export const retryVerb: VerbBody<Record<never, never>> = {
  about:
    "Run failed, cancelled or skipped tasks again, as soon as their dependencies allow: notBefore is not waited for " +
    "again, and a deadline that has passed no longer holds.",
  takes: [{ name: "<ids...>", about: "the tasks, by id or as PLAN/TASK" }],
  examples: [
    ["drover retry tsk_12", "once more, as a new iteration"],
    [
      "drover retry $(drover tasks --state failed --all --json | jq -r '.tasks[].taskId')",
      "what failed and is still kept (failedTtl)",
    ],
  ],
  run: (call) =>
    forEachId(call, "submitted again", async (word) => {
      const { calls, id } = await named(call, word);
      return await calls.retry(id);
    }),
};

export async function forEachId(
  { args, output, terminal }: Call<unknown>,
  done: string,
  act: (id: string) => Promise<unknown>,
): Promise<ExitCode> {
  let code: ExitCode = EXIT.ok;
  for (const id of args) {
    try {
      const answer = await act(id);
      output.line(answer, () => `${plain(id)} ${done}`);
    } catch (error) {
      const problem = refusalIn(error);
      reportProblem(problem, terminal, output.isJson);
      if (code === EXIT.ok) code = problem.exit;
    }
  }
  return code;
}

/** All else ends the command. */
function refusalIn(error: unknown): Problem {
  if (error instanceof CliProblem && error.problem.exit === EXIT.refused) return error.problem;
  if (error instanceof ClientError && error.status !== 0) return clientProblem(error);
  throw error;
}

function filterFrom(where: readonly string[]): CancelFilter {
  if (where.length === 1 && where[0] === "all") return { all: true };
  const entries = where.map((text): [string, unknown] => {
    const at = text.indexOf("=");
    const key = text
      .slice(0, at)
      .trim()
      .replace(/^agent$/, "agentId");
    const value = text.slice(at + 1).trim();
    if (at < 0 || !KEYS.has(key) || value === "") {
      const hint = `project=NAME, agent=NAME, type=NAME, label=KEY=VALUE, root=ID, state=queued,running, or all, alone`;
      throw usageProblem(`--where "${text}" is no filter`, hint);
    }
    return [key, key === "state" ? value.split(",").map((state) => state.trim()) : value];
  });
  const labels = entries.filter(([key]) => key === "label").map(([, value]) => value);
  const keys = entries.map(([key]) => key).filter((key) => key !== "label");
  const twice = keys.find((key, at) => keys.indexOf(key) !== at);
  if (twice !== undefined)
    throw usageProblem(`--where names ${twice} twice`, "several states: --where state=queued,running");
  return { ...Object.fromEntries(entries), ...(labels.length < 2 ? {} : { label: labels }) } as CancelFilter;
}

async function cancelAll(call: Call<Flags>, { root, parent, ...others }: CancelFilter): Promise<ExitCode> {
  const { output } = call;
  const top = root === undefined ? null : await namedLive(call, root);
  const above = parent === undefined ? null : await namedLive(call, parent);
  const { calls } = top ?? above ?? { calls: clientFor(call) };
  const filter = { ...others, ...given({ root: top?.id, parent: above?.id }) };
  let sum = 0;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const { count } = await calls.cancelWhere(filter);
    sum += count;
    if (count === 0) break;
  }
  // Of one that is not there nothing is below either, and its name may be wrong: this says so.
  const id = top?.id ?? above?.id;
  if (sum === 0 && id !== undefined) await calls.task(id);
  output.answer({ status: "cancelled", count: sum }, () => `${sum} ${sum === 1 ? "task" : "tasks"} cancelled\n`);
  return EXIT.ok;
}
