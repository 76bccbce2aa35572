/**
 * Who may make a call, and what a call takes that names a thing.
 */
import * as s from "../schema/schema.ts";
import type { Role } from "../wire/role.ts";
import type { Id } from "./call.ts";

export const ADMIN: readonly Role[] = ["admin"];
export const AGENTS: readonly Role[] = ["admin", "agent"];
export const WORKERS: readonly Role[] = ["admin", "worker"];
export const WATCHERS: readonly Role[] = ["admin", "viewer"];
export const READERS: readonly Role[] = ["admin", "agent", "viewer"];
export const CALLERS: readonly Role[] = ["admin", "agent", "worker"];
export const EVERYBODY: readonly Role[] = ["admin", "agent", "worker", "viewer"];
export const idOf = (what: string, lengthMax?: number): s.Schema<Id> =>
  s.object({ id: s.described(s.name(lengthMax), `The ${what}'s id.`) });
