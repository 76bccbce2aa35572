/**
 * Browser tabs: a capability with exactly one owner.
 *
 * A task with a `tabId` needs the worker that owns that tab. While some worker offers the tab such a task
 * waits like any other; once no worker has owned it for `unresolvedAfter` the task fails, since a closed
 * tab does not come back. The clock of a tab starts when a queued task first needs it without an
 * owner, or when its last owner goes.
 */

import { insert, remove, sortedList } from "../collections/sorted-list.ts";
import type { State, Tab, Task } from "../model/state.ts";
import { compareSeqs } from "../turn/total-orders.ts";
import { setTabTimer } from "./timers.ts";

const PREFIX = "tab:";
export const tabCapability = (tab: string): string => `${PREFIX}${tab}`;
export const isTab = (capability: string): boolean => capability.startsWith(PREFIX);

export const newTab = (id: string, seq: number, ownerlessSince: number): Tab => ({
  id,
  seq,
  ownerlessSince,
  timer: null,
  tasks: sortedList<Task>(compareSeqs),
});

export function joinTab(state: State, task: Task): void {
  const id = task.requirements.tab as string;
  let tab = state.tabs.get(id);
  if (tab === undefined) {
    tab = newTab(id, state.seq, -1);
    state.tabs.set(id, tab);
    insert(tab.tasks, task);
    watchTab(state, tab);
  } else insert(tab.tasks, task);
}

export function leaveTab(state: State, task: Task): void {
  const tab = state.tabs.get(task.requirements.tab as string);
  if (tab === undefined) return;
  remove(tab.tasks, task);
  if (tab.tasks.size > 0) return;
  setTabTimer(state, tab, -1);
  state.tabs.delete(tab.id);
}

/** Starts or stops a tab's clock as it loses or gains an owner. */
function watchTab(state: State, tab: Tab): void {
  const isOwned = state.fleet.offered.has(tabCapability(tab.id));
  if (isOwned) tab.ownerlessSince = -1;
  else if (tab.ownerlessSince < 0) tab.ownerlessSince = state.at;
  setTabTimer(state, tab, isOwned ? -1 : tab.ownerlessSince + state.config.scheduler.placement.unresolvedAfter);
}

/** After a worker came, went or changed: only tabs somebody waits for are looked at. */
export function watchTabs(state: State): void {
  for (const tab of state.tabs.values()) watchTab(state, tab);
}
