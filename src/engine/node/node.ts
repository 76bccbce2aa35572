/**
 * One node of a cluster: it follows, and leads while it has the lead of the journal.
 *
 *     const node = await openNode({ id: "n1", log, … });
 *     node.onLife(({ role, drover }) => …);      // now, and after every change of role
 *     await node.close();                        // hands the lead over first
 *
 * A node has one life at a time (lives.ts), and at every moment there is one: also an ended one answers, with an error
 * that says to try again. A follower that gets the lead applies all that the journal has, then leads over the state it
 * has. A leader whose lead is not sure any more, or whose append is refused, ends its life at once: whoever waits is
 * told to try again. Then it follows, and waits for the lead anew.
 *
 * What passes (the journal is out of reach, or full) ends a life, and the next begins after a rest. What does not pass
 * (a disk that is full, a replica that is damaged, a rule that broke) ends the node: `failed` resolves.
 */
import { milliseconds } from "../../core/base/index.ts";
import type { State } from "../../core/model/index.ts";
import { type Lead, LogFailure } from "../../log/index.ts";
import type { NodeSeen } from "../../log/journal/index.ts";
import {
  createNodeDoor,
  forwardSeal,
  isForwardSeal,
  type NodeWord,
  nodeToken,
  readWord,
  type SealedWord,
  type SentOn,
  type Signer,
  sealWord,
} from "../../log/shared/index.ts";
import { restFor } from "../../std/index.ts";
import { DroverError } from "../base/drover-error.ts";
import type { Drover } from "../drover-api.ts";
import { type Life, stopActing } from "../life.ts";
import { stopOf } from "../writer/group-commit.ts";
import { type AgreedClock, createAgreedClock } from "./agreed-clock.ts";
import { type Announcing, type NodeDown, type NodePlace, startAnnouncing } from "./announcing.ts";
import { createClockCheck } from "./clock-check.ts";
import { type ClusterView, DOWN_MS } from "./cluster-view.ts";
import { currentDrover } from "./current-drover.ts";
import type { JournalAway } from "./journal-reach.ts";
import {
  type AppliedHead,
  createLives,
  type Lives,
  type LivesOptions,
  type NodeFacts,
  type NodeLife,
} from "./lives.ts";
import { createOwnWarnings, type OwnWarnings } from "./own-warnings.ts";
import { createReadOnly, type ReadOnly } from "./read-only.ts";
import { type ReplicaSource, replicaSource } from "./replica-source.ts";
import { type Witnessed, witnessed } from "./witnesses.ts";

/** How a node is opened. */
export type NodeOptions = Omit<LivesOptions, "self" | "onApplied" | "onApart" | "agreed"> & {
  readonly id: string;
  /** Where other nodes and clients reach this one. */
  readonly advertise: () => string;
  /** The public key of what it signs: ed25519, SPKI in base64. */
  readonly publicKey: string;
  /** What signs with it; absent in a test. */
  readonly signer?: Pick<Signer, "sign">;
  readonly leaseMs: number;
  /** When its log began to be opened, by `clock.elapsed`; absent: now. */
  readonly openedAt?: number;
};
/** One node of a cluster. */
export type DroverNode = AsyncDisposable & {
  /** Its name. */
  readonly id: string;
  /** Where other nodes and clients reach it. */
  url(): string;
  /** By which the node that has just given this word lets this one in, for a minute; null if they share no secret. */
  tokenFor(word: NodeWord): string | null;
  /** Whether it is such a token of another node, for this one. */
  isTokenOfNode(token: string): boolean;
  /** That this node sends a call on; null if nodes share no secret. */
  sealForward(call: SentOn): string | null;
  /** Whether a node of this cluster has sent a call on, by the seal that came with it. */
  isForwarded(call: SentOn, seal: unknown): boolean;
  /** What it says of itself to whoever asks this question; null if nodes share no secret. */
  word(question: string): SealedWord | null;
  /** What another node has said to this question; null if no node of this cluster has. */
  readWord(question: string, told: unknown): NodeWord | null;
  /** All lives as one: each call goes to the one that is there. It is closed with the node. */
  readonly drover: Drover;
  /** The present life; one that has ended, until the next has begun. */
  life(): NodeLife;
  /** Calls the listener with the present life, and with each that begins; answers how to stop. */
  onLife(listener: (life: NodeLife) => void): () => void;
  /** The last event that is applied here and committed, the chain's hash there, and the epoch as far as it is known. */
  applied(): AppliedHead;
  /** Resolves when the event is applied here; rejects when the signal fires. */
  reached(at: number, signal?: AbortSignal): Promise<void>;
  /** How long ago this node had all that the journal had, for sure; a leader has it. */
  ageMs(): number;
  /** Why nothing can be written, if the journal has no room; null if it has, as far as this node knows. */
  readOnly(): string | null;
  /** Since when the journal does not answer, and why; null if it does, as far as this node knows. */
  journalAway(): JournalAway | null;
  /** Where the leader is reached, as far as this node knows; null if nobody leads. */
  leaderUrl(): string | null;
  /** The other nodes that were heard of in the last seconds, the leader first. */
  peers(): readonly NodePlace[];
  /** Other nodes that are down, as far as this one can tell. */
  down(): readonly NodeDown[];
  /** All nodes, and the health of the journal. */
  cluster(): Promise<ClusterView>;
  /** What is wrong with the address that it tells the others, as whoever serves it has found; null: nothing. */
  atAddress(text: string | null): void;
  /** Which other nodes do not let this one in, as its server finds it; null: all do. */
  keptOut(text: string | null): void;
  /** Which other nodes have signed the history that this one has, and which have signed another. */
  witnessed(): Promise<Witnessed>;
  /** What other nodes read of its replica; null if that is in memory only. */
  readonly shared: ReplicaSource | null;
  /** Gives the lead up in good order, and follows; others go first from then on. */
  handOver(): Promise<void>;
  /** Resolves with the reason if the node must stop. */
  readonly failed: Promise<DroverError>;
  /** Hands the lead over, ends, and closes the log. May be called twice. */
  close(): Promise<void>;
};

