/**
 * Who is calling, by its token, and what that allows.
 *
 * A token is known by its SHA-256 only; what the config gives in plain is hashed when the server starts. A token that
 * comes in is hashed, and the hash hashed again under a key that lives as long as the process, so that what is looked
 * up has nothing to do with what the caller wrote: how long the look-up takes tells nothing. The last comparison
 * is in constant time. Without any token in the config everybody is admin, and the server listens to loopback only.
 *
 * A token may be tied to projects, an agent or both. What it may then see and touch is in access/token-scope.ts.
 */
import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Role, TokenSettings } from "../protocol/index.ts";
import { ServerRefusal } from "./problem.ts";

export type Caller = {
  readonly role: Role;
  /** Null: all. */
  readonly projects: readonly string[] | null;
  readonly agentId: string | null;
};
/** Who is counted as one where callers share something. */
export type Holder = string | Caller | Socket;
export type Access = (authorization: string | undefined) => Caller;

const ANYBODY: Caller = { role: "admin", projects: null, agentId: null };
const BEARER = /^Bearer +([\x21-\x7e]{1,1024}) *$/i;
const SENDABLE = /^[\x21-\x7e]{1,1024}$/;
const HASH_BYTES = 32;
const TOKEN_LENGTH_MIN = 16;

export const isTied = ({ projects, agentId }: Caller): boolean => projects !== null || agentId !== null;

/** The agent of a token, or the token; where there are no tokens, the connection. */
export const holderOf = (caller: Caller, { socket }: Pick<IncomingMessage, "socket">): Holder =>
  caller.agentId ?? (caller === ANYBODY ? socket : caller);

/** Throws where the config names a variable that is not set, or ties a worker, which runs everybody's tasks. */
export function createAccess(tokens: readonly TokenSettings[], env: NodeJS.ProcessEnv = process.env): Access {
  if (tokens.length === 0) return () => ANYBODY;
  const key = randomBytes(HASH_BYTES);
  const blinded = (hashed: Buffer): Buffer => createHmac("sha256", key).update(hashed).digest();
  const known = new Map<string, { readonly check: Buffer; readonly caller: Caller }>();
  for (const [index, settings] of tokens.entries()) {
    const check = blinded(hashOf(settings, index, env));
    const key = check.toString("latin1");
    // Two entries would mean two roles, and which of them counts would be a matter of their order.
    if (known.has(key)) throw new Error(`server.tokens[${index}] is a token that stands further up already`);
    known.set(key, { check, caller: callerOf(settings, index) });
  }
  return (authorization) => {
    const [, token] = BEARER.exec(authorization ?? "") ?? [];
    if (token === undefined)
      throw new ServerRefusal("unauthorized", "this server wants a token: send the header Authorization: Bearer …");
    const check = blinded(hash("sha256", token, "buffer"));
    const found = known.get(check.toString("latin1"));
    if (found === undefined || !timingSafeEqual(found.check, check))
      throw new ServerRefusal("unauthorized", "this server does not know that token");
    return found.caller;
  };
}

function hashOf({ token, tokenHash, tokenEnv }: TokenSettings, index: number, env: NodeJS.ProcessEnv): Buffer {
  if (tokenHash !== undefined) return Buffer.from(tokenHash, "hex");
  const text = token ?? env[tokenEnv ?? ""] ?? "";
  const at = token === undefined ? `server.tokens[${index}].tokenEnv names ${tokenEnv};` : `server.tokens[${index}]:`;
  if (text.length < TOKEN_LENGTH_MIN) throw new Error(`${at} set it to at least ${TOKEN_LENGTH_MIN} characters`);
  // One that no header can hold would never let anybody in, and nobody would be told why.
  if (!SENDABLE.test(text)) throw new Error(`${at} a token is printable ASCII without blanks and line ends`);
  return hash("sha256", text, "buffer");
}

function callerOf({ role, project, projects, agentId }: TokenSettings, index: number): Caller {
  const own = projects ?? (project === undefined ? null : [project]);
  if (role === "worker" && (own !== null || agentId !== undefined))
    throw new Error(
      `server.tokens[${index}] ties a worker to a project or agent; a worker runs the tasks of all, so leave both out`,
    );
  return { role, projects: own, agentId: agentId ?? null };
}
