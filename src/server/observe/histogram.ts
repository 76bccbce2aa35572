/**
 * A histogram that costs next to nothing to add to.
 *
 * Something is added for every request and every task, so the library's own histogram, which looks its labels up anew
 * for each value, would be among the dearest parts of a small one. Here whoever adds finds its cell once, and adding is
 * a walk along a few bounds. What the library is given, when somebody asks, has the form its histograms have.
 */
import type { MetricObjectWithValues, MetricValueWithName } from "prom-client";

type Labels = Readonly<Record<string, string>>;
type Values = MetricObjectWithValues<MetricValueWithName<string>>;
type Cell = { readonly labels: Labels; readonly counts: number[]; sum: number };
export type Histogram = {
  readonly name: string;
  /** Answers how to add a value under these labels; what has the same labels is asked for once. */
  of(labels: Labels): (value: number) => void;
  get(): Promise<Values>;
};
type HistogramOptions = {
  readonly name: string;
  readonly help: string;
  /** The greatest value of each bucket, ascending; one more has no bound. */
  readonly bounds: readonly number[];
  /** How many of what is added are one of what is shown. */
  readonly perUnit?: number;
};

export function createHistogram({ name, help, bounds, perUnit = 1 }: HistogramOptions): Histogram {
  const cells: Cell[] = [];

  function of(labels: Labels): (value: number) => void {
    const cell: Cell = { labels, counts: new Array<number>(bounds.length + 1).fill(0), sum: 0 };
    cells.push(cell);
    return (value) => {
      let at = 0;
      while (at < bounds.length && value > (bounds[at] as number)) at++;
      cell.counts[at] = (cell.counts[at] as number) + 1;
      cell.sum += value;
    };
  }

  /** Buckets count what is at most their bound, so each holds those before it too. */
  function linesOf({ labels, counts, sum }: Cell): MetricValueWithName<string>[] {
    let count = 0;
    const lines = counts.map((inBucket, index) => {
      count += inBucket;
      const bound = bounds[index];
      const le = bound === undefined ? "+Inf" : String(bound / perUnit);
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...lines,
      { metricName: `${name}_sum`, labels, value: sum / perUnit },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }

  async function get(): Promise<Values> {
    return { name, help, type: "histogram", values: cells.flatMap(linesOf), aggregator: "sum" } as unknown as Values;
  }

  return { name, of, get };
}
