/**
 * What a key does: the next view, and perhaps something to be done for it. Nothing is done here.
 *
 * What ends a task or stops the fleet is asked for first; a letter that was meant for the filter cancels nothing.
 */

import { type Marked, markable, panelRows } from "./frame.ts";
import type { Action, Picture, Size, View } from "./picture.ts";
import { TABS } from "./picture.ts";

/** A key as a terminal says it: a letter, or its name. */
export type Key = {
  readonly text: string;
  readonly name: "up" | "down" | "pageUp" | "pageDown" | "tab" | "backTab" | "enter" | "escape" | "erase" | null;
};
export type Pressed = { readonly view: View; readonly action: Action | null; readonly isOver: boolean };
type Seen = { readonly picture: Picture; readonly size: Size; readonly now: number };

const FILTER_MAX = 100;

/** Narrow enough for any terminal. */
export const HELP: readonly string[] = [
  "q        quit",
  "Tab      the next tab; Shift-Tab the one before; 1 to 6 one of them",
  "↑ ↓      choose a row; j and k do the same",
  "/        filter: rows that have these letters; Esc clears it",
  "w        why the task does not run: what holds it, who is ahead",
  "l        the end of what the task has written",
  "c        cancel the task",
  "r        retry a task that failed, was cancelled or skipped",
  "p        pause, or go on: the chosen project, else the whole fleet",
  "?        this help; Esc leaves it",
  "",
  "The scheduler shows the calls of the gates where there are any, else",
  "tasks. Of a call, w, l, c and r mean the task that makes it.",
  "What is shown is at most a few seconds old, what w and l show too.",
];

export function press(view: View, key: Key, seen: Seen): Pressed {
  const fresh = { ...view, said: null };
  if (view.asked !== null) return answer(fresh, view.asked.action, key);
  if (view.isTyping) return only(typed(fresh, key));
  if (key.text === "q") return { view: fresh, action: null, isOver: true };
  if (view.panel !== null) return only(scrolled(fresh, key, seen));
  return chosen(fresh, key, seen, view);
}

const only = (view: View): Pressed => ({ view, action: null, isOver: false });
const say = (view: View, text: string): Pressed => only({ ...view, said: { text, isBad: true } });

/** Only y does it. */
const answer = (view: View, action: Action, { text }: Key): Pressed => ({
  view: { ...view, asked: null, said: text === "y" ? null : { text: "Nothing was done.", isBad: false } },
  action: text === "y" ? action : null,
  isOver: false,
});

function typed(view: View, { text, name }: Key): View {
  if (name === "enter") return { ...view, isTyping: false };
  if (name === "escape") return { ...view, isTyping: false, filter: "" };
  if (name === "erase") return { ...view, filter: [...view.filter].slice(0, -1).join("") };
  return name === null ? { ...view, filter: (view.filter + text).slice(0, FILTER_MAX), marked: null } : view;
}

function scrolled(view: View, { text, name }: Key, seen: Seen): View {
  const { panel } = view;
  if (panel === null || name === "escape" || text === "?") return { ...view, panel: null };
  const page = panelRows({ ...seen, view });
  const steps = { up: -1, down: 1, pageUp: -page, pageDown: page };
  const step = name === null ? { j: 1, k: -1, " ": page }[text] : steps[name as keyof typeof steps];
  if (step === undefined) return view;
  const last = Math.max(0, panel.lines.length - page);
  return { ...view, panel: { ...panel, top: Math.max(0, Math.min(last, panel.top + step)) } };
}

/** What came last goes first: a message, the filter, the choice of a row. */
function left({ said, filter }: View, view: View): View {
  if (said !== null) return view;
  return filter === "" ? { ...view, marked: null } : { ...view, filter: "" };
}

function chosen(view: View, { text, name }: Key, seen: Seen, before: View): Pressed {
  if (name === "tab" || name === "backTab") return only(inTab(view, name === "tab" ? 1 : -1));
  if (name === "escape") return only(left(before, view));
  const step = { up: -1, down: 1, pageUp: -10, pageDown: 10, j: 1, k: -1 }[name ?? text];
  if (step !== undefined) return only(moved(view, step, seen));
  switch (text) {
    case "/":
      return only({ ...view, isTyping: true });
    case "?":
      return only({ ...view, panel: { title: "Keys", lines: HELP, top: 0, of: null } });
    case "p":
      return only(pausing(view, seen));
    case "w":
      return withTask(view, seen, (task) => ({ view, action: { kind: "why", task }, isOver: false }));
    case "l":
      return withTask(view, seen, (task) => ({ view, action: { kind: "log", task }, isOver: false }));
    case "r":
      return withTask(view, seen, (task) => ({ view, action: { kind: "retry", task }, isOver: false }));
    case "c":
      return withTask(view, seen, (task) =>
        only({ ...view, asked: { question: `Cancel ${task}?`, action: { kind: "cancel", task } } }),
      );
    default: {
      const tab = TABS[Number(text) - 1];
      return only(tab === undefined ? view : { ...view, tab, marked: null });
    }
  }
}

function inTab(view: View, step: number): View {
  const at = (TABS.indexOf(view.tab) + step + TABS.length) % TABS.length;
  return { ...view, tab: TABS[at] ?? view.tab, marked: null };
}

function moved(view: View, step: number, seen: Seen): View {
  const all = markable({ ...seen, view });
  if (all.length === 0) return { ...view, marked: null };
  const at = all.findIndex(({ id }) => id === view.marked);
  const first = step > 0 ? 0 : all.length - 1;
  // A row that is gone leaves its place to the one that is there now.
  const wanted = at >= 0 ? at + step : view.marked === null ? first : view.markedAt;
  const next = Math.max(0, Math.min(all.length - 1, wanted));
  return { ...view, marked: all[next]?.id ?? null, markedAt: next };
}

const markedIn = (view: View, seen: Seen): Marked | undefined =>
  markable({ ...seen, view }).find(({ id }) => id === view.marked);

function withTask(view: View, seen: Seen, then: (task: string) => Pressed): Pressed {
  const marked = markedIn(view, seen);
  if (marked === undefined) return say(view, "Choose a task first: ↑ ↓, in the tabs Scheduler and Tasks.");
  if (marked.task !== null) return then(marked.task);
  const isCall = view.tab === "scheduler";
  return say(view, isCall ? `${marked.id} is a call of no task.` : "This key is for tasks: see Scheduler and Tasks.");
}

/** The project that is chosen, else the fleet; what is paused goes on. */
function pausing(view: View, { picture }: Seen): View {
  const project = view.tab === "projects" ? picture.projects?.find(({ id }) => id === view.marked) : undefined;
  const isPaused = project === undefined ? picture.line.paused : project.status === "paused";
  const what = project === undefined ? "the whole fleet" : `project ${project.id}`;
  const question = isPaused ? `Go on with ${what}?` : `Pause ${what}? What runs goes on.`;
  return {
    ...view,
    asked: { question, action: { kind: isPaused ? "resume" : "pause", project: project?.id ?? null } },
  };
}
