/**
 * What a document of this server may do in a browser: load what is named, call this server, and nothing else.
 */
import { createHash } from "node:crypto";

/** A script or a style that stands in the document itself, by its content. */
export const hashOf = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const ENCLOSED = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
export const policyOf = (...allowed: readonly string[]): string =>
  ["default-src 'none'", ...allowed, "connect-src 'self'", ENCLOSED].join("; ");
