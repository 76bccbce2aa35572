/**
 * Whose webhook goes out next: one queue per receiving host, and the hosts take turns.
 *
 * A receiver that hangs holds every connection it is given for the whole time limit. If all webhooks stood in one
 * queue, a single such receiver with many of them would soon hold all there are, and everybody else's would wait behind
 * it. So no host has more than a quarter of what may be under way at once, and one that does not answer is down to a
 * single one until it answers again. Many receivers may hang: those that gave no answer the last time have a quarter
 * for all of them together, and a quarter is kept for those that answered, so that receivers that never answered,
 * however many names they have, never hold it all. How a host stood is remembered when its queue is empty, since what
 * failed rests before it comes back. Among the hosts that may have another, the one served longest ago is next. Within
 * a host the order is that of arrival.
 *
 * Who names the hosts is somebody too. At hosts that did not answer yet, projects take turns before hosts do, and a
 * project that has a quarter under way there gets more only while another quarter is left for other projects. So the
 * hanging hosts of a project hold up its own new hosts; those of another they do not, and where several projects have
 * such hosts, a new project waits for one that ends and not for all of them. A host that several projects wait for
 * stands in the turn of each. Every step costs the same however long the queues are; at a host that did not answer, it
 * grows with the projects that wait for this host.
 */
import { type Fifo, fifo, push, shift } from "../../core/collections/index.ts";
import { remember } from "../../std/index.ts";

const SHARE = 4;
/** Hosts that are remembered; the one whose queue was empty first is forgotten first. */
const REMEMBERED_MAX = 10_000;

/** In whose turn the hosts stand that answered: projects make no difference there. */
const EVERYBODY = "";

