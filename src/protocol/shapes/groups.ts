/**
 * Groups on the wire: tasks that were submitted together.
 */
import type * as wire from "../generated/groups.ts";
import * as s from "../schema/schema.ts";
import { usageView } from "./usage.ts";

const counts: s.Schema<wire.GroupView["counts"]> = s.answer<wire.GroupView["counts"]>({
  waiting: s.described(s.whole(0), "How many wait for other tasks, an artifact or an instant."),
  queued: s.described(s.whole(0), "How many wait for their turn."),
  assigned: s.described(s.whole(0), "How many a worker has and has not begun."),
  running: s.described(s.whole(0), "How many run."),
  parked: s.described(s.whole(0), "How many are parked: they wait for somebody's word, or for their children."),
  done: s.described(s.whole(0), "How many are done."),
  failed: s.described(s.whole(0), "How many failed."),
  cancelled: s.described(s.whole(0), "How many were cancelled."),
  skipped: s.described(s.whole(0), "How many were skipped."),
});

export const groupView: s.Schema<wire.GroupView> = s.namedAnswer("Group", {
  id: s.name(),
  projects: s.described(s.list(s.name()), "Those its tasks are in, as far as the caller may see them."),
  counts: s.described(counts, "Its tasks by their state, also those whose records are gone."),
  total: s.whole(0),
  usage: s.optional(usageView(), "What the attempts of its tasks used in all."),
  createdAt: s.instant(),
  endedAt: s.optional(s.instant(), "When the last of them ended; absent while one has not."),
});
export const groupCancelled: s.Schema<wire.GroupCancelled> = s.answer<wire.GroupCancelled>({
  status: s.oneOf("cancelled"),
  groupId: s.name(),
  count: s.described(s.whole(0), "How many tasks."),
});
export const groupRetried: s.Schema<wire.GroupRetried> = s.answer<wire.GroupRetried>({
  status: s.oneOf("submitted"),
  groupId: s.name(),
  count: s.described(s.whole(0), "How many tasks run again."),
  refused: s.described(s.whole(0), "How many cannot, since a task they need did not go well and does not run again."),
});
