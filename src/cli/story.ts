/**
 * `npm run demo`: a small fleet on this machine that says why it does what it does.
 *
 * Two projects share two workers three to one; a plan grows into a spec and code; a provider says 429 once and
 * every call waits; one task can never run here, and `why` says so. All of it goes through the real engine
 * and a real log in `.drover/demo`, which is verified at the end.
 */
import { setTimeout as rest } from "node:timers/promises";
import { styleText } from "node:util";
import { type Drover, DroverError, type FeedEvent, openDrover, type TaskContext } from "../engine/index.ts";

const DATA = ".drover/demo";
const GATE = "llm/demo";
const LOOK_AGAIN_MS = 5;

const dim = (text: string): string => styleText("dim", text);
const bold = (text: string): string => styleText("bold", text);
const green = (text: string): string => styleText("green", text);
const yellow = (text: string): string => styleText("yellow", text);
const red = (text: string): string => styleText("red", text);

/** Two calls at a time, and as many a minute as people start demos. */
const CONFIG = {
  projects: { web: { weight: 3 }, docs: { weight: 1 } },
  gates: { [GATE]: { maxConcurrent: 2, requests: 100_000 } },
};

async function main(): Promise<void> {
  await using drover = await openDrover({ data: DATA, config: CONFIG });
  // A demo that was interrupted left tasks behind; they would run in this one and stand before its own.
  for (const project of Object.keys(CONFIG.projects)) await drover.cancelWhere({ project });
  console.log(bold("Drover: two projects, two workers, one provider. Everything below is an event in the log.\n"));
  const story = watch(drover, drover.state.seq);
  const stuck = await work(drover);
  await story.toldUpTo(drover.state.seq);
  await explain(drover, stuck);
  await drover.cancel(stuck, { reason: "no worker here has a gpu" });
  await story.toldUpTo(drover.state.seq);
  await summary(drover);
}

/** Runs all that can run here; answers which task cannot. */
async function work(drover: Drover): Promise<string> {
  let calls = 0;
  const handler = async (_task: unknown, context: TaskContext): Promise<unknown> => {
    const tokens = await context.withPermit(GATE, async (permit) => {
      calls++;
      // The third call finds the provider overloaded: the gate blocks, probes once, and lets the rest follow.
      if (calls === 3) throw Object.assign(new Error("rate limited"), { status: 429, retryAfterMs: 500 });
      await rest(60 + (calls % 3) * 30, undefined, { signal: context.signal });
      const outputTokens = 400 + (calls % 5) * 300;
      permit.usage({ inputTokens: 800, outputTokens });
      return 800 + outputTokens;
    });
    return { tokens };
  };
  await drover.worker({ id: "ada", slots: 2, capabilities: ["git"] }, handler);
  await drover.worker({ id: "bob", slots: 2, capabilities: ["git", "browser"] }, handler);
  const run = `r${drover.state.seq}`;
  const plan = await drover.submitBatch({
    agentId: "planner",
    project: "web",
    tasks: [
      { id: `${run}-plan`, type: "plan", action: "plan the feature" },
      { id: `${run}-spec`, type: "spec", action: "write the spec", parent: `${run}-plan` },
      { id: `${run}-code-a`, type: "code", action: "write the API", parent: `${run}-spec`, capabilities: ["git"] },
      { id: `${run}-code-b`, type: "code", action: "write the page", parent: `${run}-spec`, capabilities: ["browser"] },
    ],
  });
  const fill = ["web", "docs"].flatMap((project) =>
    Array.from({ length: 6 }, (_, index) =>
      drover.submit({ agentId: index % 2 === 0 ? "ann" : "ben", project, type: "code", action: `task ${index}` }),
    ),
  );
  const stuck = await drover.submit({ agentId: "ann", project: "web", action: "train a model", capabilities: ["gpu"] });
  const ids = [...plan.tasks, ...(await Promise.all(fill))].map(({ taskId }) => taskId as string);
  await Promise.all(ids.map((id) => drover.ended(id)));
  return stuck.taskId;
}

async function explain(drover: Drover, task: string): Promise<void> {
  const why = await drover.why(task);
  console.log(`\n${bold(`why does ${task} not run?`)}\n${why.summary}`);
  for (const { code, ok, detail } of why.conditions)
    console.log(`  ${ok ? green("✓") : red("✗")} ${code.padEnd(18)} ${dim(detail)}`);
}

/** Prints each event as it becomes durable; a caller that prints something else lets the story catch up first. */
function watch(drover: Drover, from: number): { toldUpTo(seq: number): Promise<void> } {
  const startedAt = performance.now();
  let printed = from;
  let isOver = false;

  async function tell(): Promise<void> {
    for await (const event of drover.events({ after: from, follow: true })) {
      const line = describe(event);
      const clock = `${((performance.now() - startedAt) / 1000).toFixed(2)}s`.padStart(7);
      if (line !== null) console.log(`${dim(clock)} ${dim(`#${event.seq}`.padEnd(6))} ${line}`);
      printed = event.seq;
    }
    isOver = true;
  }
  const telling = tell();
  return {
    toldUpTo: async (seq) => {
      while (printed < seq && !isOver) await Promise.race([telling, rest(LOOK_AGAIN_MS)]);
    },
  };
}

function describe({ payload: event }: FeedEvent): string | null {
  switch (event.kind) {
    case "task-submitted":
      return `${event.task} submitted by ${event.agent} to ${event.project}${dim(after(event.parent))}`;
    case "task-assigned": {
      const { reason, rank } = event;
      const because = reason.type === "least-loaded" ? `least-loaded, ${reason.queueDepth} there` : reason.type;
      const numbers = `level ${rank.level.toFixed(0)}, priority ${rank.priority}, score ${rank.score}`;
      return `${green("▶")} ${event.task} → ${bold(event.worker)} ${dim(`(${because}; ${numbers})`)}`;
    }
    case "task-done":
      return `${green("✔")} ${event.task} done`;
    case "task-cancelled":
      return `${yellow("■")} ${event.task} cancelled: ${event.reason}`;
    case "task-failed":
      return `${red("✘")} ${event.task} failed: ${event.reason}`;
    case "gate-throttled":
      return `${yellow("⏸")} gate ${event.gate} said 429, wait ${event.retryAfterMs} ms ${dim("(2 s at least)")}`;
    case "gate-opened":
      return `${green("⏵")} gate ${event.gate} opens again, with one probe`;
    default:
      return null;
  }
}

const after = (parent: string | null): string => (parent === null ? "" : `, after ${parent}`);

async function summary(drover: Drover): Promise<void> {
  console.log(`\n${bold("project  weight  charged  level")}`);
  for (const { id, weight, charged, level } of await drover.projects()) {
    console.log(`${id.padEnd(8)} ${String(weight).padEnd(7)} ${String(charged).padEnd(8)} ${level.toFixed(0)}`);
  }
  const { ok, head, events } = await drover.verify();
  console.log(`\n${ok ? green("✓") : red("✗")} ${events} events verified, head ${head.seq}:${head.hash.slice(0, 16)}…`);
  console.log(dim(`The log is in ${DATA}. README.md shows how to embed this in a program.`));
}

// `npm start | head` has read enough: nothing is wrong, and the log is whole however the process ends.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});
try {
  await main();
} catch (error) {
  if (!(error instanceof DroverError || (error instanceof Error && error.name === "LogFailure"))) throw error;
  console.error(red(error.message));
  process.exitCode = 1;
}
