/**
 * The calls about workers, projects, schedules, permits and gates.
 *
 * A worker's sync goes on while the server shuts down: results are taken, leases renewed, and the answer gives nothing
 * to run and says `closing`. It does not say `drain`: a worker that drains leaves for good, and after a restart none
 * would be there. One that stays keeps what it runs and comes back. What was assigned and never sent stays in the log.
 */
import type { ScheduleId, WorkerId } from "../../core/base/index.ts";
import type { Worker } from "../../core/model/index.ts";
import { refused } from "../../engine/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import { fleetSpending, type GateView } from "../../engine/views/index.ts";
import { asText, type Caller, type EndOfPoll, forbidden, isScoped, PollEnded } from "../../http/index.ts";
import type { FleetCalls, GateCalls, ProjectCalls, ScheduleCalls, WorkerCalls } from "../../protocol/calls/index.ts";
import {
  checked,
  type GateJson,
  type PermitBody,
  type PermitView,
  type ProjectView,
  type SchedulePage,
  type SchedulesQuery,
  type ScheduleView,
  type SyncAnswer,
  type SyncBody,
  type TaskBody,
} from "../../protocol/index.ts";
import { isoTime } from "../../std/index.ts";
import { createOwnPermits } from "../access/permit-scope.ts";
import { ownGates, ownProject, ownWorkers } from "../access/scoped-views.ts";
import {
  checkCall,
  checkProjectOfCall,
  checkSaid,
  checkTask,
  claimed,
  isOwn,
  makeOwnProject,
  type Owner,
  ownFilter,
} from "../access/token-scope.ts";
import type { Deps, Exchange, Handlers } from "./handler.ts";
import { checkCallback } from "./submit-checked.ts";
import { waitPermitsHandler } from "./wait-permits.ts";

/**
 * An agent's word shuts a gate for at most so long: the server cannot know whether a provider has said it. A worker
 * reads the header of its provider, so it is believed for a day.
 */
const AGENTS_WORD_MS = 600_000;
/** While the server shuts down, a worker that has nothing to say is answered no more often than this. */
const CLOSING_WAIT_MS = 1000;
/** What a worker is listed with that its server gives nothing more: until the next hears of it. */
const CLOSED = "the server it spoke to has closed";

export function fleetHandlers(deps: Deps): Handlers<keyof FleetCalls | "waitPermits"> {
  return { ...projectHandlers(deps), ...workerHandlers(deps), ...scheduleHandlers(deps), ...permitHandlers(deps) };
}

function projectHandlers({ drover }: Deps): Handlers<keyof ProjectCalls> {
  const ownProjects = async (caller: Caller): Promise<ProjectView[]> => {
    const all = await drover.projects();
    return isScoped(caller) ? all.filter(({ id }) => ownProject(drover.state, caller, id)) : all;
  };
  return {
    usage: ({ query }, { caller }) => drover.usage(ownFilter(caller, query)),
    projects: async (_, { caller }) => {
      const projects = await ownProjects(caller);
      const fleet = isScoped(caller) ? {} : { fleet: fleetSpending(drover.state, drover.logTime().at) };
      return { projects, count: projects.length, ...fleet };
    },
    project: async ({ params }, { caller }) => {
      const found = (await ownProjects(caller)).find(({ id }) => id === params.id);
      if (found === undefined) throw refused({ type: "project-unknown", project: params.id });
      return found;
    },
    putProject: ({ params, body }) => drover.putProject(params.id, body),
  };
}

