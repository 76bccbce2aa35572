/**
 * Where the contents of files lie in a simulated world: in one place that outlives every engine.
 *
 * An engine whose life is over reaches it no more, whatever it was about to do. Now and then a content cannot be kept,
 * as on a disk that fails.
 */
import type { FileMedium } from "../engine/index.ts";
import type { Life, SimWorld } from "./sim-clock.ts";

/** Every so many contents one cannot be kept. */
const FAILS_EVERY = 9;

type Kept = { readonly bytes: Buffer; at: number };
export type SimFiles = {
  /** As the engine of this life has it. */
  of(life: Life): FileMedium;
  has(hash: string): boolean;
  /** When each content came, or came again; none where the date was set, since they are kept by the date. */
  all(): Iterable<readonly [hash: string, at: number]>;
};

export function createSimFiles({ now, elapsed }: Pick<SimWorld, "now" | "elapsed">, mayFail: () => boolean): SimFiles {
  const kept = new Map<string, Kept>();
  const start = now() - elapsed();
  let puts = 0;

  async function keep(hash: string, bytes: Buffer): Promise<void> {
    if (++puts % FAILS_EVERY === 0 && mayFail()) throw new Error("the disk does not take it");
    kept.set(hash, { bytes, at: now() });
  }

  function of(life: Life): FileMedium {
    const whileAlive = <Value>(work: () => Promise<Value>): Promise<Value> =>
      life.isAlive() ? work() : new Promise(() => {});
    return {
      sweep: async () => {},
      list: async () => [...kept].map(([hash, { bytes, at }]) => ({ hash, size: bytes.length, at })),
      look(hash) {
        const content = kept.get(hash);
        return content === undefined ? null : { hash, size: content.bytes.length, at: content.at };
      },
      async receive() {
        const chunks: Uint8Array[] = [];
        return {
          write: async (chunk) => void chunks.push(chunk),
          keep: (hash) => whileAlive(() => keep(hash, Buffer.concat(chunks))),
          drop: async () => {},
        };
      },
      async *read(hash) {
        const content = kept.get(hash);
        if (content === undefined) throw Object.assign(new Error("it is gone"), { code: "ENOENT" });
        yield content.bytes;
      },
      touch: (hash, at) =>
        whileAlive(async () => {
          const content = kept.get(hash);
          if (content !== undefined) content.at = at;
        }),
      remove: (hash) => whileAlive(async () => void kept.delete(hash)),
    };
  }

  return {
    of,
    has: (hash) => kept.has(hash),
    *all() {
      if (now() - elapsed() !== start) return;
      for (const [hash, { at }] of kept) yield [hash, at];
    },
  };
}
