/**
 * The log as it grows: every event with its hashes, filtered, and a walk along the whole chain that checks its links.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { EventJson, EventKind, EventsQuery } from "../../protocol/generated/index.ts";
import { ask } from "../data/ask.ts";
import { told } from "../data/event-words.ts";
import { BASE } from "../data/links.ts";
import { live } from "../data/live.ts";
import { lookAtPulses } from "../data/use-call.ts";
import { count, dateOf, timeOf } from "../data/words.ts";
import { Empty, Failure, Panel, Segments, TableBox, TaskName, View } from "../parts/pieces.tsx";

const KEPT_MAX = 500;
const LOOK_BACK = 400;
const PAGE = 1000;
type Kinds = "all" | "tasks" | "ends" | "workers" | "gates" | "config";
const KINDS: Readonly<Record<Exclude<Kinds, "all">, readonly EventKind[]>> = {
  tasks: [
    "task-submitted",
    "task-queued",
    "task-assigned",
    "attempt-started",
    "task-parked",
    "task-approved",
    "task-retried",
  ],
  ends: ["task-done", "task-failed", "task-cancelled", "task-skipped", "attempt-failed", "attempt-lost"],
  workers: ["worker-joined", "worker-changed", "worker-left"],
  gates: ["gate-throttled", "gate-opened", "gate-reset", "permit-asked", "permit-granted", "permit-settled"],
  config: ["config-changed", "project-put", "pause-changed", "engine-started", "schedule-put"],
};
const CHOICES: readonly (readonly [Kinds, string])[] = [
  ["all", "All"],
  ["tasks", "Tasks"],
  ["ends", "Ends"],
  ["workers", "Workers"],
  ["gates", "Gates"],
  ["config", "Config"],
];

function useLog(kinds: Kinds, task: string): { events: readonly EventJson[]; error: Error | null } {
  const [found, setFound] = useState<{ events: readonly EventJson[]; error: Error | null }>({
    events: [],
    error: null,
  });
  useEffect(() => {
    let events: readonly EventJson[] = [];
    let after: number | null = null;
    setFound({ events: [], error: null });
    async function read(signal: AbortSignal): Promise<void> {
      const seq = live.now().pulse?.seq ?? (await ask("pulse", {}, signal)).seq;
      after ??= kinds === "all" && task === "" ? Math.max(0, seq - LOOK_BACK) : Math.max(0, seq - 20 * LOOK_BACK);
      for (let isMore = true; isMore; ) {
        const query: EventsQuery = {
          after,
          limit: PAGE,
          ...(kinds === "all" ? {} : { kind: KINDS[kinds] }),
          ...(task === "" ? {} : { task }),
        };
        const page = await ask("events", { query }, signal);
        events = [...events, ...page.events].slice(-KEPT_MAX);
        after = page.nextAfter ?? page.events.at(-1)?.seq ?? after;
        isMore = page.nextAfter !== undefined;
        setFound({ events, error: null });
      }
    }
    return lookAtPulses((signal) =>
      read(signal).catch((error: Error) => {
        if (!signal.aborted) setFound({ events, error });
      }),
    );
  }, [kinds, task]);
  return found;
}

export default function Events(): JSX.Element {
  const { query, route } = useLocation();
  const kinds = (query.kinds ?? "all") as Kinds;
  const task = query.task ?? "";
  const { events, error } = useLog(KINDS[kinds as "tasks"] === undefined ? "all" : kinds, task);
  const [isHeld, setHeld] = useState<readonly EventJson[] | null>(null);
  const shown = [...(isHeld ?? events)].reverse();
  const go = (next: { kinds?: Kinds; task?: string }): void => {
    const all = { kinds, task, ...next };
    const search = new URLSearchParams(
      Object.entries(all).filter(([key, value]) => value !== "" && !(key === "kinds" && value === "all")),
    );
    route(search.size === 0 ? `${BASE}/events` : `${BASE}/events?${search}`, true);
  };
  return (
    <View
      title="Events"
      actions={
        <>
          <Verify />
          <button
            type="button"
            class="button"
            aria-pressed={isHeld !== null}
            onClick={() => setHeld(isHeld === null ? events : null)}
          >
            {isHeld === null ? "Hold" : "Go on"}
          </button>
        </>
      }
    >
      <div class="actions">
        <Segments label="Kinds" choices={CHOICES} chosen={kinds} onChoose={(next) => go({ kinds: next })} />
        <input
          class="input events-task"
          type="search"
          aria-label="Only of this task"
          placeholder="Only of this task"
          value={task}
          onChange={(event) => go({ task: event.currentTarget.value.trim() })}
        />
      </div>
      <Failure error={error} />
      <Panel isFlush>
        {shown.length === 0 ? (
          <Empty>No such event lately.</Empty>
        ) : (
          <TableBox label="Events">
            <table class="table events">
              <thead>
                <tr>
                  <th class="number">Number</th>
                  <th>Time</th>
                  <th>Kind</th>
                  <th>Task</th>
                  <th>What happened</th>
                  <th>Hash</th>
                </tr>
              </thead>
              <tbody>
                {shown.map((event) => (
                  <EventRow key={event.seq} event={event} />
                ))}
              </tbody>
            </table>
          </TableBox>
        )}
      </Panel>
    </View>
  );
}

function EventRow({ event }: { event: EventJson }): JSX.Element {
  const { seq, at, kind, task, priorHash, postHash } = event;
  const { text, tone } = told(event);
  return (
    <tr>
      <td class="number muted">{count(seq)}</td>
      <td class="nowrap muted" title={dateOf(at)}>
        {timeOf(at)}
      </td>
      <td>
        <span class={`badge is-${tone}`}>{kind}</span>
      </td>
      <td>{task === undefined ? "" : <TaskName id={task} />}</td>
      <td class="what">
        <bdi>{text}</bdi>
      </td>
      <td class="mono faint" title={`before ${priorHash}\nafter ${postHash}`}>
        {postHash.slice(0, 10)}
      </td>
    </tr>
  );
}

type Walk = {
  readonly at: number;
  readonly head: number;
  readonly state: "walking" | "whole" | "broken" | "refused";
  readonly text: string;
};

/** Walks along the chain: each event must carry the hash of the one before. */
async function walk(signal: AbortSignal, tell: (walk: Walk) => void): Promise<void> {
  const head = (await ask("pulse", {}, signal)).seq;
  let after = 0;
  let last: EventJson | null = null;
  let seen = 0;
  while (after < head) {
    const { events, nextAfter } = await ask("events", { query: { after, limit: PAGE } }, signal);
    for (const event of events) {
      if (last !== null && (event.priorHash !== last.postHash || event.seq !== last.seq + 1)) {
        const text = `event ${event.seq} does not follow from event ${last.seq}`;
        return tell({ at: event.seq, head, state: "broken", text });
      }
      last = event;
      seen++;
    }
    tell({ at: last?.seq ?? after, head, state: "walking", text: "" });
    if (nextAfter === undefined) break;
    after = nextAfter;
  }
  tell({ at: head, head, state: "whole", text: `${count(seen)} events are linked without a gap` });
}

function Verify(): JSX.Element {
  const [walked, setWalked] = useState<Walk | null>(null);
  const [controller, setController] = useState<AbortController | null>(null);
  useEffect(() => () => controller?.abort(), [controller]);
  async function start(): Promise<void> {
    const next = new AbortController();
    setController(next);
    setWalked({ at: 0, head: 1, state: "walking", text: "" });
    await walk(next.signal, setWalked).catch((error: Error) => {
      if (!next.signal.aborted) setWalked({ at: 0, head: 0, state: "refused", text: error.message });
    });
    setController(null);
  }
  const isWalking = walked?.state === "walking" && controller !== null;
  return (
    <>
      <span role="status" class={walked?.state === "whole" ? "good" : walked?.state === "walking" ? "muted" : "bad"}>
        {walked === null ? "" : isWalking ? `${count(walked.at)} of ${count(walked.head)}` : walked.text}
      </span>
      <button type="button" class="button" onClick={() => (isWalking ? controller.abort() : void start())}>
        {isWalking ? "Stop" : "Verify the chain"}
      </button>
    </>
  );
}
