/**
 * Headers that every answer has: the version of the protocol, and that nothing is to be guessed or kept.
 */
import { PROTOCOL_HEADER, PROTOCOL_VERSION } from "../protocol/wire/index.ts";

export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  [PROTOCOL_HEADER]: String(PROTOCOL_VERSION),
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};
export const JSON_TYPE = "application/json; charset=utf-8";