function workerHandlers(deps: Deps): Handlers<keyof WorkerCalls> {
  const { drover, polls, phase, push, logs } = deps;

  /** Where a worker keeps its logs, and which of them are wanted, is between it and the server alone. */
  async function sync(id: string, body: SyncBody, exchange: Exchange): Promise<SyncAnswer> {
    logs.heard(id, body.session, body.logPlace);
    const text = await syncWith(id, body, exchange);
    const wanted = logs.list(id);
    if (wanted.length === 0) return asText(text);
    // In its middle: a lean answer begins with the names of its assignments, and ends with their tasks.
    const at = text.indexOf(',"results":[');
    return asText(`${text.slice(0, at)},"logs":${JSON.stringify(wanted)}${text.slice(at)}`);
  }

  async function syncWith(id: string, body: SyncBody, exchange: Exchange): Promise<string> {
    if (phase.isClosing()) return lastSync(id, body, CLOSING_WAIT_MS);
    const isHeld = (body.waitMs ?? 0) > 0 && (body.brief === true || (body.results?.length ?? 0) === 0);
    if (!isHeld) return drover.remote.syncText(id, checked(body));
    if (logs.isDue(id)) return syncNow(id, body);
    try {
      return await polls.hold(exchange, "sync", (signal, end) => longSync(id, body, signal, end));
    } catch (error) {
      if (!(error instanceof PollEnded)) throw error;
      if (error.why === "log-wanted") return syncNow(id, body);
      if (error.why === "closing") return lastSync(id, body, 0);
      throw error;
    }
  }

  const syncNow = (id: string, body: SyncBody): Promise<string> =>
    drover.remote.syncText(id, checked({ ...body, waitMs: 0 }));

  async function longSync(
    id: string,
    body: SyncBody,
    signal: AbortSignal,
    end: (why: EndOfPoll) => void,
  ): Promise<string> {
    const stopListening = logs.listen(id, () => end("log-wanted"));
    try {
      return await drover.remote.syncText(id, checked(body), { signal });
    } finally {
      stopListening();
    }
  }

  async function lastSync(id: string, body: SyncBody, waitMs: number): Promise<string> {
    const asked = { ...body, want: 0, note: body.note ?? CLOSED, waitMs: Math.min(body.waitMs ?? 0, waitMs) };
    const { named: _named, tasks: _tasks, assignments: _, ...answer } = await drover.remote.sync(id, checked(asked));
    return JSON.stringify({ ...answer, closing: true, assignments: [] });
  }

  function nobodySpeaksFor(id: string): void {
    push.left(id);
    logs.left(id);
  }

  return {
    workers: async (_, { caller }) => {
      const workers = ownWorkers(drover.state, caller, await drover.workers());
      return { workers, count: workers.length };
    },
    joinWorker: async ({ body }) => {
      if (body.endpoint === undefined) {
        if (body.id !== undefined) push.giveBack(body.id);
        return drover.remote.join(checked(body));
      }
      const joined = await push.join(body);
      logs.heard(joined.workerId, joined.session, undefined);
      return joined;
    },
    sync: ({ params, body }, exchange) => {
      checkSaid(exchange.caller, body.session);
      return sync(params.id, body, exchange);
    },
    handInLog: ({ params, body }, { caller }) => {
      checkSaid(caller, body.session);
      return logs.take(params.id, body);
    },
    drainWorker: async ({ params, query }, { caller }) => {
      checkSaid(caller, query.session);
      await drover.remote.drain(params.id, query);
      return { status: "draining", workerId: params.id };
    },
    leaveWorker: async ({ params, query }, { caller }) => {
      checkSaid(caller, query.session);
      const known = (): Worker | undefined => drover.state.fleet.byId.get(params.id as WorkerId);
      // With a session it is a worker's own word, which may come late: the worker that has the name now is left alone.
      if (query.session === undefined || query.session === known()?.session) nobodySpeaksFor(params.id);
      await drover.remote.leave(params.id, query);
      // It may have joined again meanwhile, and is then spoken for; or a join that came first is undone only now.
      if (known() === undefined) nobodySpeaksFor(params.id);
      return { status: "left", workerId: params.id };
    },
  };
}

function scheduleHandlers(deps: Deps): Handlers<keyof ScheduleCalls> {
  const { schedules } = deps.drover;

  async function ownSchedule(caller: Caller, id: string): Promise<ScheduleView> {
    const found = (await schedules.get(id)) as ScheduleView;
    if (!isOwn(caller, found.task)) throw refused({ type: "schedule-unknown", schedule: id });
    return found;
  }

  return {
    schedules: async ({ query }, { caller }) => {
      return (await schedules.list(ownFilter<Owner & SchedulesQuery>(caller, query))) as SchedulePage;
    },
    schedule: ({ params }, { caller }) => ownSchedule(caller, params.id),
    putSchedule: async ({ params, body }, { caller }) => {
      const task = claimed(caller, body.task, "task.");
      checkNoTies(caller, task);
      checkCallback(deps, task.callbackUrl, "task.callbackUrl");
      const isKnown = deps.drover.state.schedules.has(params.id as ScheduleId);
      if (isKnown && !isOwn(caller, (await schedules.get(params.id)).task))
        throw forbidden(`schedule ${params.id} is not this token's own; choose another id`);
      await makeOwnProject(deps.drover, caller, task);
      return (await schedules.put(params.id, { ...body, task } as Parameters<
        Drover["schedules"]["put"]
      >[1])) as ScheduleView;
    },
    removeSchedule: async ({ params }, { caller }) => {
      await ownSchedule(caller, params.id);
      await schedules.remove(params.id);
      return { status: "removed", id: params.id };
    },
  };
}

