/**
 * Several engines over one journal, with everything that can go wrong between them, from a seed.
 *
 * Callers go to a node that believes it leads; what was not answered, or answered with "try again", they ask again
 * under the same id. Workers sync with such a node as well, and go to another when it does not answer. An auditor that
 * sees the journal's own order (../auditor.ts) judges every event and every answer; and here it is checked what only a
 * cluster can get wrong: one leader per epoch, one history on all nodes, one count of every result, and one time,
 * though the wall clock of each node may be set at any moment.
 */

import { seq } from "../../core/base/index.ts";
import { snapshotLines } from "../../core/snapshot/index.ts";
import { DroverError } from "../../engine/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import { unpackRow } from "../../log/format/index.ts";
import { expireLead, takeInto } from "../../log/journal/index.ts";
import { createMemoryStore } from "../../log/memory/index.ts";
import { nextTurn } from "../../std/index.ts";
import { type Blinkers, type Complaint, createAuditor } from "../auditor.ts";
import { createRandom, type Random } from "../chance/random.ts";
import { createSimWorld, type SimWorld } from "../sim-clock.ts";
import { createSimNodes, LEASE_MS, type NodePlant, type SimNode, type SimNodes } from "./sim-nodes.ts";

const START_MS = 10_000_000;
const TURNS_MAX = 20_000;
const RINGS_MAX = 5000;
const END_ROUNDS_MAX = 60;
const POLL_MS = 1000;
/** By how much a wall clock is set: what a time server mends, and what a person mistypes. */
const SMALL_JUMPS_MS = [1, 40, 900, 3000, 20_000];
const LARGE_JUMPS_MS = [600_000, 86_400_000];
/** A clock that was set far ahead for no longer does no harm. */
const MENDED_WITHIN_MS = 30_000;
const CONFIG = {
  workers: { lease: 6000, killGrace: 1000 },
  scheduler: { retry: { base: 500 }, resultTtl: 86_400_000 },
};

type Counted = "tasks" | "answered" | "acknowledged" | "again" | "results" | "settled";
export type ClusterReport = {
  readonly seed: number;
  readonly complaints: readonly Complaint[];
  readonly figures: Readonly<Record<Counted | "events" | "epochs", number>>;
  readonly headHash: string;
};
type Run = {
  readonly world: SimWorld;
  readonly random: Random;
  readonly nodes: SimNodes;
  readonly auditor: ReturnType<typeof createAuditor>;
  readonly tally: Record<Counted, number>;
  /** Results that were taken as the first of their kind, by task. */
  readonly counted: Map<string, number>;
};

export async function simulateCluster(options: {
  readonly seed: number;
  readonly steps: number;
  readonly nodes?: number;
  readonly plant?: NodePlant & Blinkers;
}): Promise<ClusterReport> {
  const { seed, steps, plant = {} } = options;
  const random = createRandom(seed);
  const world = createSimWorld(START_MS, createRandom(seed + 1));
  const observed = createMemoryStore();
  const auditor = createAuditor(observed, plant);
  const { complain } = auditor;
  const leaders = new Map<number, string>();
  const nodes = createSimNodes({
    world,
    count: options.nodes ?? 3,
    config: CONFIG,
    plant,
    onBroken: (detail) => complain("broken", detail),
    onLeads(node, epoch) {
      const other = leaders.get(epoch) ?? node;
      leaders.set(epoch, node);
      if (other !== node) complain("one-leader", `${node} leads in epoch ${epoch}, and so does ${other}`);
    },
  });
  const observe = (): void => {
    for (const entry of nodes.store.entries) takeInto(observed, entry);
  };
  nodes.store.onChange.add(observe);
  const tally = { acknowledged: 0, answered: 0, again: 0, results: 0, settled: 0, tasks: 0 };
  const run: Run = { world, random, nodes, auditor, tally, counted: new Map() };
  for (const node of nodes.all) await openAgain(run, node);
  const workers = ["w1", "w2"].map((id) => work(run, id));
  for (let step = 0; step < steps && auditor.complaints.length === 0; step++) {
    await act(run);
    await settle(run);
    auditTime(run);
  }
  if (auditor.complaints.length === 0) await comeToRest(run);
  if (auditor.complaints.length === 0) await auditNodes(run);
  for (const worker of workers) worker.stop();
  return {
    seed,
    complaints: auditor.complaints,
    headHash: nodes.store.head.hash,
    figures: { ...tally, events: nodes.store.head.seq, epochs: leaders.size },
  };
}