/** What is known of a host: it answered last time, it did not, or it was never asked. */
type Standing = "answered" | "silent" | "new";
const STANDINGS: readonly Standing[] = ["answered", "silent", "new"];
type HostQueue<Item> = {
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
type Hosts<Item> = Map<string, HostQueue<Item>>;
type HostQueues<Item> = {
  add(host: string, project: string, item: Item): void;
  /** One of the project's at this host has ended; whether the host answered, null if it was not asked. */
  release(host: string, project: string, answered: boolean | null): void;
  /** Starts what may start: call it when the limit was raised. */
  serve(): void;
  /** Nothing starts any more. */
  close(): void;
  underWay(): number;
  waiting(): number;
};

type Shares = {
  /** How many of one host may be under way. */
  of(standing: Standing): number;
  hasRoom(standing: Standing): boolean;
  mayTake(standing: Standing, project: string): boolean;
  count(standing: Standing, project: string, change: number): void;
  underWay(): number;
};

/** How many may be under way, by what is known of their hosts and by project. */
function createShares(limit: () => number): Shares {
  const underWay = { answered: 0, silent: 0, new: 0 };
  /** Per project what is under way to hosts that did not answer; none that has nothing. */
  const unheard = new Map<string, number>();
  const inAll = (): number => underWay.answered + underWay.silent + underWay.new;
  const quarter = (): number => Math.max(1, kept());
  /** Nothing can be kept of fewer than four. */
  const kept = (): number => Math.floor(limit() / SHARE);

  /** Whether one more of these may be under way. */
  function hasRoom(standing: Standing): boolean {
    if (inAll() >= limit()) return false;
    if (standing === "answered") return true;
    if (standing === "silent" && underWay.silent >= quarter()) return false;
    return underWay.silent + underWay.new < limit() - kept();
  }

  /** Whether it may be one of this project's. Few are refused: only so many can have a quarter each. */
  function mayTake(standing: Standing, project: string): boolean {
    if (standing === "answered" || (unheard.get(project) ?? 0) < quarter()) return true;
    return underWay.silent + underWay.new < limit() - 2 * kept();
  }

  function count(standing: Standing, project: string, change: number): void {
    underWay[standing] += change;
    if (standing === "answered") return;
    const held = (unheard.get(project) ?? 0) + change;
    if (held === 0) unheard.delete(project);
    else unheard.set(project, held);
  }

  return { of: (standing) => (standing === "silent" ? 1 : quarter()), hasRoom, mayTake, count, underWay: inAll };
}

export function createHostQueues<Item>(deps: {
  readonly limit: () => number;
  readonly start: (item: Item) => void;
}): HostQueues<Item> {
  const queues = new Map<string, HostQueue<Item>>();
  const remembered = new Map<string, Standing>();
  /** Per standing the projects, in the order of their turn; hosts that answered are all in one, EVERYBODY. */
  const turns: Record<Standing, Map<string, Hosts<Item>>> = { answered: new Map(), silent: new Map(), new: new Map() };
  const shares = createShares(deps.limit);
  let lastTurn = 0;
  let waiting = 0;
  let isClosed = false;

  const whose = ({ standing, projects }: HostQueue<Item>): Iterable<string> =>
    standing === "answered" ? [EVERYBODY] : projects.keys();

  function leave(queue: HostQueue<Item>): void {
    if (queue.turn === 0) return;
    const standing = turns[queue.standing];
    queue.turn = 0;
    for (const project of whose(queue)) {
      const hosts = standing.get(project);
      hosts?.delete(queue.host);
      if (hosts?.size === 0) standing.delete(project);
    }
  }

  /** It stands in the turn of these projects, as far as they wait for it. */
  function stand(queue: HostQueue<Item>, projects: Iterable<string>): void {
    const standing = turns[queue.standing];
    queue.turn ||= ++lastTurn;
    for (const project of projects) {
      if (queue.standing !== "answered" && queue.projects.get(project)?.waiting === 0) continue;
      const hosts = standing.get(project) ?? new Map<string, HostQueue<Item>>();
      hosts.set(queue.host, queue);
      standing.set(project, hosts);
    }
  }

  function settleTurn(queue: HostQueue<Item>): void {
    if (queue.waiting.length > 0 && queue.underWay < shares.of(queue.standing)) stand(queue, whose(queue));
    else leave(queue);
    if (queue.waiting.length > 0 || queue.underWay > 0) return;
    queues.delete(queue.host);
    remember(remembered, queue.host, queue.standing, REMEMBERED_MAX);
  }

  function judge(queue: HostQueue<Item>, standing: Standing): void {
    leave(queue);
    if (queue.standing === standing) return;
    for (const [project, has] of queue.projects) {
      shares.count(queue.standing, project, -has.underWay);
      shares.count(standing, project, has.underWay);
    }
    queue.standing = standing;
  }

  function startNext({ queue, project }: { readonly queue: HostQueue<Item>; readonly project: string }): void {
    const next = shift(queue.waiting);
    const has = next && queue.projects.get(next.project);
    if (next === undefined || has === undefined) return;
    leave(queue);
    waiting--;
    has.waiting--;
    has.underWay++;
    queue.underWay++;
    shares.count(queue.standing, next.project, 1);
    settleTurn(queue);
    passTurn(turns[queue.standing], project);
    deps.start(next.item);
  }

  function nextOf(standing: Standing): { readonly queue: HostQueue<Item>; readonly project: string } | undefined {
    if (!shares.hasRoom(standing)) return undefined;
    for (const [project, hosts] of turns[standing]) {
      const [queue] = hosts.values();
      if (queue !== undefined && shares.mayTake(standing, project)) return { queue, project };
    }
    return undefined;
  }

  function next(): ReturnType<typeof nextOf> {
    const heads = STANDINGS.flatMap((standing) => nextOf(standing) ?? []);
    return heads.reduce<ReturnType<typeof nextOf>>(
      (one, other) => (one && one.queue.turn < other.queue.turn ? one : other),
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
      const queue = queues.get(host) ?? newQueue<Item>(host, remembered.get(host) ?? "new");
      const has = queue.projects.get(project) ?? { waiting: 0, underWay: 0 };
      queues.set(host, queue);
      queue.projects.set(project, has);
      push(queue.waiting, { project, item });
      has.waiting++;
      waiting++;
      if (queue.underWay < shares.of(queue.standing))
        stand(queue, queue.standing === "answered" ? [EVERYBODY] : [project]);
      serve();
    },
    release(host, project, answered) {
      const queue = queues.get(host);
      const has = queue?.projects.get(project);
      if (queue === undefined || has === undefined) return;
      shares.count(queue.standing, project, -1);
      has.underWay--;
      queue.underWay--;
      judge(queue, answered === null ? queue.standing : answered ? "answered" : "silent");
      if (has.waiting === 0 && has.underWay === 0) queue.projects.delete(project);
      settleTurn(queue);
      serve();
    },
    serve() {
      for (const queue of queues.values()) settleTurn(queue);
      serve();
    },
    close() {
      isClosed = true;
    },
    underWay: shares.underWay,
    waiting: () => waiting,
  };
}

const newQueue = <Item>(host: string, standing: Standing): HostQueue<Item> => ({
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
