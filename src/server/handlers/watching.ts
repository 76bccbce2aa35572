/**
 * The calls of those who look on: who they are, whether anything has happened, how things stood.
 *
 * Pulses are a handful of numbers: what twenty pages that follow them cost together is less than one request of each.
 */
import type { TaskId } from "../../core/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import type { DroverNode, Witnessed } from "../../engine/node/index.ts";
import { readLinks, stuckTasks } from "../../engine/views/index.ts";
import { asText, holderOf, isScoped, type Streams } from "../../http/index.ts";
import type { WatchCalls } from "../../protocol/calls/index.ts";
import type { History, Pulse, SettingsView, Verified, WhoAmI } from "../../protocol/index.ts";
import { type Clock, isoTime, keptBy, restFor } from "../../std/index.ts";
import { isOwnTask } from "../access/scoped-views.ts";
import { checkTask, isOwn } from "../access/token-scope.ts";
import type { HistoryStore } from "../observe/history.ts";
import { nodePulse, nodeStanding } from "./cluster.ts";
import type { Deps, Handlers } from "./handler.ts";
import { createHistoryAnswers } from "./history-answers.ts";
import { createPulses } from "./pulses.ts";
import { ANSWERED } from "./server.ts";
import { settingsView } from "./settings-view.ts";

type VerifyReport = Awaited<ReturnType<Drover["verify"]>>;

type WatchParts = {
  readonly streams: Streams;
  readonly clock: Clock;
  readonly history: HistoryStore;
  readonly node: DroverNode | undefined;
};

export function watchHandlers(deps: Deps, { streams, clock, history, node }: WatchParts): Handlers<keyof WatchCalls> {
  const { drover, serverId, version } = deps;
  const pastOf = createHistoryAnswers(drover, history);

  function now(): Pulse {
    const { paused, waiting, queued, inFlight, parked, awaiting, config } = drover.state;
    const seq = drover.committedSeq();
    const { at } = drover.logTime();
    const { maxInFlight } = config.scheduler;
    const asNode = node === undefined ? {} : { node: nodePulse(node, at) };
    const counts = { paused, waiting, queued, inFlight, parked, asking: parked - awaiting, maxInFlight };
    return { seq, at: isoTime(at), serverId, version, ...counts, ...asNode };
  }
  // A node that loses its journal, or another node, has something to tell while nothing happens.
  const standing = node === undefined ? () => "" : () => nodeStanding(node);
  const follow = createPulses({ standing: () => `${drover.committedSeq()} ${standing()}`, now, clock });
  return {
    whoami: (_, { caller }): WhoAmI => ({
      role: caller.role,
      ...(caller.projects?.length === 1 ? { project: caller.projects[0] as string } : {}),
      ...(caller.projects === null ? {} : { projects: caller.projects }),
      ...(caller.agentId === null ? {} : { agentId: caller.agentId }),
    }),
    pulse: (_, { caller, request, response }) => {
      if (request.headers.accept?.includes("text/event-stream") !== true) return now();
      streams.open({ response, holder: holderOf(caller, request) }, { items: follow, frame: (frame) => frame });
      return ANSWERED as never;
    },
    links: async ({ params, query }, { caller }) => {
      await checkTask(drover, caller, params.id);
      const isSeen = (id: TaskId): boolean => !isScoped(caller) || isOwnTask(drover.state, caller, id);
      return readLinks(drover, params.id as TaskId, isSeen, query);
    },
    stuck: (_, { caller }) => {
      const isSeen = (project: string, agentId: string): boolean => isOwn(caller, { project, agentId });
      return { tasks: stuckTasks(drover.state, drover.logTime().at, isSeen) };
    },
    verify: shared(clock, async () => verifiedOf(await drover.verify(), (await node?.witnessed()) ?? null)),
    settings: keptBy(
      () => [deps.settingViews(), drover.state.patch],
      ([own, patch]) => asText<SettingsView>(JSON.stringify(settingsView(own, patch))),
    ),
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

function verifiedOf(report: VerifyReport, witnessed: Witnessed | null): Verified {
  const { unsigned, key, base, head, ...rest } = report;
  const problems = [...report.problems, ...(witnessed?.problems ?? [])];
  const broken = problems.map(({ seq }) => seq).filter((seq) => seq > 0);
  return {
    ...rest,
    ok: problems.length === 0,
    upTo: Math.max(base.seq, Math.min(head.seq, ...broken.map((seq) => seq - 1))),
    head: { seq: head.seq, hash: head.hash },
    base,
    ...(unsigned === null ? {} : { unsignedFrom: unsigned.from }),
    ...(key === null ? {} : { key }),
    ...(witnessed === null ? {} : { witnesses: witnessed.by }),
    problems,
  };
}
