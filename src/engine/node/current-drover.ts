/**
 * A node as one Drover that never changes: each call goes to the life that is there when it is made.
 *
 * So a server that was written for one engine serves a node: its handlers may keep what they took from it, and it holds
 * in every life. Who listens to commits or to due callbacks is heard in each life anew. Callbacks are due only where
 * this node leads for sure: a follower delivers nothing. A feed, a wait or a poll ends with the life it began in.
 */
import type { State } from "../../core/model/index.ts";
import type { Drover } from "../drover-api.ts";
import type { CommitListener } from "../writer/group-commit.ts";
import type { NodeLife } from "./lives.ts";

type Source = {
  life(): NodeLife;
  onLife(listener: (life: NodeLife) => void): () => void;
  readonly failed: Drover["failed"];
  close(): Promise<void>;
};

export function currentDrover({ life, onLife, failed, close }: Source): Drover {
  const now = (): Drover => life().drover;
  const calls = lateCalls(now);
  const { callbacks, ...first } = now();
  const nested = Object.entries(first)
    .filter(([key, value]) => typeof value === "object" && value !== null && !OWN.has(key))
    .map(([key]) => [key, lateCalls(() => now()[key as "remote"])]);
  return {
    ...(calls as Drover),
    ...Object.fromEntries(nested),
    state: lateState(now),
    failed,
    close,
    [Symbol.asyncDispose]: close,
    watch: (listener: CommitListener) => inEachLife(onLife, ({ drover }) => drover.watch(listener)),
    callbacks: {
      ...(lateCalls(() => now().callbacks) as Drover["callbacks"]),
      pending: () => (life().leads() ? now().callbacks.pending() : []),
      onDue: (listener) =>
        inEachLife(onLife, ({ role, drover }) => {
          // What was due before this node led is due now.
          if (role === "leader") listener();
          return drover.callbacks.onDue(listener);
        }),
    },
  };
}

/** What is not the same in another life, and is given here. */
const OWN: ReadonlySet<string> = new Set(["state", "failed"]);

/** The functions of an object, each that of the object there is when it is called. */
function lateCalls(now: () => object): object {
  type Calls = Readonly<Record<string, (...given: unknown[]) => unknown>>;
  const late = Object.entries(now())
    .filter(([, value]) => typeof value === "function")
    .map(([key]) => [key, (...given: unknown[]) => (now() as Calls)[key]?.(...given)]);
  return Object.fromEntries(late);
}

function lateState(now: () => Drover): State {
  const getters = Object.keys(now().state).map((key) => [
    key,
    { enumerable: true, get: () => now().state[key as "seq"] },
  ]);
  return Object.defineProperties({}, Object.fromEntries(getters)) as State;
}

/** Listens in the present life and in each that begins; answers how to stop. */
function inEachLife(onLife: Source["onLife"], listen: (life: NodeLife) => () => void): () => void {
  let stop = (): void => {};
  const stopLives = onLife((life) => {
    stop();
    stop = listen(life);
  });
  return () => {
    stopLives();
    stop();
  };
}
