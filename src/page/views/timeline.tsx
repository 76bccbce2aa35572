/**
 * The timeline: workers as lanes, attempts as bars. It goes along with the time, or stands at a time that has passed.
 *
 * How much of it is seen, up to when, and of which project or plan, stands in the address, so a link can be shared.
 */
import type { JSX, TargetedPointerEvent } from "preact";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { HANDED_BACK } from "../../protocol/wire/index.ts";
import { useBars } from "../data/attempt-bars.ts";
import type { Bar } from "../data/bar-gathering.ts";
import { to } from "../data/links.ts";
import { toneOf } from "../data/outcomes.ts";
import { useTaskIds } from "../data/task-ids.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { dateOf, plural, span, steady, timeOf } from "../data/words.ts";
import { Empty, Failure, Missing, Name, Panel, Segments, View } from "../parts/pieces.tsx";

type Zoom = "1" | "5" | "15" | "60" | "360";
const ZOOMS: readonly (readonly [Zoom, string])[] = [
  ["1", "1 min"],
  ["5", "5 min"],
  ["15", "15 min"],
  ["60", "1 h"],
  ["360", "6 h"],
];
/** Between two marks, in seconds: the least that leaves few enough of them. */
const STEPS_S = [15, 60, 300, 900, 3600] as const;
const MARKS_MAX = 6;
/** A pointer that has gone so far drags, and does not click. */
const DRAG_PX = 4;
/** So many plans can be chosen, those that were put last; any other by the link of it. */
const PLANS_MAX = 200;

/** Bars of a lane in as few rows as keep them apart. */
function rowsOf(bars: readonly Bar[], now: number): readonly (readonly Bar[])[] {
  const rows: { until: number; bars: Bar[] }[] = [];
  for (const bar of [...bars].sort((left, right) => left.from - right.from)) {
    const free = rows.find(({ until }) => until <= bar.from);
    const until = bar.until ?? now;
    if (free === undefined) rows.push({ until, bars: [bar] });
    else {
      free.until = until;
      free.bars.push(bar);
    }
  }
  return rows.map((row) => row.bars);
}

/** What part of time is seen; before `from` all is left out, and what runs is known to run up to `knownTo`. */
type Window = { readonly end: number; readonly lengthMs: number; readonly from: number; readonly knownTo: number };

export default function Timeline(): JSX.Element {
  const { query, route } = useLocation();
  const now = useNow(500);
  const zoom = ZOOMS.find(([minutes]) => minutes === query.minutes)?.[0] ?? "5";
  const lengthMs = Number(zoom) * 60_000;
  const until = /^\d{1,15}$/.test(query.until ?? "") && Number(query.until) < now ? Number(query.until) : null;
  const { project = "", plan = "" } = query;
  const [draggedMs, setDragged] = useState(0);
  const { bars, cutAt, readTo, error, isRead } = useBars(lengthMs, until);
  const ids = useTaskIds({ project, plan });
  const isKnown = isRead && ids.isRead;
  const hrefOf = (next: Record<string, string>): string => {
    const search = new URLSearchParams(Object.entries({ ...query, ...next }).filter(([, value]) => value !== ""));
    return `${to.timeline}?${search}`;
  };
  const change = (next: Record<string, string>): void => route(hrefOf(next), true);
  const move = (ms: number): void => {
    const next = Math.round((until ?? now) + ms);
    change({ until: next >= now ? "" : String(next) });
  };
  const end = (until ?? now) - draggedMs;
  const from = Math.max(end - lengthMs, cutAt ?? 0);
  const window = { end, lengthMs, from, knownTo: Math.min(end, readTo ?? end) };
  const own = bars.filter(({ task, from }) => from <= end && (ids.wanted === null || ids.wanted.has(task)));
  const lanes = [...Map.groupBy(own, ({ worker }) => worker)].sort(([left], [right]) => (left < right ? -1 : 1));
  return (
    <View
      title="Timeline"
      note={until === null ? undefined : <span class="muted">up to {dateOf(until)}</span>}
      actions={
        <>
          <button type="button" class="button" aria-label="Earlier" onClick={() => move(-lengthMs / 2)}>
            ←
          </button>
          <button
            type="button"
            class="button"
            aria-label="Later"
            disabled={until === null}
            onClick={() => move(lengthMs / 2)}
          >
            →
          </button>
          <button type="button" class="button" disabled={until === null} onClick={() => change({ until: "" })}>
            Now
          </button>
          <Segments label="Zoom" choices={ZOOMS} chosen={zoom} onChoose={(minutes) => change({ minutes })} />
        </>
      }
    >
      <Narrowed project={project} plan={plan} change={change} />
      <Failure error={isKnown ? (error ?? ids.error) : null} />
      <Panel title="Attempts by worker" actions={<Keys />} isFlush>
        <Reservations window={window} isRead={isKnown} readTo={readTo} areIdsCut={ids.isCut} hrefOf={hrefOf} />
        {!isKnown || lanes.length === 0 ? (
          isKnown ? (
            <Empty>Nothing ran here in {zoom === "1" ? "this minute" : `these ${span(lengthMs)}`}.</Empty>
          ) : (
            <Missing error={error ?? ids.error} />
          )
        ) : (
          <Lanes lanes={lanes} window={window} drag={setDragged} drop={move} />
        )}
      </Panel>
    </View>
  );
}