/** When the lead is handed over: for handlers in the process to end, and as long for what is on its way to the log. */
const HAND_OVER_MS = 300;
/** The rest after a life that failed: doubled each time, up to the second. */
const [REST_MS, REST_MS_MAX] = [100, 5000];

/** Resolves when the node follows. */
export async function openNode(options: NodeOptions): Promise<DroverNode> {
  const { id, log, clock, leaseMs, onWarning, openedAt = clock.elapsed() } = options;
  const self = (): NodeFacts => ({ id, url: options.advertise(), key: options.publicKey });
  const readOnly = createReadOnly(clock, (message) => onWarning(`node ${id}: ${message}`));
  const warnings = createOwnWarnings((message) => onWarning(`node ${id}: ${message}`));
  const onApart = (text: string | null): void => warnings.set("log time", text);
  const agreed = createAgreedClock(clock, () => lives.dateChanged());
  const lives = createLives({ ...options, self, onApplied: () => announcing.onApplied(), onApart, agreed }, () =>
    again(`node ${id} takes the lead`),
  );
  const leads = (): boolean => lives.present().leads();
  const told = { process: options.newId(), self, applied: lives.applied, readOnly, warnings };
  const hears = { openedAt, onSeen: compare(options, { warnings, agreed }, (nodes) => takeDown(nodes, lives)), leads };
  const announcing = startAnnouncing({ ...options, ...told, ...hears });
  const failed = Promise.withResolvers<DroverError>();
  let hasFailed = false;
  const closing = new AbortController();
  const whenClosing = new Promise<null>((resolve) => closing.signal.addEventListener("abort", () => resolve(null)));
  /** The wish to give up the lead; granted when the node follows. */
  let wish = newWish();

  async function run(): Promise<void> {
    for (let rest = REST_MS, hadLead = false; !closing.signal.aborted; ) {
      try {
        if (!lives.isLiving()) await lives.follow();
        // One that has just lost the lead does not fight for it.
        if (hadLead) await Promise.race([pause(rest), whenClosing]);
        const lead = await elected();
        if (lead === null) return;
        hadLead = true;
        if (await serve(lead)) rest = REST_MS;
      } catch (error) {
        const stop = stopOf(error);
        await lives.drop(stop);
        grantWish();
        hasFailed = !passes(stop);
        if (hasFailed) return failed.resolve(stop);
        const restMs = restAfter(stop, rest, { id, readOnly, onWarning, seq: lives.applied().seq });
        await Promise.race([pause(restMs), whenClosing]);
        rest = Math.min(rest * 2, REST_MS_MAX);
      }
    }
  }

  /** Whoever wished that this node does not lead has it. */
  function grantWish(): void {
    if (!wish.isMade) return;
    wish.granted.resolve();
    wish = newWish();
  }

  const elected = (): Promise<Lead | null> =>
    wonUnless((signal) => log.acquireLead(id, milliseconds(leaseMs), signal), [failing(), whenClosing]);

  /** Leads until the lead is lost or given up. Whether it came to that. */
  async function serve(lead: Lead): Promise<boolean> {
    try {
      if (!(await hasCaughtUp(lead))) return false;
      await leadToTheEnd(await lives.lead(lead), lead);
    } finally {
      // Whoever waits for the lead need not wait for the lease to run out.
      await Promise.race([lead.release(), pause(HAND_OVER_MS)]);
    }
    if (!wish.isMade) return true;
    await lives.follow();
    grantWish();
    await Promise.race([pause(leaseMs), failing(), whenClosing]);
    return true;
  }

  /** Whoever led before can append nothing more: what the log has now is all. */
  async function hasCaughtUp({ lost }: Lead): Promise<boolean> {
    const { seq: last } = await log.head();
    const there = lives.reached(last, closing.signal).then(
      () => true,
      () => false,
    );
    return Promise.race([there, failing(), lost.then(() => false)]);
  }

  async function leadToTheEnd(life: Life, { lost }: Lead): Promise<void> {
    const ends = await Promise.race([
      life.failed,
      announcing.twin,
      lost.then((loss) => deposedBy(loss, announcing.reach)),
      wish.made.promise,
    ]);
    const reason = ends ?? again(`node ${id} has handed over the lead`);
    if (ends === null) await quiesce(life, reason, () => pause(HAND_OVER_MS));
    await lives.drop(reason);
    if (ends !== null && ends.code !== "deposed") throw ends;
  }

  const pause = (ms: number): Promise<void> => restFor(clock, ms, { keepAlive: false });

  /** Rejects with what the present life fails with, or this node as a whole. */
  async function failing(): Promise<never> {
    const { drover } = lives.present();
    throw await Promise.race([drover.failed, announcing.twin]);
  }

  await lives.follow();
  lives.onLife(() => void announcing.tell());
  const running = run();

  async function handOver(): Promise<void> {
    if (lives.present().role !== "leader" || !lives.isLiving()) return;
    const { granted } = wish;
    makeWish();
    await granted.promise;
  }

  function makeWish(): void {
    wish.isMade = true;
    wish.made.resolve(null);
  }

  async function shut(): Promise<void> {
    makeWish();
    closing.abort();
    announcing.stop();
    await running;
    if (!hasFailed) await Promise.race([announcing.leave(), pause(HAND_OVER_MS)]);
    await lives.close(new DroverError("closed", "this node is closed; open it again"));
    await log.close();
  }

  let closed: Promise<void> | null = null;
  function close(): Promise<void> {
    closed ??= shut();
    return closed;
  }

  const source = { life: lives.present, onLife: lives.onLife, failed: failed.promise, close };
  return {
    ...source,
    ...identity(options, { leads, applied: lives.applied }),
    drover: currentDrover(source),
    ...viewsOf(options, lives, announcing),
    readOnly: readOnly.reason,
    atAddress: (text) => warnings.set("address", text),
    keptOut: (text) => warnings.set("doors", text),
    handOver,
    [Symbol.asyncDispose]: close,
  };
}