/** Opening takes turns of its own, and may not come to an end where the node is cut off meanwhile. */
async function openAgain(run: Run, node: SimNode): Promise<void> {
  const opening = run.nodes.open(node).catch(() => {});
  await settle(run);
  await Promise.race([opening, nextTurn()]);
}

async function settle({ world, auditor }: Run): Promise<void> {
  for (let turns = 0; turns < TURNS_MAX; turns++) {
    await nextTurn();
    if (!world.runDeferred()) return;
  }
  auditor.complain("spins", `the nodes take ${TURNS_MAX} turns and no time passes`);
}

async function pass(run: Run, ms: number): Promise<void> {
  const { world, auditor } = run;
  const end = world.elapsed() + ms;
  for (let rings = 0; auditor.complaints.length === 0; ) {
    await settle(run);
    const next = world.nextRing();
    if (next === null || next > end) break;
    rings = next <= world.elapsed() ? rings + 1 : 0;
    if (rings > RINGS_MAX) return auditor.complain("spins", `an alarm rings ${RINGS_MAX} times at one instant`);
    world.moveTo(next);
  }
  world.moveTo(end);
  await settle(run);
  auditTime(run);
}

/** A node that believes it leads; where several do, any of them. */
function someLeader({ nodes, random }: Run): Drover | null {
  const leading = nodes.all.flatMap(({ node }) => (node?.life().role === "leader" ? [node.life().drover] : []));
  return leading.length === 0 ? null : random.pick(leading);
}

/** The answer of one that was not replaced meanwhile. */
async function askNewest<Answer>(run: Run, call: (drover: Drover) => Promise<Answer>): Promise<Answer | null> {
  const isNewest = (drover: Drover): boolean =>
    run.nodes.all.some(
      ({ node }) => node?.life().drover === drover && node.applied().epoch === run.nodes.store.head.epoch,
    );
  return ask(run, async (drover) => {
    const answer = await call(drover);
    if (!isNewest(drover)) throw new DroverError("deposed", "another leads");
    return answer;
  });
}

/** Asks until it is answered: what was lost or refused for now is asked again. Null if the answer is no. */
async function ask<Answer>(run: Run, call: (drover: Drover) => Promise<Answer>): Promise<Answer | null> {
  for (;;) {
    const drover = someLeader(run);
    const late = Promise.withResolvers<"late">();
    const cancel = run.world.after(4 * LEASE_MS, () => late.resolve("late"));
    try {
      const answer = drover === null ? "late" : await Promise.race([call(drover), late.promise]);
      if (answer !== "late") return answer as Answer;
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
      if (!error.retryable && error.code !== "log_failed" && error.code !== "closed") return null;
    } finally {
      cancel();
    }
    run.tally.again++;
    await new Promise<void>((resolve) => void run.world.after(200, resolve));
  }
}

async function act(run: Run): Promise<void> {
  const { random, nodes } = run;
  const node = random.pick(nodes.all);
  const luck = random.below(100);
  if (luck < 40) submit(run);
  else if (luck < 48) cancel(run);
  else if (luck < 54) permit(run);
  else if (luck < 58) fault(run, node, "cut");
  else if (luck < 62) fault(run, node, "lose");
  else if (luck < 65) expireLead(nodes.store);
  else if (luck < 68) hang(run, node);
  else if (luck < 71) await crash(run, node);
  else if (luck < 73) await restart(run, node);
  else if (luck < 75) void node.node?.handOver();
  else if (luck < 78) nodes.delay(node, random.between(1, 2 * LEASE_MS));
  else if (luck < 83) jump(run, node);
  else await pass(run, random.between(1, 1500));
}

function submit(run: Run): void {
  const { random, auditor, tally } = run;
  const id = `t${++tally.tasks}`;
  const needs = tally.tasks > 3 && random.percent(30) ? [`t${random.between(1, tally.tasks - 3)}`] : [];
  const body = { id, agentId: random.pick(["ann", "bob"]), action: "build", maxAttempts: 2, needs };
  void ask(run, (drover) => drover.submit(body)).then((answer) => {
    tally.answered++;
    // What it needs was not there yet.
    if (answer === null) return;
    tally.acknowledged++;
    auditor.acknowledged({ what: `submit of ${id}`, task: id, kind: "task-submitted" });
  });
}

