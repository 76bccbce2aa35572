/**
 * How long answers took, by route and status.
 */
import { createHistogram, type Histogram } from "./histogram.ts";

/** In milliseconds. */
const BOUNDS_MS: readonly number[] = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];

/** Adds the time of one answer of a route. */
type Timing = (status: number, ms: number) => void;
type AnswerTimes = { readonly histogram: Histogram; of(method: string, route: string): Timing };

export function createAnswerTimes(): AnswerTimes {
  const histogram = createHistogram({
    name: "drover_http_request_duration_seconds",
    help: "From the head of a request to its answer.",
    bounds: BOUNDS_MS,
    perUnit: 1000,
  });
  const routes = new Map<string, Timing>();

  function timingOf(method: string, route: string): Timing {
    const byStatus = new Map<number, (ms: number) => void>();
    return (status, ms) => {
      let add = byStatus.get(status);
      if (add === undefined) {
        add = histogram.of({ method, route, status: String(status) });
        byStatus.set(status, add);
      }
      add(ms);
    };
  }
  return {
    histogram,
    of(method, route) {
      const key = `${method} ${route}`;
      const known = routes.get(key) ?? timingOf(method, route);
      routes.set(key, known);
      return known;
    },
  };
}