type Views = "applied" | "reached" | "ageMs" | "journalAway" | "leaderUrl" | "peers" | "down" | "cluster" | "witnessed";
/** Where it is, and what it knows of the others. */
function viewsOf({ id, log }: NodeOptions, lives: Lives, announcing: Announcing): Pick<DroverNode, Views> {
  const stateNow = (): State => lives.present().drover.state;
  return {
    applied: lives.applied,
    reached: lives.reached,
    ageMs: () => (lives.present().leads() ? 0 : announcing.ageMs()),
    journalAway: announcing.reach.away,
    leaderUrl: () => leaderUrl(stateNow()),
    peers: () => leaderFirst(announcing.peers(), stateNow()),
    down: announcing.down,
    cluster: announcing.view,
    witnessed: () => witnessed({ log, state: stateNow(), self: id }),
  };
}

/** The leader takes down who there is. */
function takeDown(nodes: readonly NodeSeen[], lives: Lives): void {
  if (!lives.present().leads()) return;
  for (const { node, url, key } of nodes) if (key !== undefined) lives.takeDown({ id: node, url, key });
}

type Seen = (nodes: readonly NodeSeen[]) => void;
type Own = { readonly warnings: OwnWarnings; readonly agreed: AgreedClock };
/**
 * What others tell, compared with what is so here: their clocks, and their addresses. Calls meant for one of two nodes
 * with the same address reach the other: said once for each such pair.
 */
function compare({ id, advertise, clock }: NodeOptions, { warnings, agreed }: Own, onSeen: Seen): Seen {
  const compareClocks = createClockCheck(clock, agreed, (text, sign) => warnings.set("clocks", text, sign));
  return (nodes) => {
    const own = advertise();
    const others = nodes.filter(({ node }) => node !== id);
    compareClocks(others);
    const twins = others.filter(({ url, ageMs }) => url === own && ageMs <= DOWN_MS);
    const names = twins.map(({ node }) => node).join(", ");
    const text = `${names} announces the same address, ${own}. Give each node its own with --advertise.`;
    warnings.set("twin", names === "" ? null : text);
    onSeen(nodes);
  };
}

