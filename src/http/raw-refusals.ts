/**
 * What is refused on the bare connection, because no route will ever see it: what is not HTTP at all, too slow or too
 * long, and CONNECT, which asks for a tunnel.
 *
 * Node hands the connection of a CONNECT over and forgets it: none of the limits of a server hold for it any more. So
 * it ends here within limits of its own. What the caller goes on sending is read and thrown away for a moment, because
 * a connection that is closed with bytes unread is reset, and a reset may overtake the answer.
 *
 * A request that asks to upgrade the connection does not come here: it is answered as if it had not asked, as HTTP has
 * it for servers that know no other protocol.
 */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { WireCode } from "../protocol/wire/index.ts";
import { realClock, ringAfter } from "../std/index.ts";
import { JSON_TYPE, SAFE_HEADERS } from "./send-answer.ts";
import { isSpared } from "./upload.ts";

type Unreadable = Error & { readonly code?: string; readonly rawPacket?: unknown };
type Answer = { readonly status: string; readonly code: WireCode; readonly error: string; readonly allow?: string };

/** How long a connection is kept, and how much is read from it, for its caller to take the refusal. */
const LINGER = { ms: 1000, bytes: 64 * 1024 };

/** What is not HTTP at all, or too slow, or too long. */
export function refuseUnreadable(error: Unreadable, socket: Socket): void {
  if (error.code === TOO_LONG && isSpared(socket)) return;
  if (socket.destroyed || !socket.writable || error.code === "ECONNRESET") return void socket.destroy();
  socket.end(textOf(UNREADABLE[error.code ?? ""] ?? otherMethod(error) ?? NOT_HTTP));
}

/** CONNECT: this server is no proxy. */
export function refuseTunnel(socket: Duplex): void {
  socket.on("error", () => socket.destroy());
  // Behind a request that is not answered yet the refusal would be taken for the answer to that one.
  if (isAnswering(socket)) return void socket.destroy();
  const cancel = ringAfter(realClock, LINGER.ms, () => socket.destroy(), { keepAlive: false });
  socket.once("close", cancel);
  let room = LINGER.bytes;
  socket.on("data", (chunk: Buffer) => {
    room -= chunk.length;
    if (room < 0) socket.destroy();
  });
  socket.end(textOf(methodRefused("CONNECT")));
}

/** Whether Node has an answer under way here; it keeps that on the socket itself and has no other word for it. */
const isAnswering = (socket: Duplex): boolean => "_httpMessage" in socket && Boolean(socket._httpMessage);

function textOf({ status, allow, code, error }: Answer): string {
  const body = JSON.stringify({ error, code });
  const headers = {
    ...SAFE_HEADERS,
    "content-type": JSON_TYPE,
    connection: "close",
    ...(allow === undefined ? {} : { allow }),
    "content-length": Buffer.byteLength(body),
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return `${[`HTTP/1.1 ${status}`, ...lines].join("\r\n")}\r\n\r\n${body}`;
}

const TOO_LONG = "ERR_HTTP_REQUEST_TIMEOUT";
const unreadable = (status: string, error: string): Answer => ({ status, code: "bad_request", error });
const NOT_HTTP = unreadable("400 Bad Request", "this is not HTTP/1.1");
const UNREADABLE: Readonly<Record<string, Answer>> = {
  [TOO_LONG]: unreadable("408 Request Timeout", "the request took too long to arrive"),
  HPE_HEADER_OVERFLOW: unreadable("431 Request Header Fields Too Large", "the headers are too long"),
};

const METHODS = "DELETE, GET, HEAD, PATCH, POST, PUT";
/** A request in good order but for a method that Node does not know. */
const REQUEST_LINE = /^([!-~]{1,40}) \S+ HTTP\/1\.[01]\r?\n/;

function otherMethod({ code, rawPacket }: Unreadable): Answer | null {
  if (code !== "HPE_INVALID_METHOD" || !Buffer.isBuffer(rawPacket)) return null;
  const [, method] = REQUEST_LINE.exec(rawPacket.toString("latin1")) ?? [];
  return method === undefined ? null : methodRefused(method);
}

function methodRefused(method: string): Answer {
  const error = `${method} is no method that this server takes; it takes ${METHODS}`;
  return { status: "405 Method Not Allowed", code: "method_not_allowed", error, allow: METHODS };
}
