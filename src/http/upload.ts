/**
 * A body that no limit of time for a whole request fits: the content of a file.
 *
 * Node bounds how long a request may take to arrive, however long it is. A large file over a slow line takes longer
 * than any such bound that still cuts off a caller which sends nothing. So a body that is read here is spared that
 * bound, and has to keep up a rate instead: so many bytes in every window of time, or its connection ends.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { type Clock, realClock, ringEvery } from "../std/index.ts";

/** The slowest line: 8 KiB a second, looked at every half minute. */
const SLOWEST = { windowMs: 30_000, bytes: 30 * 8 * 1024 };
const spared = new WeakSet<Duplex>();

/** Whether the limit of time for a whole request does not hold for what this connection sends now. */
export const isSpared = (socket: Duplex): boolean => spared.has(socket);

/** A body that waits for its turn is not read, so it cannot arrive: until it is answered it is not hurried. */
export function spare({ socket }: IncomingMessage, response: ServerResponse): void {
  spared.add(socket);
  response.once("close", () => spared.delete(socket));
}

/** The body as it comes. One that comes too slowly ends with its connection. */
export async function* uploadOf(
  request: IncomingMessage,
  clock: Pick<Clock, "elapsed" | "ringAt"> = realClock,
): AsyncGenerator<Uint8Array> {
  const { socket } = request;
  let came = 0;
  const look = (): void => {
    if (came < SLOWEST.bytes) request.destroy();
    came = 0;
  };
  const cancel = ringEvery(clock, SLOWEST.windowMs, look, { keepAlive: false });
  spared.add(socket);
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      came += chunk.length;
      yield chunk;
    }
  } finally {
    cancel();
    spared.delete(socket);
  }
}
