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
 * the order is that of arrival.
 *
 * Who names the hosts is somebody too. At hosts that did not answer yet, projects take turns before hosts do, and a
 * project that has a quarter under way there gets more only while another quarter is left for other projects. So the
 * hanging hosts of a project hold up its own new hosts; those of another they do not, and where several projects have
 * such hosts, a new project waits for one that ends and not for all of them. A host that several projects wait for
 * stands in the turn of each. Every step costs the same however long the lines are; at a host that did not answer, it
 * grows with the projects that wait for this host.
 */

import { type Fifo, fifo, push, shift } from "../../core/collections/index.ts";
import { remember } from "../../std/index.ts";

const SHARE = 4;
/** Hosts that are remembered; the one whose line was empty first is forgotten first. */
const REMEMBERED_MAX = 10_000;

/** In whose turn the hosts stand that answered: projects make no difference there. */
const EVERYBODY = "";

/** What is known of a host: it answered last time, it did not, or it was never asked. */
type Standing = "answered" | "silent" | "new";
const STANDINGS: readonly Standing[] = ["answered", "silent", "new"];
type Line<Item> = {
  readonly host: string;
  readonly waiting: Fifo<{ readonly project: string; readonly item: Item }>;
  /** What each project has here: none that has nothing. */
  readonly projects: Map<string, { waiting: number; underWay: number }>;
  standing: Standing;
  underWay: number;
  /** When it came to stand for its turn: lower is first; 0 while it does not. */
  turn: number;
};
/** The hosts of a project that wait and may have another under way, in the order of their turn. */
type Hosts<Item> = Map<string, Line<Item>>;
export type Lines<Item> = {
  add(host: string, project: string, item: Item): void;
  /** One of the project's at this host has ended; whether the host answered at all. */
  release(host: string, project: string, answered: boolean): void;
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
  /** Per standing the projects, in the order of their turn; hosts that answered are all in one, EVERYBODY. */
  const turns: Record<Standing, Map<string, Hosts<Item>>> = { answered: new Map(), silent: new Map(), new: new Map() };
  const underWay = { answered: 0, silent: 0, new: 0 };
  /** Per project what is under way to hosts that did not answer; none that has nothing. */
  const unheard = new Map<string, number>();
  let lastTurn = 0;
  let waiting = 0;
  let isClosed = false;

  const inAll = (): number => underWay.answered + underWay.silent + underWay.new;
  const quarter = (): number => Math.max(1, kept());
  /** Nothing can be kept of fewer than four. */
  const kept = (): number => Math.floor(deps.limit() / SHARE);
  const shareOf = ({ standing }: Line<Item>): number => (standing === "silent" ? 1 : quarter());

  /** Whether one more of these may be under way. */
  function hasRoom(standing: Standing): boolean {
    if (inAll() >= deps.limit()) return false;
    if (standing === "answered") return true;
    if (standing === "silent" && underWay.silent >= quarter()) return false;
    return underWay.silent + underWay.new < deps.limit() - kept();
  }

  /** Whether it may be one of this project's. Few are refused: only so many can have a quarter each. */
  function mayTake(standing: Standing, project: string): boolean {
    if (standing === "answered" || (unheard.get(project) ?? 0) < quarter()) return true;
    return underWay.silent + underWay.new < deps.limit() - 2 * kept();
  }

  function count(standing: Standing, project: string, change: number): void {
    underWay[standing] += change;
    if (standing === "answered") return;
    const held = (unheard.get(project) ?? 0) + change;
    if (held === 0) unheard.delete(project);
    else unheard.set(project, held);
  }

  const whose = ({ standing, projects }: Line<Item>): Iterable<string> =>
    standing === "answered" ? [EVERYBODY] : projects.keys();

  function leave(line: Line<Item>): void {
    if (line.turn === 0) return;
    const standing = turns[line.standing];
    line.turn = 0;
    for (const project of whose(line)) {
      const hosts = standing.get(project);
      hosts?.delete(line.host);
      if (hosts?.size === 0) standing.delete(project);
    }
  }

  /** It stands in the turn of these projects, as far as they wait for it. */
  function stand(line: Line<Item>, projects: Iterable<string>): void {
    const standing = turns[line.standing];
    line.turn ||= ++lastTurn;
    for (const project of projects) {
      if (line.standing !== "answered" && line.projects.get(project)?.waiting === 0) continue;
      const hosts = standing.get(project) ?? new Map<string, Line<Item>>();
      hosts.set(line.host, line);
      standing.set(project, hosts);
    }
  }

  function place(line: Line<Item>): void {
    if (line.waiting.length > 0 && line.underWay < shareOf(line)) stand(line, whose(line));
    else leave(line);
    if (line.waiting.length > 0 || line.underWay > 0) return;
    lines.delete(line.host);
    remember(remembered, line.host, line.standing, REMEMBERED_MAX);
  }

  function judge(line: Line<Item>, standing: Standing): void {
    leave(line);
    if (line.standing === standing) return;
    for (const [project, has] of line.projects) {
      count(line.standing, project, -has.underWay);
      count(standing, project, has.underWay);
    }
    line.standing = standing;
  }

  function startNext({ line, project }: { readonly line: Line<Item>; readonly project: string }): void {
    const next = shift(line.waiting);
    const has = next && line.projects.get(next.project);
    if (next === undefined || has === undefined) return;
    leave(line);
    waiting--;
    has.waiting--;
    has.underWay++;
    line.underWay++;
    count(line.standing, next.project, 1);
    place(line);
    passTurn(turns[line.standing], project);
    deps.start(next.item);
  }

  function nextOf(standing: Standing): { readonly line: Line<Item>; readonly project: string } | undefined {
    if (!hasRoom(standing)) return undefined;
    for (const [project, hosts] of turns[standing]) {
      const [line] = hosts.values();
      if (line !== undefined && mayTake(standing, project)) return { line, project };
    }
    return undefined;
  }

  function next(): ReturnType<typeof nextOf> {
    const heads = STANDINGS.flatMap((standing) => nextOf(standing) ?? []);
    return heads.reduce<ReturnType<typeof nextOf>>(
      (one, other) => (one && one.line.turn < other.line.turn ? one : other),
      undefined,
    );
  }

  function serve(): void {
    while (!isClosed) {
      const found = next();
      if (found === undefined) return;
      startNext(found);
    }
  }

  return {
    add(host, project, item) {
      const line = lines.get(host) ?? newLine<Item>(host, remembered.get(host) ?? "new");
      const has = line.projects.get(project) ?? { waiting: 0, underWay: 0 };
      lines.set(host, line);
      line.projects.set(project, has);
      push(line.waiting, { project, item });
      has.waiting++;
      waiting++;
      if (line.underWay < shareOf(line)) stand(line, line.standing === "answered" ? [EVERYBODY] : [project]);
      serve();
    },
    release(host, project, answered) {
      const line = lines.get(host);
      const has = line?.projects.get(project);
      if (line === undefined || has === undefined) return;
      count(line.standing, project, -1);
      has.underWay--;
      line.underWay--;
      judge(line, answered ? "answered" : "silent");
      if (has.waiting === 0 && has.underWay === 0) line.projects.delete(project);
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

const newLine = <Item>(host: string, standing: Standing): Line<Item> => ({
  host,
  waiting: fifo(),
  projects: new Map(),
  standing,
  underWay: 0,
  turn: 0,
});

/** To the end of the round, if it still waits. */
function passTurn<Item>(round: Map<string, Hosts<Item>>, project: string): void {
  const hosts = round.get(project);
  if (hosts === undefined || !round.delete(project)) return;
  round.set(project, hosts);
}
