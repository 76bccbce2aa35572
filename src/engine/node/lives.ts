/**
 * The lives of a node, one after the other, over one state as long as that is good.
 *
 * A state is good for the next life if all that was applied to it was committed. A leader that had more, or whose rules
 * broke, leaves nothing: the next life is over a state that is built anew from the replica.
 */
import { seq } from "../../core/base/index.ts";
import type { Config } from "../../core/config/index.ts";
import type { MutableState } from "../../core/model/index.ts";
import type { Head, Lead } from "../../log/index.ts";
import type { SharedLog } from "../../log/shared/index.ts";
import type { DroverError } from "../base/drover-error.ts";
import { apiOf, type Drover } from "../drover-api.ts";
import { openFiles } from "../files/open-file.ts";
import { dropLife, type Life, type LifeOptions, type Role, startLife } from "../life.ts";
import { createClockWatch, type SayApart } from "../writer/clock-watch.ts";
import { type LogClock, logClockOver } from "../writer/log-clock.ts";
import { recover } from "../writer/recovery.ts";
import { notify } from "../writer/writer.ts";
import type { AgreedClock } from "./agreed-clock.ts";

/** What a node does: one leads, the others follow. */
export type NodeRole = "leader" | "follower";
/** A life of a node. */
export type NodeLife = {
  readonly role: NodeRole;
  readonly drover: Drover;
  /** Whether it leads for sure: what acts outside asks before each act. */
  leads(): boolean;
  /** Fires when it ends, with a DroverError as the reason. */
  readonly signal: AbortSignal;
};
/** Who a node is. */
export type NodeFacts = {
  readonly id: string;
  /** Where other nodes and clients reach it. */
  readonly url: string;
  /** The public key of what it signs: ed25519, SPKI in base64. */
  readonly key: string;
};
type OfOneLife = "log" | "logClock" | "files" | "state" | "snapshotSeq" | "role" | "onCommit";
export type LivesOptions = Omit<LifeOptions, OfOneLife> & {
  readonly log: SharedLog;
  readonly self: () => NodeFacts;
  /** Called when something was applied. */
  readonly onApplied: () => void;
  /** By whose date log time goes. */
  readonly agreed: Pick<AgreedClock, "clock" | "isMoved">;
  /** Hears that log time and the clock are apart. */
  readonly onApart: SayApart;
  /** The config that a leader puts in force; null: what the log has. */
  readonly config: () => Config | null;
};
export type AppliedHead = Pick<Head, "seq" | "hash" | "epoch">;
type Present = NodeLife & { readonly life: Life; readonly ending: AbortController };
type Waiter = { readonly seq: number; readonly resolve: () => void };

export type Lives = {
  present(): NodeLife;
  isLiving(): boolean;
  onLife(listener: (life: NodeLife) => void): () => void;
  /** Begins a life that follows. */
  follow(): Promise<Life>;
  /** Ends the present life, which follows, and begins one that leads over the same state. */
  lead(lead: Lead): Promise<Life>;
  /** Ends the present life at once, if it has not ended. */
  drop(error: DroverError): Promise<void>;
  /** A leader takes down a node that it knows nothing of, or other things. */
  takeDown(node: NodeFacts): void;
  /** Ends the present life, and all that outlives one. */
  close(error: DroverError): Promise<void>;
  /** Log time goes by another date from now on. */
  dateChanged(): void;
  /** Where this node is. */
  applied(): AppliedHead;
  /** Resolves when this node is there; rejects when the signal fires. */
  reached(at: number, signal?: AbortSignal): Promise<void>;
};

export function createLives(options: LivesOptions, takesTheLead: () => DroverError): Lives {
  const { log, agreed } = options;
  /** Counted once: who takes the lead knows what there is. */
  const files = openFiles(options);
  const listeners = new Set<(life: NodeLife) => void>();
  const waiters = new Set<Waiter>();
  let present: Present | null = null;
  /** Null if it must be built anew. */
  let good: MutableState | null = null;
  let current: MutableState | null = null;
  /** One for all lives: when this node takes the lead, it has a past to compare its wall clock with. */
  let logClock: LogClock | null = null;
  let applied: AppliedHead = { seq: seq(0), hash: "", epoch: 0 };

  function moveTo({ seq: at, hash, epoch }: AppliedHead): void {
    applied = { seq: at, hash, epoch: Math.max(epoch, applied.epoch) };
    for (const waiter of waiters) if (waiter.seq <= at) waiter.resolve();
  }

  async function begin(role: Role, leads: () => boolean): Promise<Life> {
    const built = good === null ? await recover(log) : null;
    const state = built?.state ?? (good as MutableState);
    const start = built === null ? applied : { seq: seq(state.seq), hash: built.hash };
    // Whatever happens until the life has ended well, this state is not to be built on.
    good = null;
    const checkpoints = await log.checkpoints();
    const snapshotSeq = checkpoints.at(-1)?.seq ?? seq(0);
    const { epoch } = await log.head();
    const onCommit = ({ head }: { readonly head: Head }): void => {
      moveTo(head);
      options.onApplied();
    };
    current = state;
    logClock ??= logClockOver(agreed.clock, () => current ?? state, createClockWatch(options.onApart, agreed.isMoved));
    if (role.type === "leader") logClock.begin();
    const life = await startLife({ ...options, files, logClock, state, snapshotSeq, role, onCommit });
    const ending = new AbortController();
    present = { role: role.type, drover: apiOf(life), leads, signal: ending.signal, life, ending };
    for (const listener of [...listeners]) listener(present);
    // What it began with may be more than what the log had when it was asked, and nothing need ever come behind it.
    if (start.seq >= applied.seq) moveTo({ ...start, epoch });
    return life;
  }

  const follow = (): Promise<Life> => begin({ type: "follower", follow: log.follow }, () => false);

  async function lead({ epoch, holds }: Lead): Promise<Life> {
    await drop(takesTheLead());
    const life = await begin({ type: "leader", epoch, holds, config: options.config(), node: options.self() }, holds);
    moveTo({ ...applied, epoch });
    return life;
  }

  async function drop(error: DroverError): Promise<void> {
    if (present === null || present.signal.aborted) return;
    const { life, ending } = present;
    ending.abort(error);
    await dropLife(life, error);
    const { state, committedSeq } = life.writer;
    if (error.code !== "broken" && state.seq === committedSeq()) good = state as MutableState;
  }

  function reached(at: number, signal?: AbortSignal): Promise<void> {
    if (at <= applied.seq) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const end = (): void => {
        waiters.delete(waiter);
        signal?.removeEventListener("abort", giveUp);
      };
      const giveUp = (): void => {
        end();
        reject(signal?.reason);
      };
      const waiter: Waiter = {
        seq: at,
        resolve: () => {
          end();
          resolve();
        },
      };
      if (signal?.aborted === true) return giveUp();
      waiters.add(waiter);
      signal?.addEventListener("abort", giveUp);
    });
  }

  return {
    present: () => present as Present,
    isLiving: () => present !== null && !present.signal.aborted,
    onLife(listener) {
      listeners.add(listener);
      if (present !== null) listener(present);
      return () => void listeners.delete(listener);
    },
    follow,
    lead,
    drop,
    async close(error) {
      await drop(error);
      await files.stop();
    },
    takeDown({ id, url, key }) {
      if (present !== null) notify(present.life.writer, { type: "join-node", node: id, url, key, leads: false });
    },
    dateChanged() {
      // What a follower has shown is written nowhere. A leader goes on from what it wrote.
      if (present?.role === "follower") logClock?.begin();
    },
    applied: () => applied,
    reached,
  };
}
