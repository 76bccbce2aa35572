/**
 * One request of a connection at a time.
 *
 * HTTP lets a caller send its next request before it has read the last answer, and Node hands every request over as
 * soon as it has read it, a thousand from one packet. If each were begun then, a thousand answers would pile up here
 * for a caller that reads none. So a request is begun when Node gives its answer the connection, which is when the
 * answer before it has left. What waits is a few kilobytes a request, and Node keeps it until the connection ends; so
 * a connection with too many waiting ends at once, and so does the one that brings the number of all over its limit.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

export type PipelineLimits = {
  /** Requests that wait behind another one of their connection. */
  readonly pipelinedMax: number;
  /** Of all connections together. */
  readonly pipelinedInAllMax: number;
};
export type InTurn = (request: IncomingMessage, response: ServerResponse, begin: () => void) => void;

export function createRequestTurns({ pipelinedMax, pipelinedInAllMax }: PipelineLimits): InTurn {
  const waiting = new Map<Socket, number>();
  let inAll = 0;

  function forget(socket: Socket): void {
    inAll -= waiting.get(socket) ?? 0;
    waiting.delete(socket);
  }

  function count(socket: Socket, by: 1 | -1): number {
    const known = waiting.get(socket);
    // One that has ended is counted no more; Node may still hand over what it had read of it.
    if (known === undefined && (by < 0 || socket.destroyed)) return 0;
    if (known === undefined) socket.once("close", () => forget(socket));
    const next = (known ?? 0) + by;
    waiting.set(socket, next);
    inAll += by;
    return next;
  }

  return (request, response, begin) => {
    if (response.socket !== null) return begin();
    const { socket } = request;
    if (count(socket, 1) > pipelinedMax || inAll > pipelinedInAllMax) return void socket.destroy();
    response.once("socket", () => {
      count(socket, -1);
      begin();
    });
  };
}
