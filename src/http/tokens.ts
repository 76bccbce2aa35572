/**
 * Who is calling, by its token, and what that allows.
 *
 * A token is known by its SHA-256 only. A token that comes in is hashed, and the hash hashed again under a key that
 * lives as long as the process, so that what is looked up has nothing to do with what the caller wrote: how long the
 * look-up takes tells nothing. The last comparison is in constant time. Where there is no token at all everybody is
 * admin. A token may be scoped to projects, an agent or both.
 */
import { createHmac, createSecretKey, hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Role } from "../protocol/wire/index.ts";
import { ServerRefusal } from "./problem.ts";

export type Caller = {
  readonly role: Role;
  /** Null: all. */
  readonly projects: readonly string[] | null;
  readonly agentId: string | null;
  /** The attempt whose token it is: of all that is the agent's in its project, the tree of that task alone. */
  readonly attempt?: { readonly task: string; readonly number: number };
};
/** Who is counted as one where callers share something. */
export type Holder = string | Caller | Socket;
export type Access = (authorization: string | undefined) => Caller;

const ANYBODY: Caller = { role: "admin", projects: null, agentId: null };
const BEARER = /^Bearer +([\x21-\x7e]{1,1024}) *$/i;
const HASH_BYTES = 32;

/** The token in the header Authorization; undefined if there is none. */
export const tokenIn = (authorization: string | undefined): string | undefined =>
  authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];

export const isScoped = ({ projects, agentId }: Caller): boolean => projects !== null || agentId !== null;

/** The agent of a token, or the token; where there are no tokens, the connection. */
export const holderOf = (caller: Caller, { socket }: Pick<IncomingMessage, "socket">): Holder =>
  caller.agentId ?? (caller === ANYBODY ? socket : caller);

/** A token by its SHA-256, and who has it. */
export type KnownToken = { readonly hash: Buffer; readonly caller: Caller };

/** Who has a token that stands in no list; null if the list is to say it. */
export type Grant = (token: string) => Caller | null;

export function createAccess(tokens: readonly KnownToken[], grant: Grant = () => null): Access {
  const key = createSecretKey(randomBytes(HASH_BYTES));
  const blinded = (hashed: Buffer): Buffer => createHmac("sha256", key).update(hashed).digest();
  const known = new Map<string, { readonly check: Buffer; readonly caller: Caller }>();
  for (const { hash, caller } of tokens) {
    const check = blinded(hash);
    known.set(check.toString("latin1"), { check, caller });
  }
  return (authorization) => {
    const token = tokenIn(authorization);
    const granted = token === undefined ? null : grant(token);
    if (granted !== null) return granted;
    if (tokens.length === 0) return ANYBODY;
    if (token === undefined)
      throw new ServerRefusal("unauthorized", "this server wants a token: send the header Authorization: Bearer …");
    const check = blinded(hash("sha256", token, "buffer"));
    const found = known.get(check.toString("latin1"));
    if (found === undefined || !timingSafeEqual(found.check, check))
      throw new ServerRefusal("unauthorized", "this server does not know that token");
    return found.caller;
  };
}