/** What keeps the picture from being whole. It stands above the lanes, of which there may be more than a screen has. */
function Reservations({
  window,
  isRead,
  readTo,
  areIdsCut,
  hrefOf,
}: {
  window: Window;
  isRead: boolean;
  readTo: number | null;
  areIdsCut: boolean;
  hrefOf: (next: Record<string, string>) => string;
}): JSX.Element {
  const isCut = isRead && window.from > window.end - window.lengthMs;
  return (
    <>
      {readTo === null ? null : <p class="lane-note">The log is read up to {timeOf(readTo)} so far…</p>}
      {isCut ? (
        <p class="lane-note">
          So much happened that all before {timeOf(window.from)} is left out.{" "}
          <a href={hrefOf({ until: String(Math.floor(window.from)) })}>Show what was before</a>
        </p>
      ) : null}
      {areIdsCut ? <p class="lane-note">So many tasks match that the attempts of the oldest are left out.</p> : null}
    </>
  );
}

const Keys = (): JSX.Element => (
  <span class="keys">
    {["running", "done", "failed", "cancelled", "skipped", "parked", HANDED_BACK].map((state) => (
      <span key={state} class={`key is-${toneOf(state)}`}>
        {state}
      </span>
    ))}
  </span>
);

function Narrowed({
  project,
  plan,
  change,
}: {
  project: string;
  plan: string;
  change: (next: Record<string, string>) => void;
}): JSX.Element {
  const projects = useCall("projects", {}, { everyMs: 10_000 });
  const plans = useCall("plans", { query: { limit: PLANS_MAX } }, { everyMs: 10_000 });
  const choices: readonly (readonly [name: "project" | "plan", chosen: string, ids: readonly string[]])[] = [
    ["project", project, (projects.data?.projects ?? []).map(({ id }) => id)],
    ["plan", plan, (plans.data?.plans ?? []).map(({ id }) => id)],
  ];
  return (
    <div class="narrowed">
      {choices.map(([name, chosen, ids]) => (
        <select
          key={name}
          class="select"
          aria-label={name === "project" ? "Project" : "Plan"}
          value={chosen}
          onChange={({ currentTarget: { value } }) => change({ project: "", plan: "", [name]: value })}
        >
          <option value="">All {name}s</option>
          {(chosen === "" || ids.includes(chosen) ? ids : [chosen, ...ids]).map((id) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
          {name === "plan" && plans.data?.nextCursor !== undefined ? (
            <option disabled>… more, put earlier</option>
          ) : null}
        </select>
      ))}
    </div>
  );
}

/** The click that ends a drag opens nothing: neither the browser nor the router of the page hears of it. */
function leaveOutClick(page: Document): void {
  const leaveOut = (click: Event): void => {
    click.preventDefault();
    click.stopImmediatePropagation();
  };
  page.addEventListener("click", leaveOut, { capture: true });
  // It comes at once or, where the button was let go beside all of it, never.
  setTimeout(() => page.removeEventListener("click", leaveOut, { capture: true }));
}

function Lanes({
  lanes,
  window,
  drag,
  drop,
}: {
  lanes: readonly (readonly [worker: string, bars: readonly Bar[]])[];
  window: Window;
  drag: (ms: number) => void;
  drop: (ms: number) => void;
}): JSX.Element {
  const begin = (event: TargetedPointerEvent<HTMLDivElement>): void => {
    const box = event.currentTarget;
    const page = box.ownerDocument;
    const width = box.querySelector(".lane-rows")?.clientWidth ?? 1;
    const from = event.clientX;
    const msAt = (x: number): number => ((x - from) / width) * window.lengthMs;
    const going = ({ clientX }: PointerEvent): void => drag(msAt(clientX));
    const dragging = new AbortController();
    const over = (end: PointerEvent): void => {
      dragging.abort();
      drag(0);
      if (end.type !== "pointerup" || Math.abs(end.clientX - from) < DRAG_PX) return;
      drop(-msAt(end.clientX));
      leaveOutClick(page);
    };
    if (event.button !== 0) return;
    const { signal } = dragging;
    page.addEventListener("pointermove", going, { signal });
    for (const kind of ["pointerup", "pointercancel"] as const) page.addEventListener(kind, over, { signal });
  };
  const isCut = window.from > window.end - window.lengthMs;
  return (
    <div class="gantt" onPointerDown={begin}>
      <Axis window={window} />
      {lanes.map(([worker, own]) => (
        <div key={worker} class="lane">
          <span class="lane-name clip" title={worker}>
            <Name>{worker}</Name>
            <small class="faint">{plural(own.length, "attempt")}</small>
          </span>
          <div class="lane-rows">
            {isCut ? <span class="lane-cut" style={{ width: `${placeIn(window, window.from)}%` }} /> : null}
            {rowsOf(own, window.end).map((row) => (
              <div key={row[0]?.key} class="lane-row">
                {row.map((bar) => (
                  <One key={bar.key} bar={bar} window={window} />
                ))}
              </div>
            ))}
          </div>
        </div>
      ))}
    </div>
  );
}

const placeIn = ({ end, lengthMs }: Pick<Window, "end" | "lengthMs">, time: number): number =>
  (100 * (time - end + lengthMs)) / lengthMs;

/** Marks at round times. */
function Axis({ window }: { window: Window }): JSX.Element {
  const stepMs = 1000 * (STEPS_S.find((step) => window.lengthMs / (1000 * step) <= MARKS_MAX) ?? 3600);
  const first = Math.ceil((window.end - window.lengthMs) / stepMs) * stepMs;
  const marks = Array.from({ length: MARKS_MAX + 1 }, (_, index) => first + index * stepMs);
  return (
    <div class="lane axis" aria-hidden="true">
      <span class="lane-name" />
      <div class="lane-rows">
        {marks
          .filter((time) => time <= window.end)
          .map((time) => (
            <span key={time} class="tick" style={{ left: `${placeIn(window, time)}%` }}>
              {timeOf(time)}
            </span>
          ))}
      </div>
    </div>
  );
}

function One({ bar, window }: { bar: Bar; window: Window }): JSX.Element | null {
  const [from, until] = [Math.max(window.from, bar.from), Math.min(window.end, bar.until ?? window.knownTo)];
  if (until < from) return null;
  const name = steady(bar.task);
  const took = span((bar.until ?? window.knownTo) - bar.from);
  return (
    <a
      class={`bar is-${toneOf(bar.outcome)}`}
      href={to.task(bar.task)}
      draggable={false}
      title={`${name}, attempt ${bar.attempt}: ${bar.outcome}, ${took}`}
      aria-label={`${name}: ${bar.outcome}, ${took}`}
      style={{
        left: `${placeIn(window, from)}%`,
        width: `max(2px, ${placeIn(window, until) - placeIn(window, from)}%)`,
      }}
    >
      <span>{name}</span>
    </a>
  );
}
