/**
 * `drover plans` and `drover plan NAME`: the plans on a server, and one of them, watched as its run would be.
 */
import { addressFromEnv, type Client, ClientError } from "../../client/index.ts";
import type { PlanPage, PlanState, PlanSummary, PlanView } from "../../protocol/index.ts";
import type { ServerChoice } from "../run/find-server.ts";
import { reasonIn, roundOf } from "../run/rows.ts";
import { ON_INTERRUPT } from "../run/verb.ts";
import { answering, clientProblem, idOf } from "../shell/connection.ts";
import { listOf } from "../shell/meant.ts";
import type { Output } from "../shell/output.ts";
import { asTyped, CliProblem, EXIT, type ExitCode, usageProblem } from "../shell/problem.ts";
import { asWord, plain, type Tint } from "../shell/text.ts";
import type { Call, VerbBody } from "../shell/verb.ts";
import { tintOf, tokensOf, usageOf } from "../show/task-view.ts";
import { age, cost, count, lasted } from "../show/time.ts";
import { PAGE_FLAGS, type PageFlags, readPages } from "./pages.ts";

const TINTS: Readonly<Record<PlanState, Tint>> = {
  running: "cyan",
  paused: "yellow",
  done: "green",
  failed: "red",
  cancelled: "yellow",
};

export const plansVerb: VerbBody<PageFlags> = {
  about:
    "List the plans on a server, the one that was put last first. A plan that has ended is listed until " +
    "scheduler.planTtl after its end. Plans that run alone are not on a server: drover run goes on with them.",
  flags: PAGE_FLAGS,
  examples: [
    ["drover plans", "what runs, what has run, and how it went"],
    ["drover plans --all --json", "every plan, for a program"],
  ],
  run: answering(
    (client, call) => readPlans(client, call.flags).catch(withRunsAlone(call)),
    ({ plans, count: found, nextCursor }, output) => {
      if (found === 0) return "No plans here. drover run FILE puts one.\n";
      const more = nextCursor === undefined ? "" : `\nThere are more: --cursor ${nextCursor}, or --all.\n`;
      return planTable(plans, output) + more;
    },
  ),
};

/** Where nobody has named a server and none is there, plans have run without one. */
const withRunsAlone =
  ({ flags, terminal }: Call<PageFlags>) =>
  async (error: unknown): Promise<never> => {
    const isNamed = flags.url !== undefined || addressFromEnv(terminal.env).url !== undefined;
    if (isNamed || !(error instanceof ClientError) || error.code !== "network") throw error;
    const { runsHere } = await import("../run/named-task.ts");
    const runs = runsHere(terminal.cwd);
    if (runs.length === 0) throw error;
    const hint = `these have run alone: ${listOf(runs)}; drover plan NAME shows one of them`;
    throw new CliProblem({ ...clientProblem(error), hint });
  };

async function readPlans(client: Client, flags: PageFlags): Promise<PlanPage> {
  const { items, ...more } = await readPages(
    flags,
    (query) => client.plans.list(query),
    ({ plans }) => plans,
  );
  return { plans: items, count: items.length, ...more };
}

const sumOf = ({ counts }: PlanSummary, ...states: readonly string[]): number =>
  states.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
const some = (number: number): string => (number === 0 ? "" : count(number));

function planTable(plans: readonly PlanSummary[], output: Output): string {
  const now = output.now();
  return output.table(plans, [
    { title: "PLAN", of: ({ id }) => id, stays: true },
    { title: "STATE", of: ({ state }) => state, tint: ({ state }) => TINTS[state], stays: true },
    { title: "DONE", of: (plan) => `${sumOf(plan, "done")}/${plan.total}`, align: "right", stays: true },
    { title: "RUNNING", of: (plan) => some(sumOf(plan, "assigned", "running")), align: "right" },
    { title: "FAILED", of: (plan) => some(sumOf(plan, "failed")), align: "right", tint: () => "red" },
    { title: "PARKED", of: (plan) => some(sumOf(plan, "parked")), align: "right", tint: () => "yellow" },
    { title: "TOKENS", of: ({ usage }) => tokensOf(usage), align: "right" },
    { title: "COST", of: ({ usage }) => cost(usage?.cost), align: "right" },
    { title: "AGE", of: ({ putAt }) => lasted(putAt, undefined, now), align: "right" },
    {
      title: "LASTED",
      of: ({ putAt, endedAt }) => (endedAt === undefined ? "" : lasted(putAt, endedAt, now)),
      align: "right",
    },
    { title: "PROJECT", of: ({ project }) => (project === "default" ? "" : project), shrinks: true },
  ]);
}

// -------------------------------------------------------------------- one plan

type PlanFlags = {
  readonly cancel?: boolean;
  readonly retry?: boolean;
  readonly pause?: boolean;
  readonly resume?: boolean;
  readonly remove?: boolean;
  readonly follow?: boolean;
  readonly output?: boolean;
  readonly onInterrupt?: "detach" | "cancel";
};
const ACTS = ["cancel", "retry", "pause", "resume", "remove"] as const;

