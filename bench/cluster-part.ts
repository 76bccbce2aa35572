/**
 * One node of `bench/cluster.ts` in a process of its own: `cluster-part.ts ID URL HOW DATA`.
 *
 * While it leads it has one task after the other, each a few milliseconds after the one before, run by a worker in the
 * process, and it says when each was begun: that is a decision that is committed. While it follows it notes when it had
 * applied which event, and tells of that when it is asked. Times are of the clock that all processes of a machine
 * share.
 */
import { setTimeout as pause } from "node:timers/promises";
import { leads, openBenchNode } from "./cluster-node.ts";
import { WITHOUT_SNAPSHOTS } from "./embedded.ts";

export type NodeOrder = { readonly type: "hand-over" | "tell" | "stop" };
export type AppliedAt = { readonly seq: number; readonly atMs: number };
export type NodeReport =
  | { readonly type: "ready" }
  | { readonly type: "decided"; readonly atMs: number }
  | { readonly type: "applied"; readonly applied: readonly AppliedAt[] };

/** What a follower notes: the last so many. */
const APPLIED_MAX = 200_000;
const TASK_EVERY_MS = 5;

export const sharedClockMs = (): number => Number(process.hrtime.bigint()) / 1e6;

if (process.send !== undefined) await play(process.argv.slice(2));

async function play([id = "", url = "", isBusy = "busy", data = ""]: readonly string[]): Promise<void> {
  const node = await openBenchNode({ id, url, config: WITHOUT_SNAPSHOTS, data });
  const applied: AppliedAt[] = [];
  let isEnding = false;
  const tell = (report: NodeReport): void => void process.send?.(report);

  async function work(): Promise<void> {
    while (!isEnding) {
      await leads(node);
      try {
        await node.drover.worker({ slots: 4 }, () => tell({ type: "decided", atMs: sharedClockMs() }));
        while (!isEnding && node.life().leads()) {
          await node.drover.submit({ agentId: "ann", action: "noop" });
          await pause(TASK_EVERY_MS);
        }
      } catch {
        // The lead is over, or about to be.
        await pause(TASK_EVERY_MS);
      }
    }
  }
  async function note(): Promise<void> {
    for (let seq = node.applied().seq + 1; !isEnding; seq = node.applied().seq + 1) {
      await node.reached(seq);
      if (applied.length < APPLIED_MAX) applied.push({ seq: node.applied().seq, atMs: sharedClockMs() });
    }
  }
  process.on("message", ({ type }: NodeOrder) => {
    if (type === "hand-over") void node.handOver();
    if (type === "tell") tell({ type: "applied", applied: applied.splice(0) });
    if (type !== "stop") return;
    isEnding = true;
    void node.close().then(() => process.exit());
  });
  tell({ type: "ready" });
  await (isBusy === "busy" ? work() : note());
}
