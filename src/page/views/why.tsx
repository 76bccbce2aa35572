/**
 * Why a task is not running: what holds it first, then what does not, then who is ahead. Now, or as of any of its
 * events: a slider goes back along its story.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { EventJson, WhyAnswer } from "../../protocol/generated/index.ts";
import { told } from "../data/event-words.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { clock, plural, timeOf } from "../data/words.ts";
import { Loaded, Panel, TaskName } from "../parts/pieces.tsx";

export function WhyPanel({
  id,
  events,
  isOver,
}: {
  id: string;
  events: readonly EventJson[];
  isOver: boolean;
}): JSX.Element {
  const [at, setAt] = useState<number | null>(null);
  const event = at === null ? null : (events[at] ?? null);
  const why = useCall(
    "why",
    { params: { id }, query: event === null ? {} : { at: event.seq } },
    { isStill: event !== null, agesMs: event === null && !isOver ? 5000 : undefined },
  );
  return (
    <Panel
      title="Why"
      actions={<span class="small">{event === null ? "now" : `as of event ${event.seq}, ${timeOf(event.at)}`}</span>}
    >
      <Loaded from={why}>{(answer) => <Answer why={answer} isPast={event !== null} />}</Loaded>
      {events.length < 2 ? null : (
        <label class="moment">
          <span class="small muted">
            {event === null
              ? isOver
                ? "Drag back along its story: why it was not running then."
                : "Now. Drag back along its story: why it was not running then."
              : `${timeOf(event.at)}: ${told(event).text}`}
          </span>
          <input
            type="range"
            aria-label="Moment"
            min={0}
            max={events.length}
            value={at ?? events.length}
            onInput={({ currentTarget: { value } }) => setAt(Number(value) >= events.length ? null : Number(value))}
          />
        </label>
      )}
    </Panel>
  );
}

function Answer({ why, isPast }: { why: WhyAnswer; isPast: boolean }): JSX.Element {
  const now = useNow();
  // Of one that runs or has ended the sentence says it all.
  const isWaiting = why.state === "waiting" || why.state === "queued";
  const isSaid = (detail: string): boolean => !isWaiting && why.summary.includes(detail.slice(1));
  const held = why.conditions.filter(({ ok, detail }) => !ok && !isSaid(detail));
  const met = why.conditions.filter(({ ok }) => ok);
  const { earliestStart, ahead } = why;
  return (
    <div class="why">
      <p class="why-sum">
        <bdi>{why.summary}</bdi>
      </p>
      {held.length === 0 ? null : (
        <ul class="conditions">
          {held.map(({ code, detail }) => (
            <li key={code + detail}>
              <span class="bad" aria-hidden="true">
                ✗
              </span>
              <code>{code}</code>
              <bdi>{detail}</bdi>
            </li>
          ))}
        </ul>
      )}
      {ahead.count === 0 ? null : (
        <p>
          {plural(ahead.count, "task")} of its agent {ahead.count === 1 ? "is" : "are"} ahead
          {ahead.next.length === 0 ? "" : ": "}
          {ahead.next.map(({ task, reason }, index) => (
            <span key={task} title={reason}>
              {index === 0 ? "" : ", "}
              <TaskName id={task} />
            </span>
          ))}
        </p>
      )}
      {earliestStart === undefined ? null : (
        <p class="muted">
          Earliest start: {timeOf(earliestStart)}
          {isPast || Date.parse(earliestStart) <= now ? "" : `, in ${clock(Date.parse(earliestStart) - now)}`}
        </p>
      )}
      {met.length === 0 ? null : (
        <details class="fold">
          <summary>{plural(met.length, "condition")} let it through</summary>
          <ul class="conditions">
            {met.map(({ code, detail }) => (
              <li key={code}>
                <span class="good" aria-hidden="true">
                  ✓
                </span>
                <code>{code}</code>
                <bdi>{detail}</bdi>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
