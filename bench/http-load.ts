/**
 * Load over HTTP/1.1 on plain sockets.
 *
 * A client library would measure itself: here a request is bytes that were made once, and an answer is found by its
 * Content-Length. One request is open per connection, as with any ordinary client; answers come back whole, as text.
 */
import { connect, type Socket } from "node:net";

export type Line = {
  /** Sends one request; resolves with status and body. */
  ask(request: Buffer): Promise<Answer>;
  close(): void;
};
export type Answer = { readonly status: number; readonly body: string };

const HEAD_END = Buffer.from("\r\n\r\n");

export function requestOf(method: string, path: string, body?: unknown): Buffer {
  const text = body === undefined ? "" : JSON.stringify(body);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: 127.0.0.1",
    "Connection: keep-alive",
    ...(body === undefined ? [] : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(text)}`]),
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${text}`);
}

export async function openLine(port: number): Promise<Line> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  const reader = answerReader(socket);
  return {
    ask(request) {
      const answer = reader.next();
      socket.write(request);
      return answer;
    },
    close: () => socket.destroy(),
  };
}

function answerReader(socket: Socket): { next(): Promise<Answer> } {
  let rest: Buffer = Buffer.alloc(0);
  let waiting: PromiseWithResolvers<Answer> | null = null;
  socket.on("data", (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const answer = takeAnswer(rest);
    if (answer === null || waiting === null) return;
    rest = answer.rest;
    const { resolve } = waiting;
    waiting = null;
    resolve(answer);
  });
  const onEnd = (): void => waiting?.reject(new Error("the connection ended in the middle of an answer"));
  socket.on("error", onEnd);
  socket.on("close", onEnd);
  return {
    next() {
      waiting = Promise.withResolvers();
      // A server may end a connection between two requests; no request waits for it any more.
      if (socket.destroyed) onEnd();
      return waiting.promise;
    },
  };
}

function takeAnswer(bytes: Buffer): (Answer & { readonly rest: Buffer }) | null {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0) return null;
  const head = bytes.toString("latin1", 0, headEnd);
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.NaN);
  if (Number.isNaN(length)) throw new Error(`an answer without Content-Length:\n${head}`);
  const end = headEnd + HEAD_END.length + length;
  if (bytes.length < end) return null;
  const body = bytes.toString("utf8", headEnd + HEAD_END.length, end);
  return { status: Number(head.slice(9, 12)), body, rest: bytes.subarray(end) };
}

/** So many connections to one server, kept open. */
export type Crowd = {
  /** All of them ask the same until the count is reached; answers per second. */
  ask(request: Buffer, count: number): Promise<number>;
  leave(): void;
};

export async function gatherCrowd(port: number, connections: number): Promise<Crowd> {
  const lines = await Promise.all(Array.from({ length: connections }, () => openLine(port)));
  return {
    async ask(request, count) {
      let left = count;
      const startedAt = performance.now();
      await Promise.all(
        lines.map(async (line) => {
          while (left-- > 0) {
            const { status, body } = await line.ask(request);
            if (status >= 300) throw new Error(`${status} ${body}`);
          }
        }),
      );
      return (count * 1000) / (performance.now() - startedAt);
    },
    leave() {
      for (const line of lines) line.close();
    },
  };
}
