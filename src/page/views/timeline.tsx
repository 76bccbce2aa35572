/**
 * The timeline: workers as lanes, attempts as bars.
 */
import type { JSX } from "preact";
import { useLocation } from "preact-iso";
import { type Bar, useBars } from "../data/attempt-bars.ts";
import { to } from "../data/links.ts";
import { useNow } from "../data/use-call.ts";
import { plural, span, timeOf } from "../data/words.ts";
import { Empty, Failure, Name, Panel, Segments, View } from "../parts/pieces.tsx";

type Zoom = "1" | "5" | "15" | "60";
const ZOOMS: readonly (readonly [Zoom, string])[] = [
  ["1", "1 min"],
  ["5", "5 min"],
  ["15", "15 min"],
  ["60", "1 h"],
];
const TICKS = 4;

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

export default function Timeline(): JSX.Element {
  const { query, route } = useLocation();
  const zoom = ZOOMS.find(([minutes]) => minutes === query.minutes)?.[0] ?? "5";
  const setZoom = (minutes: Zoom): void => route(`${to.timeline}?minutes=${minutes}`, true);
  const { bars, isCut, error, isRead } = useBars(Number(zoom));
  const now = useNow(500);
  const lengthMs = Number(zoom) * 60_000;
  const lanes = [...Map.groupBy(bars, ({ worker }) => worker)].sort(([left], [right]) => (left < right ? -1 : 1));
  return (
    <View title="Timeline" actions={<Segments label="Zoom" choices={ZOOMS} chosen={zoom} onChoose={setZoom} />}>
      <Failure error={error} />
      <Panel
        title="Attempts by worker"
        actions={
          <span class="keys">
            {["running", "done", "failed", "cancelled", "parked"].map((state) => (
              <span key={state} class={`key is-${state}`}>
                {state}
              </span>
            ))}
          </span>
        }
        isFlush
      >
        {lanes.length === 0 ? (
          isRead ? (
            <Empty>Nothing ran in the last {zoom === "1" ? "minute" : `${zoom} minutes`}.</Empty>
          ) : (
            <p class="loading">Reading the log…</p>
          )
        ) : (
          <div class="gantt">
            <Axis now={now} lengthMs={lengthMs} />
            {lanes.map(([worker, own]) => (
              <div key={worker} class="lane">
                <span class="lane-name clip" title={worker}>
                  <Name>{worker}</Name>
                  <small class="faint">{plural(own.length, "attempt")}</small>
                </span>
                <div class="lane-rows">
                  {rowsOf(own, now).map((row) => (
                    <div key={row[0]?.key} class="lane-row">
                      {row.map((bar) => (
                        <One key={bar.key} bar={bar} now={now} lengthMs={lengthMs} />
                      ))}
                    </div>
                  ))}
                </div>
              </div>
            ))}
          </div>
        )}
        {isCut ? <p class="loading">So much happened that the oldest attempts are left out.</p> : null}
      </Panel>
    </View>
  );
}

function Axis({ now, lengthMs }: { now: number; lengthMs: number }): JSX.Element {
  return (
    <div class="lane axis" aria-hidden="true">
      <span class="lane-name" />
      <div class="lane-rows">
        {Array.from({ length: TICKS }, (_, index) => (
          <span key={index} class="tick" style={{ left: `${(100 * index) / TICKS}%` }}>
            {timeOf(now - lengthMs * (1 - index / TICKS))}
          </span>
        ))}
      </div>
    </div>
  );
}

function One({ bar, now, lengthMs }: { bar: Bar; now: number; lengthMs: number }): JSX.Element | null {
  const begin = now - lengthMs;
  const [from, until] = [Math.max(begin, bar.from), Math.min(now, bar.until ?? now)];
  if (until < begin) return null;
  const at = (time: number): number => (100 * (time - begin)) / lengthMs;
  const took = span((bar.until ?? now) - bar.from);
  return (
    <a
      class={`bar is-${bar.outcome}`}
      href={to.task(bar.task)}
      title={`${bar.task}, attempt ${bar.attempt}: ${bar.outcome}, ${took}`}
      aria-label={`${bar.task}: ${bar.outcome}, ${took}`}
      style={{ left: `${at(from)}%`, width: `max(2px, ${at(until) - at(from)}%)` }}
    >
      <span>{bar.task}</span>
    </a>
  );
}