export const planVerb: VerbBody<PlanFlags> = {
  about:
    "Attach to a plan on a server: what happens to its tasks, live, until all have ended; then the summary, as " +
    "drover run shows it, with the same exit codes. Ctrl-C ends the watching and not the plan, unless it is " +
    "cancelled. Of a plan that has run alone its log tells how it ended, or stands.",
  takes: [{ name: "<name>", about: "the plan" }],
  flags: [
    { flags: "--no-follow", about: "how it stands now, task by task, and no more" },
    { flags: "-o, --output", about: "print every line the commands write, behind the name of the task" },
    ON_INTERRUPT,
    { flags: "--cancel", about: "cancel what has not ended" },
    { flags: "--retry", about: "run what failed, was cancelled or skipped again, and attach" },
    { flags: "--pause", about: "start nothing more of it; what runs may end" },
    { flags: "--resume", about: "take a pause back, and attach" },
    { flags: "--remove", about: "forget it; only what has ended" },
  ],
  examples: [
    ["drover plan release", "attach to it, from any terminal"],
    ["drover plan release --no-follow", "how it stands"],
    ["drover plan release --pause", "start nothing more of it for now"],
    ["drover plan release --cancel", "the whole plan"],
    ["drover why release/ship", "why one of its tasks does not run"],
  ],
  run: (call) => act(call),
};

async function act(call: Call<PlanFlags>): Promise<ExitCode> {
  const { flags, output } = call;
  const acts = ACTS.filter((one) => flags[one] === true);
  const [first, second] = acts;
  if (second !== undefined) throw usageProblem(`--${first} and --${second} are two things`, "say one of them");
  const name = idOf(call);
  const [{ serverWith, overText, pastPlan }, { clientAt }] = await Promise.all([
    import("../run/named-task.ts"),
    import("../run/link.ts"),
  ]);
  const server = await serverWith(call, name);
  if (server === null) {
    const view = first === undefined ? await pastPlan(call, name) : null;
    if (view === null) throw overText(name);
    return showPast(call, view);
  }
  const client = clientAt(call, server);
  if (first !== undefined) {
    await checkState(client, name, first);
    const answer = await client.plans[first](name);
    if (flags.follow === false || (first !== "retry" && first !== "resume")) {
      output.answer(answer, () => `${plain(name)} ${DONE[first]}\n`);
      return EXIT.ok;
    }
  }
  return await (flags.follow === false ? show(call, client, name) : attach(call, server, name));
}

/** A plan that has ended is told nothing: it would answer as if something had been done. */
async function checkState(client: Client, name: string, act: (typeof ACTS)[number]): Promise<void> {
  if (act === "remove") return;
  const { state, endedAt, counts } = await client.plans.get(name);
  // One is done also where a need was retried by itself, and what it had been skipped for is left.
  if (endedAt === undefined || (act === "retry" && (state !== "done" || (counts.skipped ?? 0) > 0))) return;
  const hint =
    state === "done" ? "drover run FILE --fresh runs it anew" : `drover plan ${asWord(name)} --retry runs it again`;
  const message = `the plan ${name} is ${state}; there is nothing to ${act}`;
  throw new CliProblem({ message, code: "conflict", exit: EXIT.refused, hint });
}

const DONE: Readonly<Record<(typeof ACTS)[number], string>> = {
  cancel: "is cancelled: what runs is stopped",
  retry: "runs again what had not gone well",
  pause: "is paused: what runs may end",
  resume: "goes on",
  remove: "is forgotten",
};

async function attach(call: Call<PlanFlags>, server: ServerChoice, name: string): Promise<ExitCode> {
  const [{ joinPlan }, { realClock }] = await Promise.all([import("../run/join.ts"), import("../../std/index.ts")]);
  return await joinPlan({
    call,
    server,
    name,
    file: null,
    tasks: null,
    watched: null,
    approved: new Set(),
    clock: realClock,
    begin: (link) => link.client().plans.get(name),
  });
}

async function show({ output }: Call<PlanFlags>, client: Client, name: string): Promise<ExitCode> {
  const view = await client.plans.get(name);
  output.answer(view, () => planDetails(view, output));
  return EXIT.ok;
}

/** What has run alone, from its log. Nothing can be watched any more, so the exit code says how it went. */
function showPast({ flags, output, terminal }: Call<PlanFlags>, view: PlanView): ExitCode {
  output.answer(view, () => planDetails(view, output));
  if (view.endedAt === undefined)
    terminal.err(`note: it has run alone, and nothing of it runs now: ${asTyped("drover run FILE goes on with it")}\n`);
  return flags.follow === false || view.state === "done" ? EXIT.ok : EXIT.failed;
}

function planDetails(view: PlanView, output: Output): string {
  const now = output.now();
  const counts = Object.entries(view.counts).filter(([, number]) => number > 0);
  const head = output.list([
    ["plan", view.id],
    ["state", view.state, TINTS[view.state]],
    ["tasks", `${view.total}: ${counts.map(([state, number]) => `${number} ${state}`).join(", ")}`],
    ["project", view.project],
    ["directory", view.directory],
    ["used", view.usage === undefined ? undefined : usageOf(view.usage)],
    ["put", `${view.putAt} (${age(view.putAt, now)})`],
    ["ended", view.endedAt === undefined ? undefined : `${view.endedAt} (${age(view.endedAt, now)})`],
  ]);
  const tasks = output.table(view.tasks, [
    { title: "TASK", of: ({ name }) => name, stays: true },
    { title: "STATE", of: ({ state }) => state, tint: ({ state }) => tintOf(state), stays: true },
    { title: "NEEDS", of: ({ needs }) => needs.join(", "), shrinks: true },
    { title: "TRY", of: ({ attempt }) => (attempt > 1 ? String(attempt) : ""), align: "right" },
    {
      title: "ROUND",
      of: (task) => (roundOf(task) === 0 ? "" : `${roundOf(task)} of ${task.round?.max}`),
      align: "right",
    },
    { title: "TOOK", of: ({ startedAt, endedAt }) => lasted(startedAt, endedAt, now), align: "right" },
    { title: "TOKENS", of: ({ usage }) => tokensOf(usage), align: "right" },
    { title: "WHY", of: (task) => reasonIn(task, view.tasks), shrinks: true },
  ]);
  return `${head}\n${tasks}`;
}
