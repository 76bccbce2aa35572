/**
 * One child, its process group, and the ladder by which it is stopped.
 *
 * The child leads a group of its own, so a signal reaches what it started, and nothing typed at the worker's terminal
 * does. To stop it is to ask first: SIGINT (an agent ends its turn), then SIGTERM, then SIGKILL, each to the whole
 * group, each only if the child has not ended in the time it was given. The exit is observed, never slept for.
 *
 * However the child ends, cleanly too, the rest of its group is killed, then whatever else carries the run's tag. Its
 * pipes are read all the time, whether anybody wants the output or not: a child whose pipe is full stands still. What
 * still holds a pipe open after all that is not ours; it is waited for a moment and then left.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { type Clock, ringAfter } from "../../std/index.ts";
import { createPump } from "../output/pump.ts";
import { killLeftovers, type Leader, type Leftovers, sendSignal } from "./leftovers.ts";
import type { ProcessTable } from "./table.ts";

export type Ladder = {
  /** From SIGINT to SIGTERM. */
  readonly interruptGraceMs: number;
  /** From SIGTERM to SIGKILL. */
  readonly terminateGraceMs: number;
};
type ProcessPlan = {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Written to its stdin, which is closed after. */
  readonly stdin: string;
  readonly runId: string;
  onOutput(stream: "out" | "err", chunk: Buffer): void;
  /** A signal of the ladder was sent. */
  onSignal?(signal: NodeJS.Signals): void;
};
export type ProcessEnd = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** It was told to stop before it had ended. */
  readonly isStopped: boolean;
  readonly leftovers: Leftovers;
};
export type RunningProcess = {
  readonly leader: Leader;
  /** Resolves when it has ended, what it left behind is dead, and its output is read. */
  readonly ended: Promise<ProcessEnd>;
  /** Begins the ladder; again is no more than once. */
  stop(): void;
  /** SIGKILL to the group at once, for a worker that has no time left. */
  kill(): void;
};
type ProcessTools = { readonly clock: Clock; readonly table: ProcessTable; readonly ladder: Ladder };

/** How long a pipe may stay open after everything of ours is dead. */
const PIPE_MS_MAX = 500;

/** Throws what the system says when the child cannot be started. */
export async function startProcess(plan: ProcessPlan, tools: ProcessTools): Promise<RunningProcess> {
  const [file = "", ...args] = plan.argv;
  const child = spawn(file, args, { cwd: plan.cwd, env: plan.env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  exited.catch(() => {}); // A child that cannot be started says so twice.
  const pid = child.pid;
  if (pid === undefined) {
    const [error] = await once(child, "error");
    throw error;
  }
  // Until its exit is seen the system keeps its number, so the number cannot have passed to another.
  const leader: Leader = { pid, startedAt: tools.table.read(pid)?.startedAt ?? null };
  const output = connect(child, plan);
  const ladder = createLadder(child, pid, plan, tools);
  return { leader, ended: settle(), stop: ladder.stop, kill: ladder.kill };

  async function settle(): Promise<ProcessEnd> {
    const [code, signal] = await exited;
    ladder.end();
    const holder = tools.table.read(pid as number);
    if (holder === null || holder.startedAt === leader.startedAt) sendSignal(-leader.pid, "SIGKILL");
    const leftovers = await killLeftovers(tools.table, { id: plan.runId, leader, since: leader.startedAt });
    const waiting = new AbortController();
    await Promise.race([output.drained, pause(PIPE_MS_MAX, undefined, { signal: waiting.signal }).catch(() => {})]);
    waiting.abort();
    output.end();
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
    return { code, signal, isStopped: ladder.hasBegun(), leftovers };
  }
}

/** `drained` resolves when both pipes are read to their end; `end` hands on what has come, if that takes too long. */
function connect(child: ChildProcess, { stdin, onOutput }: ProcessPlan) {
  child.on("error", () => {}); // Signals are sent by number, not through the child: nothing else can fail here.
  const pumps = (["out", "err"] as const).flatMap((name) => {
    const stream = name === "out" ? child.stdout : child.stderr;
    stream?.on("error", () => {});
    return stream === null ? [] : [createPump(stream, (piece) => onOutput(name, piece))];
  });
  // A child that does not read its task is free not to.
  child.stdin?.on("error", () => {});
  child.stdin?.end(stdin);
  const closed = new Promise((resolve) => child.once("close", resolve));
  const drained = closed.then(() => Promise.all(pumps.map((pump) => pump.drained())));
  return {
    drained,
    end() {
      for (const pump of pumps) pump.end();
    },
  };
}

function createLadder(child: ChildProcess, pid: number, plan: ProcessPlan, { clock, table, ladder }: ProcessTools) {
  let hasBegun = false;
  let cancelTimer = (): void => {};
  const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null;

  function send(signal: NodeJS.Signals): void {
    if (isOver()) return;
    sendSignal(-pid, signal);
    plan.onSignal?.(signal);
  }
  function terminate(): void {
    send("SIGTERM");
    cancelTimer = ringAfter(clock, ladder.terminateGraceMs, () => send("SIGKILL"));
  }
  return {
    stop() {
      // It may have ended, and nobody here has heard of it yet.
      if (hasBegun || isOver() || table.read(pid)?.isZombie === true) return;
      hasBegun = true;
      send("SIGINT");
      cancelTimer = ringAfter(clock, ladder.interruptGraceMs, terminate);
    },
    hasBegun: (): boolean => hasBegun,
    kill: () => send("SIGKILL"),
    end: () => cancelTimer(),
  };
}
