/**
 * The log as it grows: every event with its hashes, filtered; and whether all of it is as it was written.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { EventJson, EventKind, Verified } from "../../protocol/generated/index.ts";
import { ask } from "../data/ask.ts";
import { givenBackIn, told } from "../data/event-words.ts";
import { BASE } from "../data/links.ts";
import { live } from "../data/live.ts";
import { followLog } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { count, dateOf, timeOf } from "../data/words.ts";
import { Empty, Failure, Missing, Panel, Segments, TableBox, TaskName, View } from "../parts/pieces.tsx";

const KEPT_MAX = 500;
const LOOK_BACK = 400;
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
  config: ["config-changed", "project-put", "pause-changed", "engine-started", "node-joined", "schedule-put"],
};
const CHOICES: readonly (readonly [Kinds, string])[] = [
  ["all", "All"],
  ["tasks", "Tasks"],
  ["ends", "Ends"],
  ["workers", "Workers"],
  ["gates", "Gates"],
  ["config", "Config"],
];

type Log = { readonly events: readonly EventJson[]; readonly error: Error | null; readonly isRead: boolean };
const UNREAD: Log = { events: [], error: null, isRead: false };

function useLog(kinds: Kinds, task: string): Log {
  const [found, setFound] = useState(UNREAD);
  useEffect(() => {
    let events: readonly EventJson[] = [];
    setFound(UNREAD);
    return followLog({
      wanted: { ...(kinds === "all" ? {} : { kind: KINDS[kinds] }), ...(task === "" ? {} : { task }) },
      begin: async (signal) => {
        const { seq } = live.now().pulse ?? (await ask("pulse", {}, signal));
        const isAll = kinds === "all" && task === "";
        return { after: Math.max(0, seq - (isAll ? LOOK_BACK : 20 * LOOK_BACK)) };
      },
      anew: () => {
        events = [];
      },
      take: (next) => {
        events = [...events, ...next].slice(-KEPT_MAX);
        setFound({ events, error: null, isRead: true });
        return false;
      },
      failed: (error) => setFound(({ isRead }) => ({ events, error, isRead })),
    });
  }, [kinds, task]);
  return found;
}

export default function Events(): JSX.Element {
  const { query, route } = useLocation();
  const kinds = (query.kinds ?? "all") as Kinds;
  const task = query.task ?? "";
  const { events, error, isRead } = useLog(KINDS[kinds as "tasks"] === undefined ? "all" : kinds, task);
  const [isHeld, setHeld] = useState<readonly EventJson[] | null>(null);
  // What is held is of the filter of before.
  useEffect(() => setHeld(null), [kinds, task]);
  const shown = [...(isHeld ?? events)].reverse();
  const givenBack = givenBackIn(shown);
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
          class="input narrow"
          type="search"
          aria-label="Only of this task"
          placeholder="Only of this task"
          value={task}
          onChange={(event) => go({ task: event.currentTarget.value.trim() })}
        />
      </div>
      <Failure error={error} />
      <Panel isFlush>
        {shown.length === 0 && !isRead ? (
          <Missing error={error} />
        ) : shown.length === 0 ? (
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
                  <EventRow key={event.seq} event={event} givenBack={givenBack} />
                ))}
              </tbody>
            </table>
          </TableBox>
        )}
      </Panel>
    </View>
  );
}

function EventRow({ event, givenBack }: { event: EventJson; givenBack: ReadonlySet<string> }): JSX.Element {
  const { seq, at, kind, task, priorHash, postHash } = event;
  const { text, tone } = told(event, givenBack);
  return (
    <tr>
      <td class="number muted">{count(seq)}</td>
      <td class="nowrap muted" title={dateOf(at)}>
        {timeOf(at)}
      </td>
      <td class="kind">
        <span class={`badge is-${tone}`}>{kind}</span>
      </td>
      <td class="of-task clip">{task === undefined ? null : <TaskName id={task} />}</td>
      <td class="what">
        <bdi>{text}</bdi>
      </td>
      <td class="hash mono faint" title={`before ${priorHash}\nafter ${postHash}`}>
        {postHash.slice(0, 10)}
      </td>
    </tr>
  );
}

/** The server hashes every event anew; what it finds is told up to the last event that is right. */
function Verify(): JSX.Element | null {
  const { mayWatch } = useRights();
  const [found, setFound] = useState<Verified | Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  async function start(): Promise<void> {
    setBusy(true);
    setFound(await ask("verify", {}).catch((error: Error) => error));
    setBusy(false);
  }
  if (!mayWatch) return null;
  const isGood = found !== null && !(found instanceof Error) && found.ok;
  return (
    <>
      <span role="status" class={isBusy ? "muted" : isGood ? "good verified" : "bad verified"}>
        {isBusy ? "Hashing every event anew…" : found === null ? "" : verdict(found)}
      </span>
      <button type="button" class="button" disabled={isBusy} onClick={() => void start()}>
        Verify the log
      </button>
    </>
  );
}

function verdict(found: Verified | Error): string {
  if (found instanceof Error) return found.message;
  const { ok, upTo, base, head, events, witnesses = [], problems } = found;
  const pruned = base.seq === 0 ? "" : `, those up to ${count(base.seq)} are pruned`;
  const names = witnesses.map(({ node }) => node).join(", ");
  const signed = names === "" ? "" : ` Signed by ${names} too.`;
  if (ok) return `All ${count(events)} events are as they were written, up to ${count(head.seq)}${pruned}.${signed}`;
  const wrong = problems[0]?.message ?? "something is wrong";
  const more = problems.length > 1 ? ` (and ${count(problems.length - 1)} more)` : "";
  return `Right up to event ${count(upTo)} of ${count(head.seq)}: then ${wrong}${more}.`;
}
