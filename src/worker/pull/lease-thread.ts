/**
 * The thread that keeps the connections of this process's pull workers.
 *
 * A handler that computes for half a minute stops its own event loop, and with it every timer and every request. The
 * lease must not hang on that: so joining, polling and renewing are done here, on an event loop that user code never
 * sees. One thread serves all workers of the process; each speaks with its handlers over a port of its own. What
 * is done is in `connection.ts`; this file only carries.
 */
import { type MessagePort, parentPort } from "node:worker_threads";
import { createClient } from "../../client/index.ts";
import { realClock } from "../../std/index.ts";
import { startConnection } from "./connection.ts";
import type { OpenRequest } from "./lease-thread-client.ts";
import { createLeaseCell, type FromHandlers, type ToHandlers } from "./messages.ts";
import { wireOf } from "./wire.ts";

function open({ port, server, cell, settings }: OpenRequest): void {
  const connection = startConnection({
    ...settings,
    wire: wireOf(createClient(server)),
    clock: realClock,
    chance: Math.random,
    cell: createLeaseCell(cell),
    tell: (message) => tell(port, message),
  });
  port.on("message", (text: string) => {
    for (const message of JSON.parse(text) as readonly FromHandlers[]) connection.receive(message);
  });
}

function tell(port: MessagePort, message: ToHandlers): void {
  port.postMessage(textOf(message));
  // It was the last word: nothing keeps the thread for this worker any more.
  if (message.type === "left" || message.type === "failed") port.close();
}

/** What is only passed on is not written anew. */
function textOf(message: ToHandlers): string {
  if (message.type !== "start-unread") return JSON.stringify(message);
  return `{"type":"start-lean","named":${message.named},"tasks":${message.tasks}}`;
}

parentPort?.on("message", (request: OpenRequest) => open(request));
