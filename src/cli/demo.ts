/**
 * `npm run demo`: a lively fleet to look at, with the web page in front of it.
 *
 *     npm run demo                    at http://127.0.0.1:4747/ui/
 *     npm run demo -- --port 0        anywhere else
 *
 * Four projects of different weights share a handful of workers and two providers. Some work fails, and some of that
 * runs again; one provider says 429 now and then and one for minutes, one budget runs out and fills again, one plan
 * grows through a dozen steps, one task asks a person and one can never run here. The engine, the log and the server
 * are the real ones, in memory; only the work is made up.
 * It begins with an hour behind it, so that charts have something to show.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import type { ProjectId } from "../core/base/index.ts";
import { type AssignedTask, type Drover, DroverError, openDrover, type TaskContext } from "../engine/index.ts";
import type { Sample } from "../protocol/index.ts";
import { StartRefusal, startServer } from "../server/index.ts";
import { loadSettings } from "./config/load.ts";
import { BadConfig } from "./config/problem.ts";
import { settingViews } from "./config/shown.ts";
import { EXIT } from "./shell/problem.ts";

const CLAUDE = "anthropic/default";
const GPT = "openai/team";
const BATCH = "gemini/batch";
const CONFIG = {
  scheduler: { maxInFlight: 24, resultTtl: "30m", fairness: { halfLife: "2m" } },
  projects: {
    "web-shop": { weight: 5, provider: CLAUDE },
    research: { weight: 3, budget: { limit: 900_000, window: "3m" } },
    docs: { weight: 2, maxConcurrent: 5 },
    "night-jobs": { weight: 1, maxConcurrent: 3 },
  },
  gates: {
    [CLAUDE]: { maxConcurrent: 8, requests: 240, tokens: { perMinute: 2_000_000 } },
    [GPT]: { maxConcurrent: 4, requests: 60 },
    [BATCH]: { maxConcurrent: 2, requests: 20 },
  },
};
/** What agents of each project do, and how long that takes at most. */
const WORK: Readonly<Record<string, readonly (readonly [action: string, type: string, ms: number])[]>> = {
  "web-shop": [
    ["implement-checkout", "code", 9000],
    ["review-pull-request", "spec", 5000],
    ["fix-flaky-test", "code", 7000],
    ["write-migration", "phase", 6000],
  ],
  research: [
    ["read-paper", "plan", 6000],
    ["compare-models", "spec", 11_000],
    ["summarise-findings", "phase", 5000],
  ],
  docs: [
    ["write-guide", "spec", 7000],
    ["check-links", "other", 2500],
    ["translate-page", "phase", 5000],
  ],
  "night-jobs": [
    ["refresh-index", "other", 8000],
    ["collect-metrics", "other", 3000],
  ],
};
/** Fails whoever tries, so that something has failed from the beginning. */
const HOPELESS = "restore-backup";
const GATES: Readonly<Record<string, string>> = { docs: GPT, "night-jobs": BATCH };
const AGENTS = ["ada", "ben", "cleo", "dan"];
const PLAN = {
  defaults: { project: "web-shop", agent: "ada" },
  tasks: {
    plan: { action: "plan-release" },
    "api-spec": { action: "write-spec", needs: "plan" },
    "ui-spec": { action: "write-spec", needs: "plan" },
    "api-code": { action: "implement", needs: "api-spec" },
    "ui-code": { action: "implement", needs: "ui-spec" },
    search: { action: "implement", needs: ["api-spec"] },
    "api-tests": { action: "test", needs: "api-code" },
    "ui-tests": { action: "test", needs: "ui-code" },
    "load-test": { action: "test", needs: ["api-code", "search"] },
    docs: { action: "document", needs: ["api-code", "ui-code"] },
    review: { action: "review", needs: ["api-tests", "ui-tests", "load-test"] },
    "ship-it": {
      action: "deploy",
      needs: ["review", "docs"],
      approval: { question: "Ship version 2.4 to production?" },
    },
  },
};
const SAMPLES = 360;
const SAMPLE_MS = 10_000;
const BURNED_SAMPLES = 60;
/** A project that has so many in line gets no more for a while: one that is held up leaves room to the others. */
const QUEUED_MAX: Readonly<Record<string, number>> = { "web-shop": 24, research: 16, docs: 14, "night-jobs": 6 };
const FIRST = 60;
/** The provider of the night says no for so long, once in so many turns. */
const BLOCK_MS = 180_000;
const BLOCK_TURNS = 600;

/** Chance that is the same at every start. */
function createDice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
const dice = createDice(7);
const oneOf = <Item>(items: readonly Item[]): Item => items[Math.floor(dice() * items.length)] as Item;
const between = (from: number, to: number): number => Math.round(from + dice() * (to - from));

