/**
 * What every request must pass, whatever it asks for: it is for this server, and in a protocol that is spoken here.
 *
 * Of a header that is there twice Node shows the first and drops the other. Somebody in between, such as a proxy, may
 * have looked at that other one, so where it decides who is let in there may be one only.
 */
import type { IncomingMessage } from "node:http";
import { badField, sentence } from "../core/base/index.ts";
import { PROTOCOL_HEADER, PROTOCOL_VERSION } from "../protocol/wire/index.ts";
import type { OriginCheck } from "./origin-check.ts";
import { badHeader, ServerRefusal } from "./problem.ts";

/** Why not, or null. */
export type RequestCheck = (request: Pick<IncomingMessage, "headers" | "rawHeaders" | "url">) => ServerRefusal | null;

export const createRequestCheck =
  (originCheck: () => OriginCheck): RequestCheck =>
  ({ headers, rawHeaders, url = "/" }) =>
    repeated(rawHeaders, "host") ??
    repeated(rawHeaders, "authorization") ??
    originCheck()(headers) ??
    (url.startsWith("/") ? null : originCheck()({ ...headers, host: authorityOf(url) })) ??
    otherProtocol(headers[PROTOCOL_HEADER]) ??
    unknownExpectation(headers.expect) ??
    otherCoding(headers["transfer-encoding"]);

/** A target may be a whole URL, whose server then counts and not the header's: it must be this one too. */
const authorityOf = (target: string): string => /^[a-z]+:\/\/([^/?#]*)/i.exec(target)?.[1] ?? "";

/** Names and values take turns in `raw`. */
function repeated(raw: readonly string[], name: string): ServerRefusal | null {
  let count = 0;
  for (let at = 0; at < raw.length; at += 2) {
    const given = raw[at] as string;
    if (given.length === name.length && given.toLowerCase() === name) count++;
  }
  if (count < 2) return null;
  return badHeader(name, `the header ${name} is there ${count} times; a request has one`);
}

function otherProtocol(asked: string | string[] | undefined): ServerRefusal | null {
  if (asked === undefined || asked === String(PROTOCOL_VERSION)) return null;
  const refusal = badField(
    `header ${PROTOCOL_HEADER}`,
    asked,
    `${PROTOCOL_VERSION}, the one version this server speaks, or absent; use a client of that version`,
  );
  const { type: _, ...details } = refusal;
  return new ServerRefusal("unsupported_protocol", sentence(refusal), details);
}

/** Node has answered the one that it knows by the time a request is here. */
function unknownExpectation(asked: string | undefined): ServerRefusal | null {
  if (asked === undefined || /(?:^|\W)100-continue(?:$|\W)/i.test(asked)) return null;
  return badHeader("expect", "the header expect may only be 100-continue");
}

/** A body is read as it comes: one that is packed would be taken for what it is not. */
function otherCoding(asked: string | undefined): ServerRefusal | null {
  if (asked === undefined || asked === "chunked" || /^\s*chunked\s*$/i.test(asked)) return null;
  return badHeader("transfer-encoding", "the header transfer-encoding may only be chunked");
}
