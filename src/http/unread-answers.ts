/**
 * Answers that their callers have not taken yet: how many bytes they hold here, and that this has an end.
 *
 * A connection has one answer under way at a time (request-turn.ts), and nearly always it leaves at once. What does not
 * is counted until it has gone. When all of it together is more than there is room for, the connection that holds most
 * is cut off, and the next, until there is room; of those that hold as much, who has waited longest. So no caller loses
 * an answer because another's is large. The newest has not had the time to be read: it is judged when the next comes,
 * and until then counts against no caller. So what is held is at most the maximum and one answer. What is shared by all
 * who ask for it, such as the OpenAPI document, costs nothing more for one who does not.
 */
import type { ServerResponse } from "node:http";

export type UnreadAnswers = {
  /** So many bytes wait for this caller; answers how to say that they have gone. */
  hold(response: ServerResponse, bytes: number): () => void;
  bytes(): number;
};

export function createUnreadAnswers({ unreadBytesMax }: { readonly unreadBytesMax: number }): UnreadAnswers {
  /** Who has waited longest comes first. */
  const held = new Map<ServerResponse, number>();
  let sum = 0;

  function letGo(response: ServerResponse): void {
    sum -= held.get(response) ?? 0;
    held.delete(response);
  }

  function largestBut(newest: ServerResponse): ServerResponse | undefined {
    let found: ServerResponse | undefined;
    let most = 0;
    for (const [response, bytes] of held) if (response !== newest && bytes > most) [found, most] = [response, bytes];
    return found;
  }

  return {
    hold(response, bytes) {
      letGo(response);
      held.set(response, bytes);
      sum += bytes;
      while (sum - bytes > unreadBytesMax) {
        const largest = largestBut(response) as ServerResponse;
        letGo(largest);
        largest.destroy();
      }
      return () => letGo(response);
    },
    bytes: () => sum,
  };
}