/** A budget burns down within six minutes, and is there again four minutes later. */
function burned(sample: number): number {
  const part = (sample % BURNED_SAMPLES) / BURNED_SAMPLES;
  return 0.97 * (part < 0.6 ? part / 0.6 : (1 - part) / 0.4);
}

/** An hour that could have been: day and night in a few waves. */
function pastHour(now: number): Sample[] {
  let [submitted, done, failed, starts] = [0, 0, 0, 0];
  return Array.from({ length: SAMPLES }, (_, index) => {
    const wave = 1 + 0.5 * Math.sin(index / 28) + 0.25 * Math.sin(index / 7);
    const ended = between(12, 22) * wave;
    submitted += Math.round(ended + 1);
    done += Math.round(ended);
    failed += dice() < 0.25 ? 1 : 0;
    starts += Math.round(ended * 1.05);
    const inFlight = Math.min(24, Math.round(14 * wave + between(0, 4)));
    const queued = Math.max(0, Math.round(34 * wave + between(-6, 6)));
    const p50 = Math.round(2600 * wave ** 2 + between(0, 600));
    return {
      at: new Date(now - (SAMPLES - index) * SAMPLE_MS).toISOString(),
      waiting: between(4, 12),
      queued,
      inFlight,
      parked: 1,
      submitted,
      done,
      failed,
      starts,
      waitP50Ms: p50,
      waitP95Ms: p50 * 8 + between(0, 4000),
      projects: Object.entries(CONFIG.projects).map(([id, settings], place) => {
        const target = settings.weight / 11;
        const share = Math.max(0, target * (1 + 0.18 * Math.sin(index / 15 + place)));
        return {
          id,
          queued: Math.round(queued * target),
          inFlight: Math.round(inFlight * target),
          share,
          target,
          spent: "budget" in settings ? Math.round(settings.budget.limit * burned(index)) : 0,
        };
      }),
    };
  });
}

/** A few calls to a provider, and a little time: what an agent's work looks like from outside. */
async function work(task: AssignedTask, { signal, withPermit, usage }: TaskContext): Promise<unknown> {
  if (task.action === HOPELESS) throw new Error("there is no backup of last Tuesday");
  const known = Object.values(WORK)
    .flat()
    .find(([action]) => action === task.action);
  const ms = known?.[2] ?? 6000;
  const gate = GATES[task.project ?? ""] ?? CLAUDE;
  const sum = { inputTokens: 0, outputTokens: 0, cost: 0 };
  for (let call = between(1, 3); call > 0; call--) {
    const [inputTokens, outputTokens] = [between(1500, 9000), between(300, 2500)];
    await withPermit(gate, async (permit) => {
      await rest(between(ms / 6, ms / 3), undefined, { signal });
      if (gate === GPT && dice() < 0.02)
        throw Object.assign(new Error("429: too many requests"), { status: 429, retryAfterMs: 20_000 });
      permit.usage({ inputTokens, outputTokens });
    });
    sum.inputTokens += inputTokens;
    sum.outputTokens += outputTokens;
    sum.cost += inputTokens * 3e-6 + outputTokens * 15e-6;
    usage(sum);
  }
  // The steps of the plan go well, so that it comes to its question.
  if (known !== undefined && dice() < 0.1)
    throw new Error(oneOf(["2 tests fail in cart.test.ts", "the branch has conflicts", "lint: 4 errors"]));
  return { ok: true, summary: `${task.action} took ${sum.outputTokens} tokens` };
}

async function hireWorkers(drover: Drover): Promise<void> {
  const gib = 1024 ** 3;
  const large = { cpuMillicores: 16_000, memoryBytes: 64 * gib };
  const small = { cpuMillicores: 4000, memoryBytes: 16 * gib };
  await drover.worker({ id: "forge-1", slots: 8, capabilities: ["git", "docker"], resources: large, zone: "eu" }, work);
  await drover.worker({ id: "forge-2", slots: 8, capabilities: ["git", "docker"], resources: large, zone: "eu" }, work);
  await drover.worker(
    { id: "browser-1", slots: 4, capabilities: ["git", "browser"], resources: small, zone: "us" },
    work,
  );
  await drover.worker({ id: "laptop-of-ada", slots: 2, capabilities: ["git"], resources: small }, work);
}

/** A provider that has had enough: calls wait in line until it opens. */
async function blockGate(drover: Drover): Promise<void> {
  const { permitId } = await drover.permits.ask({ gate: BATCH, project: "night-jobs" });
  await drover.permits.settle(permitId, { rateLimited: { retryAfterMs: BLOCK_MS } });
}

