/**
 * A chart over time. uPlot draws it on a canvas; its colours are those of the page, also when night falls.
 */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { loneValues } from "../data/lone-values.ts";
import { brief, timeOf } from "../data/words.ts";

export type Line = {
  readonly label: string;
  /** A colour of the page, by its name. */
  readonly color: string;
  readonly values: readonly (number | null)[];
  readonly isFilled?: boolean;
  /** Where another line, of the same colour, should be: it has no key of its own. */
  readonly isDashed?: boolean;
};

const colorOf = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** What stands on the left of a chart has the room that its longest word takes. */
const LEFT_MIN = 46;
const LETTER = 6.5;
/** The last instant below a chart may stand at its end, and half of it goes beyond. */
const RIGHT = 18;
const leftOf = (_: uPlot, words: string[] | null): number =>
  Math.max(LEFT_MIN, ...(words ?? []).map((word) => 12 + LETTER * word.length));

function axisOf(shown: (value: number, step: number) => string, size: uPlot.Axis.Size, space: number): uPlot.Axis {
  return {
    stroke: () => colorOf("faint"),
    grid: { stroke: () => colorOf("line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
    size,
    values: (_: uPlot, splits: number[]) =>
      splits.map((value) => shown(value, (splits[1] ?? Number.POSITIVE_INFINITY) - (splits[0] ?? 0))),
    space,
  };
}

const MINUTE = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
/** With its second, where several marks are of the same minute. */
const minuteOf = (seconds: number, step: number): string =>
  step < 60 ? timeOf(seconds * 1000) : MINUTE.format(seconds * 1000);

function optionsOf(lines: readonly Line[], shown: (value: number) => string, box: HTMLElement): uPlot.Options {
  return {
    width: box.clientWidth,
    height: box.clientHeight,
    padding: [8, RIGHT, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    legend: { show: false },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.12 : 1] } },
    axes: [axisOf(minuteOf, 26, 70), axisOf(shown, leftOf, 32)],
    series: [
      {},
      ...lines.map(
        ({ label, color, isFilled, isDashed }): uPlot.Series => ({
          label,
          stroke: () => colorOf(color),
          width: 1.5,
          points: { show: false, filter: (plot, line) => loneValues([...(plot.data[line] ?? [])]), size: 5 },
          spanGaps: false,
          ...(isFilled ? { fill: () => `${colorOf(color)}22` } : {}),
          ...(isDashed ? { dash: [4, 4] } : {}),
        }),
      ),
    ],
  };
}

export default function Chart({
  label,
  times,
  lines,
  shown = brief,
}: {
  label: string;
  /** In milliseconds since 1970. */
  times: readonly number[];
  lines: readonly Line[];
  shown?: (value: number) => string;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const hint = useRef<HTMLOutputElement>(null);
  const shape = lines.map(({ label: name, color }) => `${name} ${color}`).join("|");
  const data = useMemo(
    () => [times.map((at) => at / 1000), ...lines.map(({ values }) => [...values])] as uPlot.AlignedData,
    [times, lines],
  );
  useEffect(() => {
    const at = box.current as HTMLDivElement;
    const drawn = new uPlot(optionsOf(lines, shown, at), data, at);
    plot.current = drawn;
    const sized = new ResizeObserver(() => drawn.setSize({ width: at.clientWidth, height: at.clientHeight }));
    sized.observe(at);
    const night = matchMedia("(prefers-color-scheme: dark)");
    const again = (): void => drawn.redraw(false, true);
    night.addEventListener("change", again);
    drawn.over.addEventListener("mousemove", () => tell(drawn, hint.current, shown));
    drawn.over.addEventListener("mouseleave", () => tell(null, hint.current, shown));
    return () => {
      sized.disconnect();
      night.removeEventListener("change", again);
      drawn.destroy();
    };
  }, [shape]);
  useEffect(() => plot.current?.setData(data), [data]);
  return (
    <figure>
      <div class="chart" ref={box} role="img" aria-label={label} />
      <figcaption class="keys">
        {lines.map(({ label: name, color, isDashed }) =>
          isDashed ? null : (
            <span key={name} class="key" style={{ "--tone": `var(--${color})` }}>
              {name}
            </span>
          ),
        )}
        <output ref={hint} />
      </figcaption>
    </figure>
  );
}

/** What the lines are where the mouse is. */
function tell(plot: uPlot | null, at: HTMLOutputElement | null, shown: (value: number) => string): void {
  if (at === null) return;
  const index = plot?.cursor.idx ?? null;
  if (plot === null || index === null) {
    at.textContent = "";
    return;
  }
  const time = timeOf((plot.data[0][index] ?? 0) * 1000);
  const values = plot.series.slice(1).map(({ label = "" }, line) => {
    const value = plot.data[line + 1]?.[index];
    return `${String(label)} ${value === null || value === undefined ? "–" : shown(value)}`;
  });
  at.textContent = `${time}: ${values.join(", ")}`;
}