function cancel(run: Run): void {
  const { random, auditor, tally } = run;
  if (tally.tasks === 0) return;
  const task = `t${random.between(1, tally.tasks)}`;
  void ask(run, (drover) => drover.cancel(task)).then((answer) => {
    if (answer !== null) auditor.acknowledged({ what: `cancel of ${task}`, task, kind: "task-cancelled" });
  });
}

/** A call under a permit. Once it is settled, a repeat of its ask is granted nothing, whoever leads. */
function permit(run: Run): void {
  const rest = (ms: number): Promise<void> => new Promise((resolve) => void run.world.after(ms, resolve));
  const id = `call-${run.world.elapsed()}-${run.random.below(1000)}`;
  void ask(run, (drover) => drover.permits.ask({ gate: "llm", id, waitMs: 2000 })).then(async (answer) => {
    if (answer?.status !== "granted") return;
    await rest(run.random.between(1, 3000));
    const usage = { inputTokens: 5, outputTokens: 5 };
    // Null: its grant went with its leader, and so did its id.
    if ((await ask(run, (drover) => drover.permits.settle(id, { usage }))) === null) return;
    run.tally.settled++;
    await rest(run.random.between(1, 10_000));
    // One that was replaced and has not noticed still has the permit of before, and shows that: it grants nothing.
    const late = await askNewest(run, (drover) => drover.permits.ask({ gate: "llm", id }));
    // Where a clock that is far ahead may be believed, its time to live may be over.
    if (late !== null && run.nodes.believedMs() < run.auditor.shadow.config.log.maxClockJump)
      run.auditor.complain("settled", `permit ${id} was settled, and is ${late.status} again`);
  });
}

function fault({ world, random }: Run, { journal }: SimNode, what: "cut" | "lose"): void {
  if (journal === null) return;
  if (what === "lose") return journal.fault({ loseAnswers: random.below(3), loseAppends: random.below(3) });
  journal.fault({ cut: random.pick(["both", "answers"] as const) });
  world.after(random.between(100, 8000), () => journal.fault({ cut: "none" }));
}

/** Sets a wall clock, now or in the midst of a lease. One that was set far off is mostly set right soon. */
function jump({ world, random, nodes }: Run, node: SimNode): void {
  const isLarge = random.percent(50);
  const byMs = random.pick([-1, 1]) * random.pick(isLarge ? LARGE_JUMPS_MS : SMALL_JUMPS_MS);
  const isMended = isLarge && random.percent(80);
  const mendedAfter = random.between(1, MENDED_WITHIN_MS);
  world.after(random.below(2 * LEASE_MS), () => {
    nodes.setClock(node, byMs, !isLarge || isMended);
    if (isMended) world.after(mendedAfter, () => nodes.setClock(node, -byMs, true));
  });
}

/** Log time is not ahead of the truth by more than a leader follows at once, whosever clock is. */
function auditTime({ world, nodes, auditor }: Run): void {
  auditor.catchUp();
  const { at, config } = auditor.shadow;
  const aheadMs = at - world.now() - nodes.believedMs();
  if (aheadMs > config.log.maxClockJump)
    auditor.complain("time", `log time is ${aheadMs} ms ahead, and no clock was for a minute`);
}

function hang({ world, random, nodes }: Run, node: SimNode): void {
  nodes.hang(node);
  world.after(random.between(100, 9000), () => nodes.wake(node));
}

async function crash(run: Run, node: SimNode): Promise<void> {
  run.nodes.crash(node);
  run.world.after(run.random.between(100, 5000), () => {
    void run.nodes.open(node).catch(() => {});
  });
}

async function restart(run: Run, node: SimNode): Promise<void> {
  if (node.node === null || node.wake !== null) return;
  void run.nodes.close(node).then(() => run.nodes.open(node).catch(() => {}));
}