/** One more task, or a batch or a tree of them, now and then. */
async function submitSome(drover: Drover): Promise<void> {
  const project = oneOf(["web-shop", "web-shop", "web-shop", "research", "research", "docs", "docs", "night-jobs"]);
  if ((drover.state.projects.get(project as ProjectId)?.queued ?? 0) >= (QUEUED_MAX[project] ?? 0)) return;
  const agentId = oneOf(AGENTS);
  const [action, type] = oneOf(WORK[project] ?? []);
  const resources = { cpuMillicores: between(2, 8) * 250, memoryBytes: between(1, 6) * 512 * 1024 ** 2 };
  const labels = { team: oneOf(["core", "growth", "platform"]) };
  const task = { action, type, resources, labels, estimatedTokens: between(3, 18) * 1000, maxAttempts: oneOf([1, 3]) };
  if (dice() < 0.92) return void (await drover.submit({ ...task, agentId, project }));
  const tree = `feature-${drover.state.seq}`;
  await drover.submitBatch({
    agentId,
    project,
    tasks: [
      { ...task, id: tree },
      ...["api", "page", "tests"].map((part) => ({ ...task, id: `${tree}-${part}`, parent: tree })),
      { ...task, id: `${tree}-merge`, needs: ["api", "page", "tests"].map((part) => `${tree}-${part}`) },
    ],
  });
}

async function keepSubmitting(drover: Drover, signal: AbortSignal): Promise<void> {
  for (let turn = 0; !signal.aborted; turn++) {
    try {
      for (let more = between(1, 3); more > 0; more--) await submitSome(drover);
      if (turn % BLOCK_TURNS === BLOCK_TURNS - 1) await blockGate(drover);
      if (turn % 400 === 0) await drover.plans.put("release-2.4", PLAN, { fresh: turn > 0 });
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
    }
    await rest(500, undefined, { signal }).catch(() => {});
  }
}

const USAGE = `npm run demo -- [--port PORT]

Serves a fleet to look at, with an hour behind it. Ctrl-C ends it, and nothing of it is kept.

  --port PORT  where it is served: 4747 unless told, 0 for any that is free`;

/** Where it is to be served; null: that is not what was asked for. */
function askedPort(): string | null {
  const options = { port: { type: "string", default: "4747" }, help: { type: "boolean", short: "h" } } as const;
  const { values } = parseArgs({ options });
  if (values.help !== true) return values.port;
  console.log(USAGE);
  return null;
}

async function main(): Promise<void> {
  const port = askedPort();
  if (port === null) return;
  const place = mkdtempSync(join(tmpdir(), "drover-demo-"));
  writeFileSync(join(place, "drover.yml"), stringify(CONFIG));
  const sets = [`server.port=${port}`, "server.shutdownGrace=0s"];
  const { settings, effective } = loadSettings({ env: {}, cwd: place, home: place, sets });
  const historyFile = join(place, "history.jsonl");
  writeFileSync(
    historyFile,
    pastHour(Date.now())
      .map((sample) => `${JSON.stringify(sample)}\n`)
      .join(""),
  );
  const drover = await openDrover({ config: settings.config });
  const views = settingViews(effective);
  const server = await startServer({ drover, settings, historyFile, settingViews: () => views });
  await hireWorkers(drover);
  await blockGate(drover);
  const approval = { question: "Delete 1 204 stale preview environments?", timeoutMs: 3_600_000 };
  await drover.submit({
    id: "clean-previews",
    agentId: "dan",
    project: "night-jobs",
    action: "clean-previews",
    approval,
  });
  await drover.submit({ id: HOPELESS, agentId: "ben", project: "web-shop", action: HOPELESS, maxAttempts: 1 });
  await drover.submit({
    id: "train-ranker",
    agentId: "cleo",
    project: "research",
    action: "train",
    capabilities: ["gpu"],
  });
  for (let task = 0; task < FIRST; task++) await submitSome(drover);
  console.log(`The demo fleet is at ${server.url}/ui/  (Ctrl-C ends it)`);
  const ending = new AbortController();
  process.once("SIGINT", () => ending.abort());
  process.once("SIGTERM", () => ending.abort());
  await keepSubmitting(drover, ending.signal);
  await server.close({ graceMs: 0 });
  rmSync(place, { recursive: true, force: true });
}

try {
  await main();
} catch (error) {
  const isMistyped = String((error as NodeJS.ErrnoException).code).startsWith("ERR_PARSE_ARGS_");
  if (isMistyped || error instanceof BadConfig) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    process.exitCode = EXIT.usage;
  } else if (error instanceof StartRefusal) {
    console.error(`${error.message}: npm run demo -- --port 0`);
    process.exitCode = EXIT.failed;
  } else throw error;
}
