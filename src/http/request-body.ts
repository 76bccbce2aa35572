/**
 * The body of a request, read from its connection: JSON within the limit, or why not.
 *
 * What is refused before it was read is answered at once; the rest of it is read and dropped by the connection for a
 * while (send-answer.ts), so that a caller that still sends also gets the answer. A caller that hangs up in the middle
 * is not answered.
 *
 * JSON is UTF-8 and nothing else; bytes that are not would be replaced silently, and two different bodies would become
 * one. A key that is named twice counts as its last, and `__proto__` is a key like any other: it becomes a property of
 * its own, is unknown to every shape, and changes no prototype. What is wrong with a text is said in the parser's own
 * words, without the part of them that quotes the text.
 */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { createGrowingBytes, type GrowingBytes } from "./growing-bytes.ts";
import { PollEnded } from "./long-polls.ts";
import { ServerRefusal } from "./problem.ts";
import type { UnfinishedBodies } from "./unfinished-bodies.ts";

const JSON_ONLY = /^\s*application\/json\s*(;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]*)/i;

export type BodyRead =
  /** `bytes`: as they came. */
  | { readonly ok: true; readonly value: unknown; readonly bytes: Buffer }
  | { readonly ok: false; readonly error: unknown };

/** What one body may have, in bytes, and all that are under way together. */
export type BodyLimits = {
  readonly bodyLimit: number;
  /** It is no setting: such a body may be larger than that says. */
  readonly isOwnLimit?: boolean;
  readonly bodies: UnfinishedBodies;
  /** So many more do not count: a node has added them. */
  readonly addedBytesMax?: number;
};

/** Calls back once; the value is undefined where no body was sent. */
export function readBody(request: IncomingMessage, limits: BodyLimits, done: (read: BodyRead) => void): void {
  const { bodyLimit, addedBytesMax = 0 } = limits;
  const { headers } = request;
  const length = headers["content-length"];
  if (headers["transfer-encoding"] === undefined && (length === undefined || length === "0"))
    return done({ ok: true, value: undefined, bytes: NOTHING });
  const refusal = refusalOf(headers["content-type"], headers["content-encoding"]);
  if (refusal !== null) return done({ ok: false, error: refusal });
  if (Number(length) > bodyLimit + addedBytesMax) return done({ ok: false, error: tooLarge(limits) });
  gather(request, limits, done);
}

function gather(request: IncomingMessage, limits: BodyLimits, done: (read: BodyRead) => void): void {
  const { bodyLimit, bodies } = limits;
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
    if (grownBy === null) return cutOff(tooLarge(limits));
    if (grownBy > 0) bodies.add(cutOff, grownBy);
  });
  request.on("end", () => {
    if (!isOver) finish(readBytes(whole ?? pieces?.bytes() ?? NOTHING));
  });
  // A connection that breaks later changes nothing.
  request.on("error", () => cutOff(new PollEnded("hung-up")));
}
const NOTHING = Buffer.alloc(0);

function readBytes(bytes: Buffer): BodyRead {
  try {
    return { ok: true, value: readJsonBody(bytes), bytes };
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
function tooLarge({ bodyLimit, isOwnLimit = false }: BodyLimits): ServerRefusal {
  const limit = isOwnLimit ? `the ${bodyLimit} bytes it may have` : `server.bodyLimit, which is ${bodyLimit} bytes`;
  return new ServerRefusal("too_large", `the body is larger than ${limit}`, { bodyLimit });
}

/** Undefined where nothing was sent. */
export function readJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw unreadable("the body is not UTF-8, and JSON must be");
  const text = bytes.toString("utf8");
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw unreadable(`the body is not JSON: ${(error as Error).message.replace(QUOTE, "")}`);
  }
}

/** As in: Unexpected token 's', ..."token": sk-secret} is not valid JSON. */
const QUOTE = /, (?:\.{3})?".*is not valid JSON$/s;
const unreadable = (message: string): ServerRefusal => new ServerRefusal("bad_request", message, { field: "(body)" });
