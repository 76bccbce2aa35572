/**
 * The files of tasks on every node: a content that a task lists and that is not here is fetched from one that has it.
 *
 * An upload lies on the node that took it, which is the leader. As soon as an event says that a task has a file, every
 * other node fetches it, so that it is still there when that node is lost. What could not be fetched, or came about
 * while this node was away, is found by looking at all that tasks list: when a life begins, and every minute while
 * something is missing. One is fetched at a time, at a bounded rate, and what comes is compared with its hash before it
 * is kept, within the same limits as an upload.
 */
import type { IncomingMessage } from "node:http";
import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import { headerText } from "../../http/index.ts";
import { FORWARDED_HEADER } from "../../protocol/wire/index.ts";
import { type Clock, nextTurn, restFor, ringAfter } from "../../std/index.ts";
import type { Doors } from "./doors.ts";
import { createPeers, type Peers } from "./peers.ts";

/** More that are missing are found by the next look. */
const WANTED_MAX = 10_000;
const LOOK_MS = 60_000;
const LOOKED_AT_ONCE = 1000;
const COPY_MS = 120_000;
const BYTES_PER_MS = 32 * 1024;

/** Contents that callers wait for, at once. */
const AWAITED_MAX = 32;

export type FileCopies = {
  /** Fetches a content that a task lists. Whether it is here then. */
  fetch(hash: string): Promise<boolean>;
  stop(): Promise<void>;
};
type CopyDeps = {
  readonly node: Pick<DroverNode, "id" | "peers" | "onLife">;
  readonly drover: Pick<Drover, "state" | "files" | "watch">;
  readonly doors: Pick<Doors, "tokenFor" | "answered">;
  readonly clock: Clock;
  readonly onWarning: (message: string) => void;
};

/** A disk without room refuses thousands, every minute: all of one look are one line. */
function createFailures(onWarning: (message: string) => void): { add(text: string): void; tell(): void } {
  let [count, first] = [0, ""];
  return {
    add(text) {
      if (++count === 1) first = text;
    },
    tell() {
      if (count > 0) onWarning(count === 1 ? first : `${first}; and ${count - 1} more could not be copied`);
      [count, first] = [0, ""];
    },
  };
}

export function startFileCopies({ node, drover, doors, clock, onWarning }: CopyDeps): FileCopies {
  const peers = createPeers(clock);
  const wanted = new Set<string>();
  const over = new AbortController();
  const failures = createFailures(onWarning);
  /** What is being copied because a caller waits for it. */
  const awaited = new Map<string, Promise<boolean>>();
  let working: Promise<void> | null = null;
  let cancelLook: (() => void) | null = null;

  const isWanted = (hash: string): boolean => drover.state.files.has(hash) && !drover.files.has(hash);
  function want(hash: string): void {
    if (wanted.size < WANTED_MAX && isWanted(hash)) wanted.add(hash);
  }

  function begin(): void {
    if (working !== null || wanted.size === 0 || over.signal.aborted) return;
    working = fetchAll()
      .finally(failures.tell)
      .catch((error: unknown) => onWarning(`files of tasks are not copied to this node for now: ${String(error)}`))
      .finally(() => {
        working = null;
        begin();
      });
  }

  async function fetchAll(): Promise<void> {
    for (const hash of wanted) {
      wanted.delete(hash);
      if (over.signal.aborted) return;
      if (!isWanted(hash)) continue;
      const size = await copy(hash);
      if (size === null) lookLater();
      else await restFor(clock, Math.ceil(size / BYTES_PER_MS), { keepAlive: false });
    }
  }

  /** From the first node that has it; null if none has. */
  async function copy(hash: string): Promise<number | null> {
    for (const { id, url } of node.peers()) {
      const answer = await ask(peers, { id, url, hash });
      if (answer === null) continue;
      try {
        return (await drover.files.put(answer, { hash })).size;
      } catch (error) {
        if (over.signal.aborted) return null;
        failures.add(`the file ${hash} could not be copied from node ${id}: ${String(error)}`);
      }
    }
    return null;
  }

  async function ask({ ask: send }: Peers, { id, url, hash }: { id: string; url: string; hash: string }) {
    const ending = new AbortController();
    const cancel = ringAfter(clock, COPY_MS, () => ending.abort(new Error("it took too long")), { keepAlive: false });
    const signal = AbortSignal.any([over.signal, ending.signal]);
    let taken: IncomingMessage | null = null;
    try {
      const token = await doors.tokenFor({ id, url });
      if (token === null) throw new Error("it does not let this node in");
      const headers = { [FORWARDED_HEADER]: headerText(node.id), authorization: `Bearer ${token}` };
      const answer = await send({ base: url, path: `/files/${hash}`, method: "GET", headers, body: null, signal });
      doors.answered({ id, url }, answer.statusCode ?? 0);
      if (answer.statusCode === 200) taken = answer;
      else answer.destroy();
    } catch {
      // It is out of reach, or not the node that is meant: another may have it.
    }
    if (taken === null) cancel();
    else taken.once("close", cancel);
    return taken;
  }

  async function look(): Promise<void> {
    // Where they could not be counted, none is taken in.
    const isCounted = await drover.files.counted().then(
      () => true,
      () => false,
    );
    if (!isCounted) return;
    let looked = 0;
    for (const hash of drover.state.files.keys()) {
      want(hash);
      if (++looked % LOOKED_AT_ONCE === 0) await nextTurn();
      if (over.signal.aborted) return;
    }
    begin();
  }

  function lookLater(): void {
    cancelLook ??= ringAfter(
      clock,
      LOOK_MS,
      () => {
        cancelLook = null;
        void look();
      },
      { keepAlive: false },
    );
  }

  const stopListening = [
    node.onLife(() => void look()),
    drover.watch((batch) => {
      for (const { event } of batch) if (event.kind === "attempt-files") for (const { hash } of event.files) want(hash);
      begin();
    }),
  ];
  return {
    fetch(hash) {
      const begun = awaited.get(hash);
      if (begun !== undefined) return begun;
      if (awaited.size >= AWAITED_MAX || over.signal.aborted) return Promise.resolve(false);
      const copied = copy(hash)
        .then((size) => size !== null)
        .finally(() => {
          awaited.delete(hash);
          if (working === null) failures.tell();
        });
      awaited.set(hash, copied);
      return copied;
    },
    async stop() {
      for (const stop of stopListening) stop();
      cancelLook?.();
      over.abort(new Error("this node stops"));
      await Promise.all([working, ...awaited.values()]);
      peers.close();
    },
  };
}