type Wish = {
  isMade: boolean;
  readonly made: PromiseWithResolvers<null>;
  readonly granted: PromiseWithResolvers<void>;
};
const newWish = (): Wish => ({ isMade: false, made: Promise.withResolvers(), granted: Promise.withResolvers() });

/** Waits for the lead, unless one of the others comes first: null, or what it is rejected with. */
async function wonUnless(
  acquire: (signal: AbortSignal) => Promise<Lead>,
  others: readonly Promise<null>[],
): Promise<Lead | null> {
  const over = new AbortController();
  const lead = acquire(over.signal);
  const first = await Promise.race([lead, ...others]).catch((error: unknown) => ({ error }));
  if (first !== null && "epoch" in first) return first;
  over.abort();
  // It may come all the same, when nobody waits for it any more.
  lead.then(
    (late) => late.release(),
    () => {},
  );
  if (first === null) return null;
  throw first.error;
}

/** Nothing more is begun; what is under way is stopped or made durable, as far as the time allows. */
async function quiesce(life: Life, reason: DroverError, late: () => Promise<void>): Promise<void> {
  stopActing(life);
  await Promise.race([life.workers.leaveAll(), late()]);
  life.rejections.flush();
  await Promise.race([life.writer.close(reason), late()]);
}

function leaderUrl({ cluster }: State): string | null {
  return cluster.leader === null ? null : (cluster.nodes.get(cluster.leader)?.url ?? null);
}

const leaderFirst = (nodes: readonly NodePlace[], { cluster: { leader } }: State): readonly NodePlace[] =>
  nodes.toSorted((left, right) => Number(right.id === leader) - Number(left.id === leader));

/** A lead that was not renewed is the first sign that the journal is away: other questions may wait for longer. */
function deposedBy({ reason, message }: Awaited<Lead["lost"]>, reach: Announcing["reach"]): DroverError {
  if (reason === "expired") reach.failed(new LogFailure("unreachable", message));
  return new DroverError("deposed", `${message}; try again`);
}

const again = (what: string): DroverError => new DroverError("no_leader", `${what}; try again`);

type Told = Pick<NodeOptions, "id" | "onWarning"> & { readonly readOnly: ReadOnly; readonly seq: number };

/** How long it rests without a life. A full journal can be read: over that it rests as one that follows. */
function restAfter({ message, cause }: DroverError, rest: number, { id, readOnly, onWarning, seq }: Told): number {
  if (readOnly.isFull(cause, seq)) return REST_MS;
  onWarning(`node ${id}: ${message}; it is tried again in ${rest} ms`);
  return rest;
}

/** Whether the next life may do better: the journal was out of reach or full, or another node led. */
function passes({ code, details }: DroverError): boolean {
  if (code === "log_failed") return details.log === undefined || PASSING.has(String(details.log));
  return code === "deposed" || code === "no_leader";
}
const PASSING: ReadonlySet<string> = new Set(["unreachable", "journal-full"]);

type Proofs = "tokenFor" | "isTokenOfNode" | "sealForward" | "isForwarded" | "word" | "readWord";
/** Its name and place, and how it proves the name to the others. */
function identity(
  { id, advertise, attemptSecret: secret, clock, log: { directory } }: NodeOptions,
  { leads, applied }: { readonly leads: () => boolean; readonly applied: () => AppliedHead },
): Pick<DroverNode, "id" | "url" | "shared" | Proofs> {
  const door = secret === undefined ? null : createNodeDoor({ secret, self: id, clock });
  const wordAt = (moment: string): NodeWord => {
    const { epoch } = applied();
    return { node: id, url: advertise(), leads: leads(), epoch, moment };
  };
  return {
    id,
    url: advertise,
    tokenFor: (word) => (secret === undefined ? null : nodeToken(secret, id, word)),
    isTokenOfNode: (token) => door?.isOpenedBy(token) === true,
    sealForward: (call) => (secret === undefined ? null : forwardSeal(secret, call)),
    isForwarded: (call, seal) => secret !== undefined && isForwardSeal(secret, call, seal),
    word: (question) =>
      secret === undefined || door === null ? null : sealWord(secret, question, wordAt(door.moment())),
    readWord: (question, told) => (secret === undefined ? null : readWord(secret, question, told)),
    shared: directory === null ? null : replicaSource(directory, door),
  };
}
