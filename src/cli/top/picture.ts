/**
 * What `drover top` knows at a moment, and what a person has chosen to look at. The frame is made of these two.
 */
import type { EventJson, GateJson, LineView, ProjectView, TaskView, WorkerView } from "../../protocol/index.ts";
import type { NodeWord } from "./trouble.ts";

export const TABS = ["scheduler", "tasks", "projects", "workers", "gates", "events"] as const;
export type Tab = (typeof TABS)[number];

/** One look at the server; a list that no tab has needed yet is null. */
export type Picture = {
  /** When it was read, by the clock of this machine. */
  readonly at: number;
  readonly line: LineView;
  readonly tasks: readonly TaskView[] | null;
  /** The filter that they were searched by; they are the newest of those that match. */
  readonly tasksFilter: string;
  /** There are more of them than were read. */
  readonly hasMoreTasks: boolean;
  readonly projects: readonly ProjectView[] | null;
  readonly workers: readonly WorkerView[] | null;
  readonly gates: readonly GateJson[] | null;
  /** The last ones, the newest last. */
  readonly events: readonly EventJson[] | null;
  /** Why there are no events, where they may not be read. */
  readonly eventsRefused: string | null;
  /** Why there is nothing newer: the server is gone, or is there and refuses to answer. Null: nothing is wrong. */
  readonly lost: { readonly since: number; readonly why: string; readonly isRefusal: boolean } | null;
  readonly node: NodeWord;
};

/** A text over the tab: why, a log, the help. */
export type Panel = {
  readonly title: string;
  readonly lines: readonly string[];
  readonly top: number;
  /** What it answers: it is asked again, since that changes. Null for what stays. */
  readonly of: Question | null;
};
export type Question = { readonly kind: "why" | "log"; readonly task: string };
/** What is done once it is answered with y. */
export type Action =
  | Question
  | { readonly kind: "cancel" | "retry"; readonly task: string }
  | { readonly kind: "pause" | "resume"; readonly project: string | null };

export type View = {
  readonly tab: Tab;
  readonly filter: string;
  /** Keys go into the filter. */
  readonly isTyping: boolean;
  /** The row that is marked, by its id; null: none yet. */
  readonly marked: string | null;
  /** Where it stood when it was marked. */
  readonly markedAt: number;
  readonly panel: Panel | null;
  readonly asked: { readonly question: string; readonly action: Action } | null;
  /** What came of the last key, in a line. */
  readonly said: { readonly text: string; readonly isBad: boolean } | null;
};

export const FIRST_VIEW: View = {
  tab: "scheduler",
  filter: "",
  isTyping: false,
  marked: null,
  markedAt: 0,
  panel: null,
  asked: null,
  said: null,
};

export type Size = { readonly columns: number; readonly rows: number };
