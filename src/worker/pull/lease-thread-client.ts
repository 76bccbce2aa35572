/**
 * The near end of the thread that keeps connections: one per process, begun with the first worker.
 *
 * The thread keeps the program alive while a worker is joined, and ends when the last has left. If it ends by
 * itself, no lease is renewed: every worker hears that its connection failed and stops what it runs.
 */
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import type { ClientOptions } from "../../client/index.ts";
import type { ConnectionSettings } from "./connection.ts";
import type { FromHandlers, LeaseCell, ToHandlers } from "./messages.ts";
import { DONE } from "./outcome.ts";

export type OpenRequest = Pick<LinkOptions, "server" | "settings"> & {
  readonly port: MessagePort;
  readonly cell: SharedArrayBuffer;
};
/** A connection, wherever it is kept. */
export type Link = { post(message: FromHandlers): void };
type LinkOptions = {
  readonly server: Pick<ClientOptions, "url" | "token">;
  readonly cell: LeaseCell;
  readonly settings: ConnectionSettings;
  readonly onMessage: (message: ToHandlers) => void;
};

type Thread = { readonly worker: Worker; readonly links: Set<(cause: string) => void> };
let running: Thread | null = null;

export function openThreadLink({ server, cell, settings, onMessage }: LinkOptions): Link {
  const thread = running ?? startThread();
  const { port1: near, port2: far } = new MessageChannel();
  const lost = (cause: string): void => {
    close();
    onMessage({ type: "failed", error: { code: "internal", status: 0, message: cause } });
  };
  function close(): void {
    near.close();
    thread.links.delete(lost);
    if (thread.links.size === 0) endThread(thread);
  }
  near.on("message", (text: string) => {
    const message = messageIn(text);
    if (message.type === "left" || message.type === "failed") close();
    onMessage(message);
  });
  thread.links.add(lost);
  const request: OpenRequest = { port: far, server, cell: cell.shared, settings };
  thread.worker.postMessage(request, [far]);
  return { post: gatherEnds((messages) => near.postMessage(JSON.stringify(messages))) };
}

const LEAN = '{"type":"start-lean",';
const TASKS = ',"tasks":';

/**
 * Tasks are passed on unread, so what is no JSON shows here. Their names were read by the connection, which counts them
 * as handed over: they are passed on without tasks, and declined.
 */
export function messageIn(text: string): ToHandlers {
  try {
    return JSON.parse(text) as ToHandlers;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const behind = text.startsWith(LEAN) ? text.indexOf(TASKS) : -1;
    if (behind >= 0) return JSON.parse(`${text.slice(0, behind)}${TASKS}[]}`) as ToHandlers;
    return { type: "warning", message: `an answer of the server cannot be read: ${error.message}` };
  }
}

/** What has ended in one turn is said in one message; all else at once, since this thread may stand still next. */
export function gatherEnds(send: (messages: readonly FromHandlers[]) => void): (message: FromHandlers) => void {
  let gathered: FromHandlers[] = [];
  let done: (string | number)[] = [];
  let isDue = false;
  const flush = (last: readonly FromHandlers[]): void => {
    isDue = false;
    if (done.length > 0) gathered.push({ type: "all-done", names: done });
    gathered.push(...last);
    if (gathered.length > 0) send(gathered);
    gathered = [];
    done = [];
  };
  return (message) => {
    if (message.type !== "ended") return flush([message]);
    // How an attempt ended hangs on no other: those that are only done may come behind the rest.
    if (message.report === DONE) done.push(message.taskId, message.attempt);
    else gathered.push(message);
    if (isDue) return;
    isDue = true;
    queueMicrotask(() => flush([]));
  };
}

function startThread(): Thread {
  const worker = new Worker(threadFile(), { execArgv: [], name: "drover-lease" });
  const thread: Thread = { worker, links: new Set() };
  const lose = (cause: string): void => {
    if (running === thread) running = null;
    for (const lost of [...thread.links]) lost(`the thread that keeps the lease is gone: ${cause}`);
  };
  worker.on("error", (error) => lose(error.message));
  worker.on("exit", () => lose("it ended by itself"));
  running = thread;
  return thread;
}

function endThread(thread: Thread): void {
  if (running === thread) running = null;
  void thread.worker.terminate();
}

/** Beside this file, and of its kind: .ts in the sources, .js when compiled. */
function threadFile(): URL {
  const extension = import.meta.url.slice(import.meta.url.lastIndexOf("."));
  return new URL(`./lease-thread${extension}`, import.meta.url);
}
