/**
 * The version of the wire.
 *
 * One number for the whole protocol. It rises when a call, a field or a code changes its meaning or goes away; a
 * field or a call that is added does not raise it, so callers pass over fields of an answer they do not know. Every
 * answer carries the number in a header. A caller may send the same header to say which version it speaks: another one
 * is refused at once and in words, instead of half working.
 */
import { badField, type Refusal } from "../../core/base/index.ts";
export const PROTOCOL_VERSION = 1;
export const PROTOCOL_HEADER = "drover-protocol";

/** What is wrong with the version that a request asks for; null if it asks for none, or for this one. */
export function protocolRefusal(asked: string | readonly string[] | undefined): Refusal | null {
  if (asked === undefined || asked === String(PROTOCOL_VERSION)) return null;
  return badField(
    `header ${PROTOCOL_HEADER}`,
    asked,
    `${PROTOCOL_VERSION}, the one version this server speaks, or absent; use a client of that version`,
  );
}
