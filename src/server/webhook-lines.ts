/**
 * Whose webhook goes out next: one line per receiving host, and the hosts take turns.
 *
 * A receiver that hangs holds every connection it is given for the whole time limit. If all webhooks stood in one line,
 * a single such receiver with many of them would soon hold all there are, and everybody else's would wait behind it. So
 * no host has more than a quarter of what may be under way at once, one that does not answer is down to a single one
 * until it answers again, and among the hosts that may have another, the one served longest ago is next. Within a host
 * the order is that of arrival. Every step costs the same however long the lines are.
 */
import { type Fifo, fifo, push, shift } from "../core/fifo.ts";

const HOST_SHARE = 4;

type Line<Item> = { readonly host: string; readonly waiting: Fifo<Item>; underWay: number; isSilent: boolean };
export type Lines<Item> = {
  add(host: string, item: Item): void;
  /** One of the host's has ended; whether the host answered at all. */
  release(host: string, answered: boolean): void;
  /** Starts what may start: call it when the limit was raised. */
  serve(): void;
  /** Nothing starts any more. */
  close(): void;
  underWay(): number;
  waiting(): number;
};

export function createLines<Item>(deps: {
  readonly limit: () => number;
  readonly start: (item: Item) => void;
}): Lines<Item> {
  const lines = new Map<string, Line<Item>>();
  /** Those that wait and may have another under way, in the order of their turn. */
  const turns = new Map<string, Line<Item>>();
  let underWay = 0;
  let waiting = 0;
  let isClosed = false;

  const shareOf = (line: Line<Item>): number =>
    line.isSilent ? 1 : Math.max(1, Math.floor(deps.limit() / HOST_SHARE));

  function place(line: Line<Item>): void {
    const { host } = line;
    if (line.waiting.length === 0 || line.underWay >= shareOf(line)) turns.delete(host);
    else if (!turns.has(host)) turns.set(host, line);
    if (line.waiting.length === 0 && line.underWay === 0) lines.delete(host);
  }

  function startNext(line: Line<Item>): void {
    const item = shift(line.waiting);
    if (item === undefined) return;
    waiting--;
    underWay++;
    line.underWay++;
    turns.delete(line.host);
    place(line);
    deps.start(item);
  }

  function serve(): void {
    while (!isClosed && underWay < deps.limit()) {
      const [next] = turns.values();
      if (next === undefined) return;
      startNext(next);
    }
  }

  return {
    add(host, item) {
      const line = lines.get(host) ?? { host, waiting: fifo<Item>(), underWay: 0, isSilent: false };
      lines.set(host, line);
      push(line.waiting, item);
      waiting++;
      place(line);
      serve();
    },
    release(host, answered) {
      const line = lines.get(host);
      if (line === undefined) return;
      underWay--;
      line.underWay--;
      line.isSilent = !answered;
      place(line);
      serve();
    },
    serve() {
      for (const line of lines.values()) place(line);
      serve();
    },
    close() {
      isClosed = true;
    },
    underWay: () => underWay,
    waiting: () => waiting,
  };
}
