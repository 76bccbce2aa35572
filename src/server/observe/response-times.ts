/**
 * How long answers took, by route and status: a histogram that costs next to nothing to add to.
 *
 * Every request is counted here, so the library's own histogram, which looks its labels up anew for each value, would
 * be the dearest part of answering a small one. Here a route finds its cells once, and adding is a walk along a few
 * bounds. What the library is given, when somebody asks, has the form its histograms have.
 */
import type { MetricObjectWithValues, MetricValueWithName } from "prom-client";

/** In milliseconds; the last bucket has no bound. */
const BOUNDS_MS: readonly number[] = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];
const NAME = "drover_http_request_duration_seconds";
const HELP = "From the head of a request to its answer.";

type Cell = { readonly counts: number[]; sumMs: number };
/** Adds the time of one answer of a route. */
type Timing = (status: number, ms: number) => void;
type Values = MetricObjectWithValues<MetricValueWithName<string>>;
export type AnswerTimes = { readonly name: string; of(method: string, route: string): Timing; get(): Promise<Values> };

export function createAnswerTimes(): AnswerTimes {
  const routes = new Map<
    string,
    { readonly labels: Readonly<Record<string, string>>; readonly cells: Map<number, Cell> }
  >();

  function of(method: string, route: string): Timing {
    const key = `${method} ${route}`;
    const known = routes.get(key) ?? { labels: { method, route }, cells: new Map<number, Cell>() };
    routes.set(key, known);
    const { cells } = known;
    return (status, ms) => {
      let cell = cells.get(status);
      if (cell === undefined) {
        cell = { counts: new Array<number>(BOUNDS_MS.length + 1).fill(0), sumMs: 0 };
        cells.set(status, cell);
      }
      let at = 0;
      while (at < BOUNDS_MS.length && ms > (BOUNDS_MS[at] as number)) at++;
      cell.counts[at] = (cell.counts[at] as number) + 1;
      cell.sumMs += ms;
    };
  }

  async function get(): Promise<Values> {
    const values: MetricValueWithName<string>[] = [];
    for (const { labels, cells } of routes.values())
      for (const [status, cell] of cells) values.push(...linesOf({ ...labels, status: String(status) }, cell));
    return { name: NAME, help: HELP, type: "histogram", values, aggregator: "sum" } as unknown as Values;
  }

  return { name: NAME, of, get };
}

/** Buckets count what is at most their bound, so each holds those before it too. */
function linesOf(labels: Record<string, string>, { counts, sumMs }: Cell): MetricValueWithName<string>[] {
  let count = 0;
  const lines = counts.map((inBucket, index) => {
    count += inBucket;
    const bound = BOUNDS_MS[index];
    const le = bound === undefined ? "+Inf" : String(bound / 1000);
    return { metricName: `${NAME}_bucket`, labels: { le, ...labels }, value: count };
  });
  return [
    ...lines,
    { metricName: `${NAME}_sum`, labels, value: sumMs / 1000 },
    { metricName: `${NAME}_count`, labels, value: count },
  ];
}
