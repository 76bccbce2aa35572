/**
 * Why a task is not running: what holds it first, then what does not, then who is ahead. Now, or at any moment since it
 * was submitted: a slider goes back along its time, on which each of its events has a mark.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { EventJson, WhyAnswer, WhyQuery } from "../../protocol/generated/index.ts";
import { givenBackIn, told } from "../data/event-words.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { clock, dateOf, plural, timeOf, withTimes } from "../data/words.ts";
import { Loaded, Panel, TaskName } from "../parts/pieces.tsx";

/** An instant, and the last event of the whole log at that instant, where it is known. */
export type Moment = { readonly at: number; readonly seq: number | null };

const STEPS = 500;
/** A hand that rests so long has arrived. */
const REST_MS = 150;

export function WhyPanel({
  id,
  events,
  isOver,
  error,
  moment,
  setMoment,
}: {
  id: string;
  events: readonly EventJson[];
  isOver: boolean;
  error: string | undefined;
  moment: Moment | null;
  setMoment: (moment: Moment | null) => void;
}): JSX.Element {
  const rested = useRested(moment);
  const why = useCall("why", rested === undefined ? null : { params: { id }, query: queryOf(rested) }, {
    isStill: moment !== null,
    agesMs: moment === null && !isOver ? 5000 : undefined,
  });
  // While somebody drags, the last answer stays until the next one has come.
  const last = useRef<WhyAnswer | null>(null);
  last.current = why.data ?? last.current;
  const shown = why.error === null ? last.current : null;
  return (
    <Panel title="Why" actions={<span class="small">{moment === null ? "now" : `at ${dateOf(moment.at)}`}</span>}>
      <Loaded from={{ data: shown, error: why.error }}>
        {(answer) => (
          <>
            <Answer why={answer} isPast={moment !== null} />
            {moment !== null || error === undefined || answer.summary.includes(error) ? null : (
              <p class="bad">
                <bdi>{error}</bdi>
              </p>
            )}
          </>
        )}
      </Loaded>
      <Slider events={events} isOver={isOver} moment={moment} setMoment={setMoment} />
    </Panel>
  );
}

/** The moment at which the hand rests; undefined while it moves. */
function useRested(moment: Moment | null): Moment | null | undefined {
  const [rested, setRested] = useState(moment);
  useEffect(() => {
    const timer = window.setTimeout(() => setRested(moment), REST_MS);
    return () => clearTimeout(timer);
  }, [moment]);
  return moment === null || moment.seq !== null || rested === moment ? moment : undefined;
}

/** Only the server knows all events, so it finds the last one of an instant. */
const queryOf = (moment: Moment | null): WhyQuery =>
  moment === null ? {} : moment.seq === null ? { time: new Date(moment.at).toISOString() } : { at: moment.seq };

function Slider({
  events,
  isOver,
  moment,
  setMoment,
}: {
  events: readonly EventJson[];
  isOver: boolean;
  moment: Moment | null;
  setMoment: (moment: Moment | null) => void;
}): JSX.Element | null {
  const now = useNow();
  const [first, last] = [events[0], events.at(-1)];
  if (first === undefined || last === undefined) return null;
  const [from, until] = [Date.parse(first.at), isOver ? Date.parse(last.at) : now];
  if (until <= from) return null;
  const partOf = (at: number): number => Math.min(1, Math.max(0, (at - from) / (until - from)));
  const turn = (step: number): void =>
    setMoment(step >= STEPS ? null : { at: Math.round(from + ((until - from) * step) / STEPS), seq: null });
  const before =
    moment === null
      ? undefined
      : events.findLast(({ seq, at }) => (moment.seq === null ? Date.parse(at) <= moment.at : seq <= moment.seq));
  const givenBack = givenBackIn(events);
  const words =
    moment === null
      ? `${isOver ? "" : "Now. "}Drag back along its time, or choose a line of its story: why it was not running then.`
      : `${timeOf(moment.at)}${before === undefined ? "" : `, after: ${told(before, givenBack).text}`}`;
  return (
    <div class="moment">
      <span class="small muted">{words}</span>
      <span class="moment-line">
        {events.map((event) => (
          <i
            key={event.seq}
            class={`is-${told(event, givenBack).tone}`}
            style={{ "--part": partOf(Date.parse(event.at)) }}
          />
        ))}
        <input
          type="range"
          aria-label="Moment"
          aria-valuetext={words}
          min={0}
          max={STEPS}
          value={moment === null ? STEPS : Math.round(STEPS * partOf(moment.at))}
          onInput={({ currentTarget: { value } }) => turn(Number(value))}
        />
      </span>
      {moment === null ? null : (
        <button type="button" class="button is-small" onClick={() => setMoment(null)}>
          Back to now
        </button>
      )}
    </div>
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
        <bdi>{withTimes(why.summary)}</bdi>
      </p>
      {held.length === 0 ? null : (
        <ul class="conditions">
          {held.map(({ code, detail }) => (
            <li key={code + detail}>
              <span class="bad" aria-hidden="true">
                ✗
              </span>
              <code>{code}</code>
              <bdi>{withTimes(detail)}</bdi>
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
                <bdi>{withTimes(detail)}</bdi>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
