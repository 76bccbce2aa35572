/**
 * Bulks of one client that are under way at the same time are begun in the order in which they left.
 *
 * They come over several connections, and each is begun a slice at a time: without this, a later one could overtake. A
 * client names itself and numbers its bulks, and says which one is still out that this one follows. That one is waited
 * for until all its calls are begun, not until it is answered. It may have been lost on the way: so the wait ends,
 * unless it is here and its calls are not all begun yet, which may take longer. One that was lost is waited for once:
 * behind the bulk that waited for it nothing else waits, and one that takes the place of another, which its client has
 * given up, waits for the rest of its time. What waits for one that is not here holds its body meanwhile; so only so
 * many do, and more are begun as they come.
 */
import { badField } from "../core/base/index.ts";
import { refused } from "../engine/base/index.ts";
import { BULK_HEADER } from "../protocol/wire/index.ts";
import { type Clock, LastOnes } from "../std/index.ts";

/** What TCP sends again comes 200 ms later at the earliest, and after two losses in a row 600 ms. */
const WAIT_MS = 1000;
/** Bulks that wait for one that is not here, of all clients. */
const ABSENT_MAX = 256;
/** Clients that are remembered, by the bulk that was begun last. */
const CLIENTS_MAX = 10_000;

type Waiting = { readonly until: number; readonly go: () => void };
type Place = { readonly client: string; readonly number: number; readonly after: number };
export type BulkOrder = {
  /** Resolves when the turn of this bulk has come, with how to say that all its calls are begun. */
  turn(header: unknown): Promise<() => void>;
};

export function createBulkOrder(clock: Pick<Clock, "elapsed" | "ringAt">): BulkOrder {
  const begun = new LastOnes<string, number>(CLIENTS_MAX);
  /** Who waits for a bulk, by its client and number. */
  const waiting = new Map<string, Waiting>();
  /** Those that are here and not begun yet, all of them. */
  const here = new Set<string>();
  /** So many wait for one that was not here when they came. */
  let absent = 0;

  function onceBegun({ client, number, after }: Place): Promise<void> | null {
    // One that follows a later one was made up, and nobody is to wait in a circle.
    if (after === 0 || after >= number || (begun.get(client) ?? 0) >= after) return null;
    const key = `${client} ${after}`;
    const isAbsent = !here.has(key);
    if (isAbsent && absent >= ABSENT_MAX) return null;
    if (isAbsent) absent++;
    return new Promise((resolve) => {
      const earlier = waiting.get(key);
      const until = earlier?.until ?? clock.elapsed() + WAIT_MS;
      const cancel = clock.ringAt(until, () => here.has(key) || go(), { keepAlive: false });
      const go = (): void => {
        waiting.delete(key);
        if (isAbsent) absent--;
        cancel();
        resolve();
      };
      // There is one that follows each; another was made up, and has nothing to wait for.
      earlier?.go();
      waiting.set(key, { until, go });
    });
  }

  return {
    async turn(header) {
      const place = placeOf(header);
      if (place === null) return () => {};
      const { client, number } = place;
      const key = `${client} ${number}`;
      here.add(key);
      await onceBegun(place);
      return () => {
        here.delete(key);
        begun.set(client, Math.max(number, begun.get(client) ?? 0));
        waiting.get(key)?.go();
      };
    },
  };
}

const PLACE = /^([\w-]{1,64}) (\d{1,15})(?: (\d{1,15}))?$/;

function placeOf(header: unknown): Place | null {
  if (header === undefined) return null;
  const [, client, number, after = "0"] = PLACE.exec(String(header)) ?? [];
  if (client === undefined)
    throw refused(
      badField(`header ${BULK_HEADER}`, header, "a name, the number of this bulk, and of the one it follows"),
    );
  return { client, number: Number(number), after: Number(after) };
}
