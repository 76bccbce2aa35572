/**
 * (state, command, now) → events, or a refusal.
 *
 * Pure: the same state, command and instant give the same answer, and asking leaves no mark. This file
 * only sends each command to the module that owns its rules.
 */

import type { Instant } from "./base/brand.ts";
import { fail, ok, unreachable } from "./base/result.ts";
import type { Command, Decided } from "./model/commands.ts";
import type { Event } from "./model/events.ts";
import type { ReadonlyProject, ReadonlyState, ReadonlyTask } from "./model/read-only.ts";
import { hasEnded } from "./model/state.ts";
import { pump } from "./pump.ts";
import { decideSubmit, PROJECTS_MAX } from "./task/admission.ts";
import { decideFinish, decideLoss, decideReturn, decideStart, decideUsage } from "./task/attempt-report.ts";
import { decideCallback } from "./task/callbacks.ts";
import { decideRemoval, decideReset, roomForGate } from "./task/gates.ts";
import { decideDrop, decidePermit, decideSettle } from "./task/permits.ts";
import { decideSchedule } from "./task/schedule.ts";
import { decideCancel, decidePatch, decideRetry } from "./task/task-commands.ts";
import { decideChange, decideEngineStart, decideJoin, decideLeave } from "./task/worker-commands.ts";

/** The events that make a command true, or a refusal. The state is only read. */
export function decide(state: ReadonlyState, command: Command, now: Instant): Decided {
  switch (command.type) {
    case "pump":
      return ok({ events: pump(state, now) });
    case "submit-task":
      return decideSubmit(state, command.submission, now);
    case "cancel-task":
      return decideCancel(state, command.task, command.reason, now);
    case "retry-task":
      return decideRetry(state, command.task, now);
    case "patch-task":
      return decidePatch(state, command, now);
    case "start-attempt":
      return decideStart(state, command, now);
    case "report-usage":
      return decideUsage(state, command, now);
    case "finish-attempt":
      return decideFinish(state, command.report, now);
    case "lose-attempt":
      return decideLoss(state, command, now);
    case "return-attempt":
      return decideReturn(state, command, now);
    case "ask-permit":
      return decidePermit(state, command, now);
    case "drop-permit":
      return decideDrop(state, command.permit, now);
    case "settle-permit":
      return decideSettle(state, command, now);
    default:
      return decideWorld(state, command, now);
  }
}

type WorldCommand = Extract<
  Command,
  {
    type:
      | ("start-engine" | "set-config" | "put-project" | "set-paused" | "artifact-ready" | "throttle-gate")
      | ("reset-gate" | "remove-gate")
      | ("join-worker" | "change-worker" | "leave-worker" | "settle-callback")
      | ("put-schedule" | "move-schedule" | "remove-schedule" | "count-rejected");
  }
>;

function decideWorld(state: ReadonlyState, command: WorldCommand, now: Instant): Decided {
  switch (command.type) {
    case "start-engine":
      return decideEngineStart(state, command, now);
    case "set-config":
      return one({ kind: "config-changed", at: now, config: command.config, patch: command.patch ?? null });
    case "put-project":
      return decideProject(state, command, now);
    case "set-paused":
      return decidePause(state, command, now);
    case "artifact-ready":
      return decideArtifact(state, command.artifact, now);
    case "throttle-gate": {
      const { gate, permit, retryAfterMs } = command;
      const room = roomForGate(state, gate, null, now);
      if (!room.ok) return room;
      return ok({ events: [...room.value, { kind: "gate-throttled", at: now, gate, permit, retryAfterMs }] });
    }
    case "reset-gate":
      return decideReset(state, command.gate, now);
    case "remove-gate":
      return decideRemoval(state, command.gate, now);
    case "join-worker":
      return decideJoin(state, command, now);
    case "change-worker":
      return decideChange(state, command, now);
    case "leave-worker":
      return decideLeave(state, command, now);
    case "settle-callback":
      return decideCallback(state, command.end, command.outcome, now);
    case "put-schedule":
    case "move-schedule":
    case "remove-schedule":
      return decideSchedule(state, command, now);
    case "count-rejected":
      return one({ kind: "tasks-rejected", at: now, counts: command.counts });
    default:
      return unreachable(command);
  }
}

const one = (event: Event): Decided => ok({ events: [event] });

function decideProject(
  state: ReadonlyState,
  command: Extract<Command, { type: "put-project" }>,
  now: Instant,
): Decided {
  const { project, settings } = command;
  if (!state.projects.has(project) && state.projects.size >= PROJECTS_MAX) {
    return fail({ type: "too-many", what: "projects", max: PROJECTS_MAX });
  }
  return one({ kind: "project-put", at: now, project, settings, source: "put" });
}

function decideArtifact(state: ReadonlyState, artifact: string, now: Instant): Decided {
  if (!state.artifacts.has(artifact)) return ok({ events: [], repeated: true });
  return one({ kind: "artifact-appeared", at: now, artifact });
}

function decidePause(state: ReadonlyState, command: Extract<Command, { type: "set-paused" }>, now: Instant): Decided {
  const { scope, id, paused } = command;
  const changed: Event = { kind: "pause-changed", at: now, scope, id, paused };
  if (scope === "fleet") return state.paused === paused ? ok({ events: [], repeated: true }) : one(changed);
  if (scope === "project") {
    const project = state.projects.get(id as ReadonlyProject["id"]);
    if (project === undefined) return fail({ type: "project-unknown", project: id });
    return (project.status === "paused") === paused ? ok({ events: [], repeated: true }) : one(changed);
  }
  const task = state.tasks.get(id as ReadonlyTask["id"]);
  if (task === undefined) return fail({ type: "task-unknown", task: id });
  if (hasEnded(task)) return fail({ type: "task-ended", task: id, state: task.phase });
  return task.paused === paused ? ok({ events: [], repeated: true }) : one(changed);
}
