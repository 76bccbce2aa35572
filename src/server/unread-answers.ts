/**
 * Answers that their callers have not taken yet: how many bytes they hold here, and that this has an end.
 *
 * A connection has one answer under way at a time (request-turn.ts), and nearly always it leaves at once. What does
 * not is counted until it has gone. When all of it together is more than there is room for, the connection that has
 * waited longest is cut off, and the next, until there is room: somebody who reads at all is rarely it, and may ask
 * again. The newest is never cut off for its own size: it has not had the time to be read. What is shared by all who
 * ask for it, such as the OpenAPI document, costs nothing more for one who does not.
 */
import type { ServerResponse } from "node:http";

export type UnreadAnswers = {
  /** So many bytes wait for this caller; answers how to say that they have gone. */
  hold(response: ServerResponse, bytes: number): () => void;
  bytes(): number;
};

export function createUnreadAnswers({ unreadBytesMax }: { readonly unreadBytesMax: number }): UnreadAnswers {
  /** Longest first. */
  const held = new Map<ServerResponse, number>();
  let sum = 0;

  function letGo(response: ServerResponse): void {
    sum -= held.get(response) ?? 0;
    held.delete(response);
  }

  return {
    hold(response, bytes) {
      letGo(response);
      held.set(response, bytes);
      sum += bytes;
      for (const longest of held.keys()) {
        if (sum <= unreadBytesMax || longest === response) break;
        letGo(longest);
        longest.destroy();
      }
      return () => letGo(response);
    },
    bytes: () => sum,
  };
}