/**
 * A scoped token's schedule waits for nothing: whose task a name stands for is known when a task is submitted, and a
 * name that no task has today may be another's at the next instant.
 */
function checkNoTies(caller: Caller, { parent, needs = [] }: TaskBody): void {
  if (!isScoped(caller) || (parent === undefined && Object.keys(needs).length === 0)) return;
  const field = parent === undefined ? "task.needs" : "task.parent";
  throw forbidden(`${field} may not be in a schedule of a token that is scoped to projects or an agent`, { field });
}

function permitHandlers(deps: Deps): Handlers<keyof GateCalls | "waitPermits"> {
  const { drover, polls } = deps;
  const own = createOwnPermits(drover);

  async function ask({ session, ...asked }: PermitBody, exchange: Exchange): Promise<PermitView> {
    const { caller } = exchange;
    const { id, again = id } = asked;
    if (id !== undefined) own.check(caller, id, session);
    const keepsPosition = again !== undefined && own.isPositionOf(caller, again, session);
    const isNew = id === undefined || !own.isThere(id);
    /** The ticket is made before the first wait; one that is refused leaves no note behind. */
    const made = (asking: Promise<PermitView>): Promise<PermitView> => {
      if (id !== undefined && isNew && own.isThere(id)) own.note(caller, id, session);
      return asking;
    };
    const answer =
      (asked.waitMs ?? 0) === 0
        ? await made(drover.permits.ask(checked(asked), { keepsPosition }))
        : await polls.hold(exchange, "other", (signal) =>
            made(drover.permits.ask(checked(asked), { signal, keepsPosition })),
          );
    if (id === undefined) own.note(caller, answer.permitId, session);
    return answer;
  }

  return {
    ...waitPermitsHandler(deps, own),
    askPermit: async ({ body }, exchange) => {
      const asked = claimed(exchange.caller, body);
      if (asked.taskId !== undefined) await checkTask(drover, exchange.caller, asked.taskId);
      else {
        checkProjectOfCall(drover, exchange.caller, asked);
        await makeOwnProject(drover, exchange.caller, asked);
      }
      checkCall(drover.state, exchange.caller, asked);
      return ask(asked, exchange);
    },
    settlePermit: async ({ params, body: { session, ...body } }, { caller }) => {
      own.check(caller, params.id, session);
      if (body.rateLimited !== undefined) own.keepPosition(params.id);
      await drover.permits.settle(
        params.id,
        checked(body),
        caller.role === "agent" ? { retryAfterMsMax: AGENTS_WORD_MS } : {},
      );
      return { status: "settled", permitId: params.id };
    },
    dropPermit: async ({ params, query }, { caller }) => {
      own.check(caller, params.id, query.session);
      await drover.permits.drop(params.id, query.unheard === true ? { ifUnheard: true } : {});
      return { status: "dropped", permitId: params.id };
    },
    gates: async (_, { caller }) => {
      const gates = ownGates(drover.state, caller, await drover.gates()).map(gateJson);
      return { gates, count: gates.length };
    },
    gate: async ({ params }, { caller }) => {
      const { stats, calls, ...gate } = await drover.gate(params.id);
      if (ownGates(drover.state, caller, [gate]).length === 0) throw refused({ type: "gate-unknown", gate: params.id });
      return { ...gateJson(gate), stats, calls: calls.filter(({ id }) => own.isSeen(caller, id)) };
    },
    resetGate: ({ params }) => drover.resetGate(params.id),
    removeGate: ({ params }) => drover.removeGate(params.id),
  };
}

function gateJson({ blockedUntil, heldUntil, ...gate }: GateView): GateJson {
  return {
    ...gate,
    ...(blockedUntil === null ? {} : { blockedUntil: isoTime(blockedUntil) }),
    ...(heldUntil === null ? {} : { heldUntil: isoTime(heldUntil) }),
  };
}
