/**
 * The calls of those who look on: who they are, whether anything has happened, how things stood.
 *
 * A stream of pulses looks at a handful of numbers once a second and says them when they have changed: what twenty
 * pages cost together is less than one request of each.
 */
import type { TaskId } from "../../core/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import { linksOf, stuckTasks } from "../../engine/views/index.ts";
import { asText, holderOf, isScoped, type StreamMessage, type Streams } from "../../http/index.ts";
import type { WatchCalls } from "../../protocol/calls/index.ts";
import type { History, Pulse, Verified, WhoAmI } from "../../protocol/index.ts";
import { type Clock, isoTime, restFor } from "../../std/index.ts";
import { isOwnTask } from "../access/scoped-views.ts";
import { checkTask, isOwn } from "../access/token-scope.ts";
import type { HistoryStore } from "../observe/history.ts";
import type { Deps, Handlers } from "./handler.ts";
import { createHistoryAnswers } from "./history-answers.ts";
import { ANSWERED } from "./server.ts";
import { settingsView } from "./settings-view.ts";

type VerifyReport = Awaited<ReturnType<Drover["verify"]>>;

const PULSE_MS = 1000;

type WatchParts = { readonly streams: Streams; readonly clock: Clock; readonly history: HistoryStore };

export function watchHandlers(deps: Deps, { streams, clock, history }: WatchParts): Handlers<keyof WatchCalls> {
  const { drover, serverId, version } = deps;
  const pastOf = createHistoryAnswers(drover, history);

  function now(): Pulse {
    const { seq, paused, waiting, queued, inFlight, parked } = drover.state;
    return { seq, at: isoTime(drover.logTime().at), serverId, version, paused, waiting, queued, inFlight, parked };
  }
  async function* pulses(signal: AbortSignal): AsyncGenerator<Pulse> {
    let last = -1;
    while (!signal.aborted) {
      const pulse = now();
      if (pulse.seq !== last) yield pulse;
      last = pulse.seq;
      await restFor(clock, PULSE_MS, { signal, keepAlive: false });
    }
  }
  return {
    whoami: (_, { caller }): WhoAmI => ({
      role: caller.role,
      ...(caller.projects?.length === 1 ? { project: caller.projects[0] as string } : {}),
      ...(caller.projects === null ? {} : { projects: caller.projects }),
      ...(caller.agentId === null ? {} : { agentId: caller.agentId }),
    }),
    pulse: (_, { caller, request, response }) => {
      if (request.headers.accept?.includes("text/event-stream") !== true) return now();
      streams.open({ response, holder: holderOf(caller, request) }, { items: pulses, message: pulseMessage });
      return ANSWERED as never;
    },
    links: async ({ params }, { caller }) => {
      await checkTask(drover, caller, params.id);
      const isSeen = (id: TaskId): boolean => !isScoped(caller) || isOwnTask(drover.state, caller, id);
      return linksOf(drover.state, params.id as TaskId, isSeen);
    },
    stuck: (_, { caller }) => {
      const isSeen = (project: string, agentId: string): boolean => isOwn(caller, { project, agentId });
      return { tasks: stuckTasks(drover.state, drover.logTime().at, isSeen) };
    },
    verify: shared(clock, async () => verifiedOf(await drover.verify())),
    settings: () => settingsView(deps.settingViews(), drover.state.patch),
    history: ({ query }, { caller }) => asText<History>(pastOf(query, caller)),
  };
}

/** Whoever asks while one reading is under way gets its answer. Then comes a rest as long as the reading was. */
export function shared<Answer>(clock: Clock, read: () => Promise<Answer>): () => Promise<Answer> {
  let reading: Promise<Answer> | null = null;
  let restUntil = 0;
  async function rested(): Promise<Answer> {
    const rest = restUntil - clock.elapsed();
    if (rest > 0) await restFor(clock, rest);
    const startedAt = clock.elapsed();
    try {
      return await read();
    } finally {
      const endedAt = clock.elapsed();
      restUntil = endedAt + (endedAt - startedAt);
      reading = null;
    }
  }
  return () => {
    reading ??= rested();
    return reading;
  };
}

function verifiedOf({ unsigned, key, base, head, problems, ...rest }: VerifyReport): Verified {
  const broken = problems.map(({ seq }) => seq).filter((seq) => seq > 0);
  return {
    ...rest,
    upTo: Math.max(base.seq, Math.min(head.seq, ...broken.map((seq) => seq - 1))),
    head: { seq: head.seq, hash: head.hash },
    base,
    ...(unsigned === null ? {} : { unsignedFrom: unsigned.from }),
    ...(key === null ? {} : { key }),
    problems,
  };
}

const pulseMessage = (pulse: Pulse): StreamMessage => ({ id: pulse.seq, event: "pulse", data: JSON.stringify(pulse) });
