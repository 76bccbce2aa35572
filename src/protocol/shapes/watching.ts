/**
 * What somebody who looks on asks for: who they are here, whether anything has happened, what is tied to a task, and
 * how things stood over the last hours.
 */
import type * as wire from "../generated/watching.ts";
import * as s from "../schema/schema.ts";
import { ROLES, type Role } from "../wire/role.ts";
import { TASK_STATES, type TaskState } from "../wire/task-state.ts";

/** How many samples one answer holds at most, how far apart they are taken, and for how long they are kept. */
export const SAMPLES_MAX = 1000;
export const SAMPLE_EVERY_MS = 10_000;
export const SAMPLES_KEPT_MS = 21_600_000;
/** How many links of each direction one answer lists, and how far behind the first one it may begin. */
export const LINKS_MAX = 1000;
const LINKS_SKIPPED_MAX = 10_000_000;

/** How many knobs one answer holds. */
export const SETTINGS_MAX = 2000;

/** How many tasks that need a person are listed. */
export const STUCK_MAX = 50;

const count = (): s.Schema<number> => s.whole(0);

export const whoAmI: s.Schema<wire.WhoAmI> = s.namedAnswer("WhoAmI", {
  role: s.described(s.oneOf<Role>(...ROLES), "What the token allows; admin where the server has no tokens."),
  project: s.optional(s.name(), "The one project that the token is scoped to."),
  projects: s.optional(s.list(s.name()), "All that it is scoped to; absent: every project."),
  agentId: s.optional(s.name(), "The one agent that it speaks for; absent: every agent."),
});

export const pulse: s.Schema<wire.Pulse> = s.namedAnswer("Pulse", {
  seq: s.described(s.whole(0), "The number of the last event: while it is the same, nothing has happened."),
  at: s.described(s.instant(), "The time of the log."),
  serverId: s.described(s.text(1, 100), "This start of the server."),
  version: s.text(1, 100),
  paused: s.flag(),
  waiting: count(),
  queued: count(),
  inFlight: count(),
  parked: s.described(count(), "How many are parked: they wait for somebody's word, or for their children."),
  asking: s.described(count(), "How many of them wait for somebody's word."),
  maxInFlight: count(),
  node: s.optional(
    s.answer({
      role: s.described(s.oneOf("leader", "follower"), "What it is now, as far as it knows."),
      trouble: s.optional(
        s.oneOf("journal-away", "behind", "read-only"),
        "journal-away: it does not reach the journal; behind: it has not all of it; read-only: the journal is full.",
      ),
      since: s.optional(s.instant(), "What it shows may be as old as this; absent: it is of now."),
      down: s.optional(
        s.list(s.answer({ id: s.name(), since: s.described(s.instant(), "When it was heard of last.") })),
        "Other nodes that are down: silent for some seconds, within the last hour; absent: none.",
      ),
    }),
    "Of a node of a cluster.",
  ),
});

const link: s.Schema<wire.TaskLink> = s.answer({
  taskId: s.name(),
  state: s.described(s.oneOf<TaskState>(...TASK_STATES), "Where it stands."),
  kind: s.described(
    s.oneOf("parent", "need", "child", "dependent"),
    "parent and need are waited for; child and dependent wait, or grew below.",
  ),
});
export const taskLinks: s.Schema<wire.TaskLinks> = s.namedAnswer("TaskLinks", {
  taskId: s.name(),
  up: s.described(s.list(link), "What it is below of and what it needs."),
  down: s.described(s.list(link), "What grew below it and what needs it, in the order of submission."),
  upTotal: s.described(count(), "How many there are in all of these."),
  downTotal: s.described(count(), "How many there are in all of those."),
  omitted: s.optional(
    count(),
    "How many of both come behind the last ones that are listed; upSkip and downSkip reach them.",
  ),
});
const skip = (): s.Schema<number> => s.whole(0, LINKS_SKIPPED_MAX);
export const linksQuery: s.Schema<wire.LinksQuery> = s.object({
  limit: s.optional(s.whole(1, LINKS_MAX), "How many of each direction are listed at most.", { default: LINKS_MAX }),
  upSkip: s.optional(skip(), "How many of what it waits for come before the first that is listed.", { default: 0 }),
  downSkip: s.optional(skip(), "How many of what waits for it come before the first that is listed.", { default: 0 }),
});

const stuckTask: s.Schema<wire.StuckTask> = s.answer({
  taskId: s.described(s.name(), "The first of them in line."),
  project: s.name(),
  agentId: s.name(),
  why: s.described(
    s.oneOf("never-fits", "overdue"),
    "never-fits: no worker that is here could ever run it; overdue: it has waited for priority.starvationAfter.",
  ),
  waitMs: count(),
  count: s.described(s.whole(1), "How many tasks of its agent stand in the same line."),
});
export const stuck: s.Schema<wire.Stuck> = s.namedAnswer("Stuck", {
  tasks: s.described(s.list(stuckTask), `Those that have waited longest first, at most ${STUCK_MAX}.`),
});