/** A worker: it joins, runs what it is given for a while, and reports; a report that was not answered it repeats. */
function work(run: Run, id: string): { stop(): void } {
  const { world, random, auditor, tally, counted } = run;
  let isOver = false;
  const running = new Map<string, { taskId: string; attempt: number; endsAt: number }>();
  const rest = (): Promise<void> => new Promise((resolve) => void world.after(POLL_MS / 4, resolve));

  async function go(): Promise<void> {
    let session: string | undefined;
    for (let n = 1; !isOver; n++) {
      if (session === undefined) {
        running.clear();
        session = (await ask(run, (drover) => drover.remote.join({ id, slots: 3 })))?.session;
      }
      const ended = [...running.values()].filter(({ endsAt }) => endsAt <= world.elapsed());
      const results = ended.map(({ taskId, attempt }) => ({ taskId, attempt, outcome: outcomeOf(taskId, attempt) }));
      const rows = [...running.values()].filter((one) => !ended.includes(one));
      const said = {
        session: session ?? "",
        n,
        running: rows.map(({ taskId, attempt }) => ({ taskId, attempt })),
        results,
      };
      const answer = await ask(run, (drover) => drover.remote.sync(id, said));
      if (answer === null) {
        session = undefined;
        continue;
      }
      for (const { taskId, attempt, accepted, code } of answer.results) note(taskId, attempt, accepted, code);
      for (const { taskId, attempt } of ended) running.delete(`${taskId}/${attempt}`);
      for (const { taskId, attempt } of answer.cancel) running.delete(`${taskId}/${attempt}`);
      for (const { taskId, attempt } of answer.assignments)
        running.set(`${taskId}/${attempt}`, { taskId, attempt, endsAt: world.elapsed() + random.between(0, 2500) });
      await rest();
    }
  }

  function note(task: string, attempt: number, isTaken: boolean, code: string | undefined): void {
    if (!isTaken || code !== undefined || outcomeOf(task, attempt) !== "done") return;
    tally.results++;
    const other = counted.get(task) ?? attempt;
    counted.set(task, attempt);
    if (other !== attempt)
      auditor.complain("one-owner", `results of attempts ${other} and ${attempt} of ${task} count`);
    auditor.acknowledged({ what: `the result of ${task}`, task, kind: "task-done" });
  }

  void go();
  return {
    stop: () => {
      isOver = true;
    },
  };
}

/** By its name: some fail at first. */
const outcomeOf = (task: string, attempt: number): "done" | "failed" =>
  attempt === 1 && task.endsWith("3") ? "failed" : "done";

/** Faults cease, every node is up, and time passes until every task has ended. */
async function comeToRest(run: Run): Promise<void> {
  const { nodes, auditor } = run;
  for (const node of nodes.all) {
    nodes.wake(node);
    node.journal?.fault({ cut: "none", loseAnswers: 0, loseAppends: 0, hold: null });
  }
  await pass(run, 20_000);
  for (const node of nodes.all) {
    node.journal?.fault({ cut: "none", loseAnswers: 0, loseAppends: 0, hold: null });
    await openAgain(run, node);
  }
  const open = (): string[] => [...auditor.shadow.tasks].filter(([, { phase }]) => phase !== "ended").map(([id]) => id);
  for (let round = 0; round < END_ROUNDS_MAX && auditor.complaints.length === 0; round++) {
    await pass(run, 5000);
    if (open().length === 0 && run.tally.answered === run.tally.tasks) break;
  }
  if (open().length > 0) auditor.complain("ends", `with nothing in their way these never end: ${open().join(", ")}`);
  if (run.tally.answered < run.tally.tasks)
    auditor.complain("answers", `${run.tally.tasks - run.tally.answered} submits were never answered`);
}

/** One history, one state, on all nodes. */
async function auditNodes({ nodes, auditor }: Run): Promise<void> {
  const { complain } = auditor;
  const { head, entries } = nodes.store;
  const owners = new Map<number, string>();
  for (const { epoch, batchId } of entries) {
    const node = batchId.split("/")[0] ?? "";
    const other = owners.get(epoch) ?? node;
    owners.set(epoch, node);
    if (other !== node) complain("one-leader", `${node} and ${other} have both written in epoch ${epoch}`);
  }
  const states = new Set<string>();
  for (const { id, node, replica } of nodes.all) {
    const applied = node?.applied();
    if (applied?.seq !== head.seq || applied.hash !== head.hash)
      complain("same-hash", `${id} is at ${applied?.seq} ${applied?.hash}, the journal at ${head.seq} ${head.hash}`);
    for (const [index, row] of replica.rows.entries()) {
      const entry = entries[index];
      if (entry === undefined || unpackRow(row, seq(0)).batchId !== entry.batchId)
        complain("one-history", `${id} has another batch at event ${row.firstSeq} than the journal`);
    }
    if (node !== null) states.add([...snapshotLines(node.life().drover.state)].join("\n"));
  }
  if (states.size > 1) complain("same-state", `the nodes have ${states.size} different states`);
  const leads = nodes.all.filter(({ node }) => node?.life().leads() === true);
  if (leads.length !== 1) complain("one-leader", `${leads.length} nodes lead at the end`);
  await auditor.replay(leads[0]?.node?.life().drover.state ?? null);
}
