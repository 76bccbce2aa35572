/**
 * One request of a connection at a time.
 *
 * HTTP lets a caller send its next request before it has read the last answer, and Node hands every request over as
 * soon as it has read it, a thousand from one packet. If each were begun then, a thousand answers would pile up here
 * for a caller that reads none. So a request is begun when Node gives its answer the connection, which is when the
 * answer before it has left. What waits is a few kilobytes a request, and Node keeps it until the connection ends. So
 * the first that is too many on its connection is refused, in its turn, and the connection ends with that answer: what
 * comes behind is never begun. When all that wait are too many together, the connections that were refused end at
 * once, and if there are none, the one that is over the limit.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { ServerRefusal } from "./problem.ts";

export type PipelineLimits = {
  /** Requests that wait behind another one of their connection. */
  readonly pipelinedMax: number;
  /** Of all connections together. */
  readonly pipelinedInAllMax: number;
};
type InTurn = (request: IncomingMessage, response: ServerResponse, begin: () => void) => void;
/** Says no, as the last answer of its connection; the answer may have to wait for its turn. */
type Refuse = (request: IncomingMessage, response: ServerResponse, why: ServerRefusal) => void;

export function createRequestTurns({ pipelinedMax, pipelinedInAllMax }: PipelineLimits, refuse: Refuse): InTurn {
  const waiting = new Map<Socket, number>();
  /** Nothing more is begun of these. */
  const refused = new Set<Socket>();
  let inAll = 0;

  function forget(socket: Socket): void {
    inAll -= waiting.get(socket) ?? 0;
    waiting.delete(socket);
    refused.delete(socket);
  }

  function makeRoom(newest: Socket): void {
    for (const socket of [...refused, newest]) {
      if (inAll <= pipelinedInAllMax) return;
      forget(socket);
      socket.destroy();
    }
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
    const own = count(socket, 1);
    if (inAll > pipelinedInAllMax) makeRoom(socket);
    if (refused.has(socket) || socket.destroyed) return;
    if (own > pipelinedMax) {
      refused.add(socket);
      return refuse(request, response, tooMany(pipelinedMax));
    }
    response.once("socket", () => {
      count(socket, -1);
      begin();
    });
  };
}

const tooMany = (max: number): ServerRefusal =>
  new ServerRefusal("overloaded", `${max} requests of this connection wait already; read their answers first`, {
    pipelinedMax: max,
  });
