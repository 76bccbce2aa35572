/**
 * (state, command, now) → events, or a refusal.
 *
 * Pure: the same state, command and instant give the same answer, and asking leaves no mark. This file
 * only sends each command to the module that owns its rules.
 */

import type { Instant } from "./base/brand.ts";
import { fail, ok, unreachable } from "./base/result.ts";
import { decideSubmit, PROJECTS_MAX } from "./lifecycle/admission.ts";
import { decideApproval } from "./lifecycle/approval.ts";
import { decideAttempt } from "./lifecycle/attempt-report.ts";
import { decideCallback } from "./lifecycle/callbacks.ts";
import { decideRemoval, decideReset, decideThrottle } from "./lifecycle/gates.ts";
import { decideDrop, decidePermit, decideSettle } from "./lifecycle/permits.ts";
import { decidePlan } from "./lifecycle/plans.ts";
import { decideSchedule } from "./lifecycle/schedule.ts";
import { decideCancel, decidePatch, decideRetry } from "./lifecycle/task-commands.ts";
import { decideChange, decideEngineStart, decideJoin, decideLeave } from "./lifecycle/worker-commands.ts";
import { type Command, type CommandOf, type Decided, REPEATED } from "./model/commands.ts";
import type { Event } from "./model/events.ts";
import type { ReadonlyProject, ReadonlyState, ReadonlyTask } from "./model/read-only.ts";
import { hasEnded } from "./model/state.ts";
import { pump } from "./pump.ts";

type Rule<Type extends Command["type"]> = (state: ReadonlyState, command: CommandOf<Type>, now: Instant) => Decided;

const RULES: { readonly [Type in Command["type"]]: Rule<Type> } = {
  pump: (state, _command, now) => ok({ events: pump(state, now) }),
  "submit-task": decideSubmit,
  "cancel-task": decideCancel,
  "retry-task": decideRetry,
  "approve-task": decideApproval,
  "patch-task": decidePatch,
  "start-attempt": decideAttempt,
  "report-usage": decideAttempt,
  "finish-attempt": decideAttempt,
  "lose-attempt": decideAttempt,
  "return-attempt": decideAttempt,
  "ask-permit": decidePermit,
  "drop-permit": decideDrop,
  "settle-permit": decideSettle,
  "throttle-gate": decideThrottle,
  "reset-gate": decideReset,
  "remove-gate": decideRemoval,
  "join-worker": decideJoin,
  "change-worker": decideChange,
  "leave-worker": decideLeave,
  "settle-callback": decideCallback,
  "put-schedule": decideSchedule,
  "move-schedule": decideSchedule,
  "remove-schedule": decideSchedule,
  "put-plan": decidePlan,
  "pause-plan": decidePlan,
  "remove-plan": decidePlan,
  "renew-plan": decidePlan,
  "cut-plan": decidePlan,
  "start-engine": decideEngineStart,
  "join-node": decideNode,
  "set-config": (_state, { config, patch = null }, now) => one({ kind: "config-changed", at: now, config, patch }),
  "put-project": decideProject,
  "set-paused": decidePause,
  "artifact-ready": ({ artifacts }, { artifact }, now) =>
    artifacts.has(artifact) ? one({ kind: "artifact-appeared", at: now, artifact }) : REPEATED,
  "count-rejected": (_state, { counts }, now) => one({ kind: "tasks-rejected", at: now, counts }),
};

/** The events that make a command true, or a refusal. The state is only read. */
export function decide(state: ReadonlyState, command: Command, now: Instant): Decided {
  const rule = RULES[command.type] as Rule<never> | undefined;
  return rule === undefined ? unreachable(command as never) : rule(state, command as never, now);
}

const one = (event: Event): Decided => ok({ events: [event] });

function decideNode({ cluster }: ReadonlyState, command: CommandOf<"join-node">, now: Instant): Decided {
  const { node, url, key, leads } = command;
  const known = cluster.nodes.get(node);
  const isKnown = known?.url === url && known.key === key && (!leads || cluster.leader === node);
  return isKnown ? REPEATED : one({ kind: "node-joined", at: now, node, url, key, leads });
}

function decideProject(state: ReadonlyState, command: CommandOf<"put-project">, now: Instant): Decided {
  const { project, settings } = command;
  if (!state.projects.has(project) && state.projects.size >= PROJECTS_MAX) {
    return fail({ type: "too-many", what: "projects", max: PROJECTS_MAX });
  }
  return one({ kind: "project-put", at: now, project, settings, source: "put" });
}

function decidePause(state: ReadonlyState, command: CommandOf<"set-paused">, now: Instant): Decided {
  const { scope, id, paused } = command;
  const changed: Event = { kind: "pause-changed", at: now, scope, id, paused };
  if (scope === "fleet") return state.paused === paused ? REPEATED : one(changed);
  if (scope === "project") {
    const project = state.projects.get(id as ReadonlyProject["id"]);
    if (project === undefined) return fail({ type: "project-unknown", project: id });
    return (project.status === "paused") === paused ? REPEATED : one(changed);
  }
  const task = state.tasks.get(id as ReadonlyTask["id"]);
  if (task === undefined) return fail({ type: "task-unknown", task: id });
  if (hasEnded(task)) return fail({ type: "task-ended", task: id, state: task.phase });
  return task.paused === paused ? REPEATED : one(changed);
}
