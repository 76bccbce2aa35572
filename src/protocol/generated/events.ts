/**
 * Types of the wire: those of shapes/events.ts.
 *
 * Written by tools/schema-declarations.ts from the schemas: change those, and run it.
 */

import type { EventKind } from "../../core/model/index.ts";

/** Which events, and how many of them. */
export type EventsQuery = {
  /** Events behind this number. Last-Event-ID says the same. Default: 0. */
  readonly after?: number;
  /** How many in a page of JSON. Default: 100. */
  readonly limit?: number;
  /** Only events about this task. */
  readonly task?: string;
  /** Only these, as in kind=task-done,task-failed. */
  readonly kind?: readonly EventKind[];
  /** Only those since this instant, in log time. */
  readonly since?: string;
  /**
   * Only events about tasks with this label; given again, with all of them. Of a task whose record is
   * gone they are found if its task-submitted was read before, by the same request.
   */
  readonly label?: string | readonly string[];
};

/** The process is alive. */
export type Health = {
  /** How it stands now. */
  readonly status: "ok";
  /** The version of the server. */
  readonly version: string;
};

/** The server takes work. */
export type Readiness = {
  /** How it stands now. */
  readonly status: "ready";
  /** The number of the last event in the log. */
  readonly seq: number;
  /** This start of the server: no other has the same. server.json in its data directory names it too. */
  readonly serverId: string;
  /**
   * How far log time is ahead of the wall clock: above zero after that one was set back, below while it
   * is doubted.
   */
  readonly logTimeAheadMs: number;
  /** Of a node of a cluster: what it does. */
  readonly role?: "leader" | "follower";
  /** Of a node of a cluster: how often the lead has changed. */
  readonly epoch?: number;
  /** Of a node of a cluster: for how long it may have missed what the leader did. */
  readonly lagMs?: number;
  /** Of a node of a cluster: why it answers reads and takes nothing else: its journal is full. */
  readonly readOnly?: string;
  /** Of a node of a cluster: how many others are down; absent: none. */
  readonly nodesDown?: number;
};
