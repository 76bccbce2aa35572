/**
 * The instants at which something will happen by itself.
 *
 * One ordered list of timers for the whole world: deadlines, ends of rests, timeouts, ends of grace. A timer
 * belongs to a task (or to a tab) and goes with it. When its instant comes, `pump` turns it into an
 * event; nothing scans. Boundaries are inclusive: a timer is due at its instant, not after it.
 */
import { insert, remove } from "../collections/sorted-list.ts";
import type { Attempt, State, Tab, Task, Timer, TimerKind } from "../model/state.ts";

/** Sets a task's timer of this kind, replacing the former; a negative instant only clears it. */
export function setTimer(state: State, task: Task, kind: TimerKind, at: number, attempt: Attempt | null = null): void {
  const former = task.timers?.find((timer) => timer.kind === kind);
  if (former !== undefined) {
    if (former.at === at && former.attempt === attempt) return;
    remove(state.timers, former);
    const rest = (task.timers as Timer[]).filter((timer) => timer !== former);
    task.timers = rest.length === 0 ? null : rest;
  }
  if (at < 0) return;
  const timer: Timer = { at, kind, order: task.seq, task, attempt, tab: null };
  insert(state.timers, timer);
  if (task.timers === null) task.timers = [timer];
  else task.timers.push(timer);
}

/** A tab without an owner is waited for until its timer. */
export function setTabTimer(state: State, tab: Tab, at: number): void {
  if (tab.timer !== null) remove(state.timers, tab.timer);
  tab.timer = at < 0 ? null : { at, kind: "tab", order: tab.seq, task: null, attempt: null, tab };
  if (tab.timer !== null) insert(state.timers, tab.timer);
}
