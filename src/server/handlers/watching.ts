/**
 * The calls of those who look on: who they are, whether anything has happened, how things stood.
 *
 * A stream of pulses looks at a handful of numbers once a second and says them when they have changed: what twenty
 * pages cost together is less than one request of each.
 */
import type { TaskId } from "../../core/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import { linksOf, stuckTasks } from "../../engine/views/index.ts";
import { holderOf, isScoped, type StreamMessage, type Streams } from "../../http/index.ts";
import type { WatchCalls } from "../../protocol/calls/index.ts";
import {
  type History,
  type HistoryQuery,
  type Pulse,
  SAMPLE_EVERY_MS,
  SAMPLES_MAX,
  type Sample,
  type Verified,
  type WhoAmI,
} from "../../protocol/index.ts";
import { type Clock, isoTime, restFor } from "../../std/index.ts";
import { isOwnTask, ownProject } from "../access/scoped-views.ts";
import { checkTask, isOwn } from "../access/token-scope.ts";
import type { HistoryStore } from "../observe/history.ts";
import type { Deps, Exchange, Handlers } from "./handler.ts";
import { ANSWERED } from "./server.ts";
import { settingsView } from "./settings-view.ts";

type VerifyReport = Awaited<ReturnType<Drover["verify"]>>;

const PULSE_MS = 1000;
const HOUR_MS = 3_600_000;

type WatchParts = { readonly streams: Streams; readonly clock: Clock; readonly history: HistoryStore };

export function watchHandlers(deps: Deps, { streams, clock, history }: WatchParts): Handlers<keyof WatchCalls> {
  const { drover, serverId, version } = deps;

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
    history: ({ query }, { caller }) => historyOf(deps, history.samples(), query, caller),
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

function historyOf(
  { drover }: Deps,
  kept: readonly Sample[],
  { from, step = SAMPLE_EVERY_MS }: HistoryQuery,
  caller: Exchange["caller"],
): History {
  const first = from === undefined ? drover.logTime().at - HOUR_MS : Date.parse(from);
  const wanted = kept.filter(({ at }) => Date.parse(at) >= first);
  const every = Math.max(Math.ceil(step / SAMPLE_EVERY_MS), Math.ceil(wanted.length / SAMPLES_MAX));
  // Counted from the last one, which is always there.
  const samples = wanted.filter((_, index) => (wanted.length - 1 - index) % every === 0);
  const own = (sample: Sample): Sample => ({
    ...sample,
    projects: sample.projects.filter(({ id }) => ownProject(drover.state, caller, id)),
  });
  return { step: every * SAMPLE_EVERY_MS, samples: isScoped(caller) ? samples.map(own) : samples };
}
