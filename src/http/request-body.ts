/**
 * The body of a request, read from its connection: JSON within the limit, or why not.
 *
 * It is read here and not by the router because this is on the way of every submit. What is refused before it was
 * read is answered at once; the rest of it is read and dropped by the connection, up to its own limit of time, so that
 * whoever still sends also gets to hear the answer. A caller that hangs up in the middle is not answered.
 */
import type { IncomingMessage } from "node:http";
import { createGrowingBytes, type GrowingBytes } from "./growing-bytes.ts";
import { readJsonBody } from "./json-body.ts";
import { PollEnded } from "./long-polls.ts";
import { ServerRefusal } from "./problem.ts";
import type { UnfinishedBodies } from "./unfinished-bodies.ts";

const JSON_ONLY = /^\s*application\/json\s*(;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]*)/i;

export type BodyRead = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: unknown };

/** What one body may have, in bytes, and all that are under way together. */
export type BodyLimits = { readonly bodyLimit: number; readonly bodies: UnfinishedBodies };

/** Calls back once; the value is undefined where no body was sent. */
export function readBody(request: IncomingMessage, limits: BodyLimits, done: (read: BodyRead) => void): void {
  const limit = limits.bodyLimit;
  const { headers } = request;
  const length = headers["content-length"];
  if (headers["transfer-encoding"] === undefined && (length === undefined || length === "0"))
    return done({ ok: true, value: undefined });
  const refusal = refusalOf(headers["content-type"], headers["content-encoding"]);
  if (refusal !== null) return done({ ok: false, error: refusal });
  if (Number(length) > limit) return done({ ok: false, error: tooLarge(limit) });
  gather(request, limits, done);
}

function gather(request: IncomingMessage, { bodyLimit, bodies }: BodyLimits, done: (read: BodyRead) => void): void {
  const length = Number(request.headers["content-length"]);
  /** One that comes in one piece is neither copied nor counted. */
  let whole: Buffer | null = null;
  let pieces: GrowingBytes | null = null;
  let isOver = false;

  function finish(read: BodyRead): void {
    if (isOver) return;
    isOver = true;
    bodies.end(cutOff);
    whole = pieces = null;
    done(read);
  }
  const cutOff = (error: unknown): void => finish({ ok: false, error });

  request.on("data", (part: Buffer) => {
    // What comes after it was refused is dropped.
    if (isOver) return;
    if (part.length === length) {
      whole = part;
      return;
    }
    pieces ??= createGrowingBytes(length >= 0 ? length : bodyLimit);
    const grownBy = pieces.add(part);
    if (grownBy === null) return cutOff(tooLarge(bodyLimit));
    if (grownBy > 0) bodies.add(cutOff, grownBy);
  });
  request.on("end", () => {
    if (!isOver) finish(readBytes(whole ?? pieces?.bytes() ?? NOTHING));
  });
  // Later a connection that breaks is nobody's concern.
  request.on("error", () => cutOff(new PollEnded("hung-up")));
}
const NOTHING = Buffer.alloc(0);

function readBytes(bytes: Buffer): BodyRead {
  try {
    return { ok: true, value: readJsonBody(bytes) };
  } catch (error) {
    return { ok: false, error };
  }
}

function refusalOf(type: string | undefined, encoding: string | undefined): ServerRefusal | null {
  if (type === "application/json" && encoding === undefined) return null;
  if (type === undefined || !JSON_ONLY.test(type))
    return unsupported("bodies are JSON: send the header Content-Type: application/json");
  const [, charset] = CHARSET.exec(type) ?? [];
  if (charset !== undefined && !/^utf-?8$/i.test(charset))
    return unsupported("bodies are JSON in UTF-8: leave the charset out");
  if (encoding !== undefined && encoding !== "identity")
    return unsupported("bodies are sent as they are: leave Content-Encoding out");
  return null;
}

const unsupported = (message: string): ServerRefusal => new ServerRefusal("unsupported_media_type", message);
const tooLarge = (limit: number): ServerRefusal =>
  new ServerRefusal("too_large", `the body is larger than server.bodyLimit, which is ${limit} bytes`, {
    details: { bodyLimit: limit },
  });