const settingOrigin = s.oneOf("default", "file", "variable", "flag", "patch", "leader");
const settingWhere = (of: string) => s.optional(s.text(1, 5000), `File and line, the variable${of}.`);
const setting: s.Schema<wire.SettingView> = s.answer({
  path: s.described(s.text(1, 1000), "Where it stands in drover.yml."),
  value: s.described(s.anything(), "What is in force. Secrets are left out."),
  default: s.optional(s.anything(), "What it is where nobody sets it; absent: nothing."),
  origin: s.described(
    settingOrigin,
    "Who set it. leader: the config of the node that leads, which differs from that of this one.",
  ),
  where: settingWhere(", the flag, the call that patched it, or the node that leads"),
  own: s.optional(
    s.answer({
      value: s.described(s.anything(), "null: nothing."),
      origin: s.described(settingOrigin, "Who set it."),
      where: settingWhere(" or the flag"),
    }),
    "What this node's own config says, where another is in force. It would hold if this node led.",
  ),
  about: s.optional(s.text(0, 5000), "What it means."),
});
export const settingsView: s.Schema<wire.SettingsView> = s.namedAnswer("SettingsView", {
  settings: s.described(
    s.list(setting),
    `Every knob, in the order of the reference, at most ${SETTINGS_MAX}. None where a program gave the config.`,
  ),
  omitted: s.optional(count(), "How many were left out."),
});

const place = (): s.Schema<wire.LogPlace> =>
  s.answer({
    seq: s.described(s.whole(0), "The number of the event; 0: before the first."),
    hash: s.described(s.text(64, 64), "The hash of the chain there."),
  });
export const verified: s.Schema<wire.Verified> = s.namedAnswer("Verified", {
  ok: s.described(s.flag(), "Whether every link, signature and body holds."),
  upTo: s.described(s.whole(0), "The last event up to which all of it is as it was written."),
  head: s.described(place(), "Where the log ended, with the hash that was found there or is claimed."),
  base: s.described(place(), "Where it begins: what is before was pruned."),
  events: s.described(count(), "How many events were hashed anew."),
  payloads: s.described(count(), "How many bodies were."),
  checkpoints: s.described(count(), "How many snapshots carry a signature that holds."),
  unsignedFrom: s.optional(s.whole(1), "From this event on no signature covers it yet."),
  key: s.optional(s.text(1, 200), "The sha256 of the key of the signatures."),
  witnesses: s.optional(
    s.list(
      s.answer({
        node: s.described(s.name(), "Its name."),
        seq: s.described(s.whole(0), "The event up to which it has signed."),
      }),
    ),
    "Of a node of a cluster: the others that have signed this history with the keys that the log names for them.",
  ),
  problems: s.described(
    s.list<wire.VerifiedProblem>(
      s.answer({
        seq: s.described(s.whole(0), "The event; 0: none alone."),
        message: s.described(s.text(0, 10_000), "What is wrong there."),
      }),
    ),
    "What is wrong; empty where nothing is.",
  ),
});

export const historyQuery: s.Schema<wire.HistoryQuery> = s.object({
  from: s.optional(s.instant(), "The first instant; absent: an hour ago. Six hours are kept."),
  step: s.optional(s.whole(SAMPLE_EVERY_MS, SAMPLES_KEPT_MS), "How many milliseconds apart they are at least.", {
    default: SAMPLE_EVERY_MS,
  }),
  projects: s.optional(s.flag(), "Whether each has its projects.", { default: true }),
});
const projectSample: s.Schema<wire.ProjectSample> = s.answer({
  id: s.name(),
  queued: s.described(count(), "Waiting and queued."),
  inFlight: count(),
  share: s.described(s.finite(0, 1), "What it was charged lately ÷ what all were."),
  target: s.described(s.finite(0, 1), "Its weight ÷ the weights of all."),
  spent: s.described(s.finite(-1e300, 1e300), "Tokens in the budget's window."),
});
const sample: s.Schema<wire.Sample> = s.answer({
  at: s.instant(),
  waiting: count(),
  queued: count(),
  inFlight: count(),
  parked: s.described(count(), "How many were parked: they waited for somebody's word, or for their children."),
  submitted: s.described(count(), "Tasks that were let in, since the log began."),
  done: s.described(count(), "Tasks that were done, since the log began."),
  failed: s.described(count(), "Tasks that failed, since the log began."),
  starts: s.described(count(), "Attempts that were given to a worker, since the log began."),
  waitP50Ms: s.optional(count(), "Half of the tasks that started since the sample before had waited no longer."),
  waitP95Ms: s.optional(count(), "95 in 100 had waited no longer."),
  projects: s.described(s.list(projectSample), "The busiest, at most 20."),
});
export const history: s.Schema<wire.History> = s.namedAnswer("History", {
  step: s.described(s.whole(1), "Milliseconds between two samples."),
  samples: s.described(s.list(sample), `The oldest first, at most ${SAMPLES_MAX}. They outlive a restart.`),
});
