/**
 * What a program says of the worker it starts, read at the door: what is unknown or wrong is refused by name.
 */

import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { type Client, ClientError, type ClientOptions } from "../../client/index.ts";
import { sentence } from "../../core/base/index.ts";
import { type JoinBody, joinBody, readShape, syncBody, type WorkerResources } from "../../protocol/index.ts";
import type { WorkerLogs } from "./logs.ts";
import { TIMER_MS_MAX } from "./wire.ts";

/** All slots are named in one body, whose size is limited. Workers of one process share their thread: start more. */
const SLOTS_MAX = 1000;
const KILL_GRACE_MS = 10_000;

/** How a worker joins, and what it takes. */
export type PullWorkerOptions = {
  /** Where the server is; several nodes as a list, or as a text with commas. http://127.0.0.1:4747 if absent. */
  readonly url?: string | readonly string[];
  /** Who calls, where the server asks for it. */
  readonly token?: string;
  /** Keep it over restarts, so that the worker keeps its name. Two that run at the same time need two. */
  readonly id?: string;
  /** How many tasks at once; 1 if absent. */
  readonly slots?: number;
  /** How many of the slots it uses to begin with, until its `limit` is called; all if absent, and at most. */
  readonly limit?: number;
  /**
   * How many tasks it may fetch ahead of its slots while its tasks are over within moments, so that its slots are not
   * empty while it asks for more. What it cannot begin soon it gives back. As many as it has slots if absent, and at
   * most; 0: none.
   */
  readonly ahead?: number;
  /** What it offers. */
  readonly capabilities?: readonly string[];
  /** What it offers of its machine. */
  readonly resources?: WorkerResources;
  /** Where it is. */
  readonly zone?: string | null;
  /** Which tasks it takes, by action, type and project: one name or pattern with `*` or more; all if absent. */
  readonly actions?: readonly string[] | null;
  /** Which tasks it takes, by their type. */
  readonly types?: readonly string[] | null;
  /** Which tasks it takes, by their project. */
  readonly projects?: readonly string[] | null;
  /** How many of its tasks may have a worktree at once, until its `limitWorktrees` is called; any number if absent. */
  readonly worktrees?: number | null;
  /** Closes the worker when it fires, also while it still tries to join. */
  readonly signal?: AbortSignal;
  /** How long a handler that was told to stop has for it; 10 s if absent. */
  readonly killGraceMs?: number;
  /** How long the server may be away before the worker gives up; for ever if absent. */
  readonly giveUpMs?: number;
  /** The logs it keeps of its attempts, for those who ask the server for one; none if absent. */
  readonly logs?: WorkerLogs;
  /** A task whose last attempt was here, and which was to go on with another round or after an answer, has ended. */
  readonly onOver?: (taskId: string) => void;
  /** What goes wrong on the side; a process warning if absent. */
  readonly onWarning?: (message: string) => void;
  /**
   * In place of the global fetch, or of the whole client. The connection is then kept on this event loop, not in a
   * thread of its own, so a handler that blocks the loop loses its lease: meant for tests.
   */
  readonly fetch?: ClientOptions["fetch"];
  /** How it talks to the server, beside address and token. */
  readonly client?: Client;
};
export type ReadOptions = PullWorkerOptions &
  Required<Pick<PullWorkerOptions, "killGraceMs" | "onWarning">> & {
    readonly join: JoinBody & { readonly id: string; readonly slots: number };
  };

const OWN = [
  ...[
    "url",
    "token",
    "signal",
    "killGraceMs",
    "giveUpMs",
    "limit",
    "ahead",
    "logs",
    "onOver",
    "onWarning",
    "fetch",
    "client",
  ],
];
const JOIN = ["id", "slots", "capabilities", "resources", "zone", "actions", "types", "projects", "worktrees"];

export function readOptions(options: PullWorkerOptions): ReadOptions {
  if (typeof options !== "object" || options === null) throw bad("options must be an object");
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const known = [...JOIN, ...OWN];
  const unknown = given.find(([key]) => !known.includes(key));
  if (unknown !== undefined) throw bad(`${unknown[0]} is not an option; known are ${known.join(", ")}`);
  const join = readJoin(given.filter(([key]) => JOIN.includes(key)));
  const own: PullWorkerOptions = Object.fromEntries(given.filter(([key]) => OWN.includes(key)));
  const { signal, logs, killGraceMs = KILL_GRACE_MS, giveUpMs = 0, limit, ahead, onWarning = warnOnce } = own;
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw bad("signal must be an AbortSignal");
  if (typeof onWarning !== "function") throw bad("onWarning must be a function");
  if (own.onOver !== undefined && typeof own.onOver !== "function") throw bad("onOver must be a function");
  for (const [field, span] of Object.entries({ killGraceMs, giveUpMs })) checkSpan(field, span);
  if (limit !== undefined) checkCount("limit", limit);
  if (ahead !== undefined) checkCount("ahead", ahead);
  if ((ahead ?? 0) > join.slots) throw bad(`ahead is ${ahead}, and must be at most slots, which is ${join.slots}`);
  if (logs !== undefined) checkLogs(logs);
  return { ...own, join, killGraceMs, onWarning };
}

function readJoin(given: readonly (readonly [string, unknown])[]): ReadOptions["join"] {
  const body = readShape(joinBody, Object.fromEntries(given));
  if (!body.ok) throw bad(sentence(body.failure));
  const { slots = 1, id = ownName() } = body.value;
  for (const field of ["actions", "types", "projects"] as const)
    if (body.value[field]?.length === 0) throw bad(`${field} is empty, so no task would ever come; all if absent`);
  if (slots > SLOTS_MAX) throw bad(`slots is ${slots}, and must be at most ${SLOTS_MAX}; start more workers instead`);
  return { ...body.value, id, slots };
}

function checkLogs(logs: WorkerLogs): void {
  if (typeof logs?.read !== "function") throw bad("logs.read must be a function that is asked for a log");
  const said = readShape(syncBody, { logPlace: logs.place ?? null });
  if (!said.ok) throw bad(sentence(said.failure).replace("logPlace", "logs.place"));
}

/** A name of its own that says where it runs. It is chosen here so that joining twice is joining once. */
const ownName = (): string => `${hostname().replaceAll(/[^\w.-]/g, "_")}-${process.pid}-${randomUUID().slice(0, 8)}`;

/** How many at once: of a part of a task a server knows nothing. */
export function checkCount(field: string, value: unknown): void {
  if (!Number.isSafeInteger(value) || Number(value) < 0)
    throw bad(`${field} is ${String(value)}, and must be a whole number from 0`);
}

function checkSpan(field: string, value: unknown): void {
  if (typeof value === "number" && value >= 0 && value <= TIMER_MS_MAX) return;
  throw bad(`${field} is ${String(value)}, and must be milliseconds from 0 to ${TIMER_MS_MAX}`);
}

const bad = (message: string): ClientError => new ClientError("bad_request", message);
const warnOnce = (message: string): void => process.emitWarning(message, "DroverWorkerWarning");
