/**
 * Whose webhook goes out next: one line per receiving host, and the hosts take turns.
 *
 * A receiver that hangs holds every connection it is given for the whole time limit. If all webhooks stood in one line,
 * a single such receiver with many of them would soon hold all there are, and everybody else's would wait behind it. So
 * no host has more than a quarter of what may be under way at once, and one that does not answer is down to a single
 * one until it answers again. Many receivers may hang: those that gave no answer the last time have a quarter for all
 * of them together, and a quarter is kept for those that answered, so that receivers nobody has heard from, however
 * many names they have, never hold it all. How a host stood is remembered when its line is empty, since what failed
 * rests before it comes back. Among the hosts that may have another, the one served longest ago is next. Within a host
 * the order is that of arrival. Every step costs the same however long the lines are.
 */
import { type Fifo, fifo, push, shift } from "../core/fifo.ts";

const SHARE = 4;
/** Hosts that are remembered; the one whose line was empty first is forgotten first. */
const REMEMBERED_MAX = 10_000;

/** What is known of a host: it answered last time, it did not, or it was never asked. */
type Standing = "answered" | "silent" | "new";
const STANDINGS: readonly Standing[] = ["answered", "silent", "new"];
type Line<Item> = {
  readonly host: string;
  readonly waiting: Fifo<Item>;
  standing: Standing;
  underWay: number;
  /** When it came to stand for its turn: lower is first. */
  turn: number;
};
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
  const remembered = new Map<string, Standing>();
  /** Those that wait and may have another under way, in the order of their turn. */
  const turns = { answered: new Map<string, Line<Item>>(), silent: new Map(), new: new Map() };
  const underWay = { answered: 0, silent: 0, new: 0 };
  let lastTurn = 0;
  let waiting = 0;
  let isClosed = false;

  const inAll = (): number => underWay.answered + underWay.silent + underWay.new;
  const quarter = (): number => Math.max(1, Math.floor(deps.limit() / SHARE));
  const shareOf = ({ standing }: Line<Item>): number => (standing === "silent" ? 1 : quarter());

  /** Whether one more of these may be under way. */
  function hasRoom(standing: Standing): boolean {
    if (inAll() >= deps.limit()) return false;
    if (standing === "answered") return true;
    if (standing === "silent" && underWay.silent >= quarter()) return false;
    return underWay.silent + underWay.new < deps.limit() - Math.floor(deps.limit() / SHARE);
  }

  function place(line: Line<Item>): void {
    const { host } = line;
    const standing = turns[line.standing];
    if (line.waiting.length === 0 || line.underWay >= shareOf(line)) standing.delete(host);
    else if (!standing.has(host)) {
      line.turn = ++lastTurn;
      standing.set(host, line);
    }
    if (line.waiting.length > 0 || line.underWay > 0) return;
    lines.delete(host);
    remember(line);
  }

  function remember({ host, standing }: Line<Item>): void {
    remembered.delete(host);
    remembered.set(host, standing);
    const [oldest] = remembered.keys();
    if (remembered.size > REMEMBERED_MAX && oldest !== undefined) remembered.delete(oldest);
  }

  function judge(line: Line<Item>, standing: Standing): void {
    turns[line.standing].delete(line.host);
    underWay[line.standing] -= line.underWay;
    underWay[standing] += line.underWay;
    line.standing = standing;
  }

  function startNext(line: Line<Item>): void {
    const item = shift(line.waiting);
    if (item === undefined) return;
    waiting--;
    underWay[line.standing]++;
    line.underWay++;
    turns[line.standing].delete(line.host);
    place(line);
    deps.start(item);
  }

  function nextLine(): Line<Item> | undefined {
    const heads = STANDINGS.filter(hasRoom).flatMap((standing) => turns[standing].values().next().value ?? []);
    return heads.reduce<Line<Item> | undefined>(
      (one, other) => (one && one.turn < other.turn ? one : other),
      undefined,
    );
  }

  function serve(): void {
    while (!isClosed) {
      const next = nextLine();
      if (next === undefined) return;
      startNext(next);
    }
  }

  return {
    add(host, item) {
      const standing = remembered.get(host) ?? "new";
      const line = lines.get(host) ?? { host, waiting: fifo<Item>(), standing, underWay: 0, turn: 0 };
      lines.set(host, line);
      push(line.waiting, item);
      waiting++;
      place(line);
      serve();
    },
    release(host, answered) {
      const line = lines.get(host);
      if (line === undefined) return;
      underWay[line.standing]--;
      line.underWay--;
      judge(line, answered ? "answered" : "silent");
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
    underWay: inAll,
    waiting: () => waiting,
  };
}
