/**
 * An entry of `server.tokens`: what it may hold, and everything that is wrong with a list of them.
 *
 * A list is one setting, so a reader that stops at its first fault would have a person mend it once per token. Here all
 * faults of all entries are reported at once. Also here is what no schema says of itself: that a worker, which runs
 * everybody's tasks, cannot be scoped; and that no two entries may be the same. An entry holds secrets, so it is named
 * by its fields only.
 */
import { badField, isRecord, isSha256, type Refusal } from "../../core/base/index.ts";
import * as s from "../schema/schema.ts";
import { readShape } from "../schema/validate.ts";
import { ROLES, type Role } from "../wire/role.ts";

export const TOKENS_MAX = 10_000;
const FAULTS_MAX = 20;
const PROJECTS_MAX = 1000;

/** A token: its text, the SHA-256 of it, or the name of the variable that holds it; and what it allows. */
export type TokenSettings = {
  readonly token?: string;
  readonly tokenHash?: string;
  readonly tokenEnv?: string;
  readonly role: Role;
  readonly project?: string;
  readonly projects?: readonly string[];
  readonly agentId?: string;
};

const WAYS = ["token", "tokenHash", "tokenEnv"] as const;
const EXACTLY_ONE = "a role and exactly one of token, tokenHash and tokenEnv";

const FIELDS: s.Fields<TokenSettings> = {
  token: s.optional(
    // One that no header can hold would never let anybody in.
    s.refined(s.text(16, 1024), (value) => /^[\x21-\x7e]+$/.test(value), ""),
    "The token itself.",
    { secret: true, expected: "a token of 16 to 1024 characters, printable ASCII without blanks" },
  ),
  tokenHash: s.optional(
    s.refined(s.text(64, 64), isSha256, "the SHA-256 of the token, as 64 hex digits"),
    "The SHA-256 of the token in hex, so that the file holds no secret.",
    { secret: true },
  ),
  tokenEnv: s.optional(s.name(), "The environment variable that holds the token."),
  role: s.described(s.oneOf<Role>(...ROLES), "admin, agent (submits), worker (runs) or viewer (looks)."),
  project: s.optional(s.name(), "It is good for this project only."),
  projects: s.optional(s.list(s.name(), { min: 1, max: PROJECTS_MAX }), "It is good for these projects only.", {
    expected: `a list of 1 to ${PROJECTS_MAX} names of projects`,
  }),
  agentId: s.optional(s.name(), "It speaks for this agent only."),
};

export const tokenSchema: s.Schema<TokenSettings> = s.noted(
  s.refined(s.object<TokenSettings>(FIELDS), (entry) => waysIn(entry).length === 1, EXACTLY_ONE),
  { secret: true },
);

const waysIn = (entry: Readonly<Record<string, unknown>>): string[] => WAYS.filter((way) => entry[way] !== undefined);

/** Everything that is wrong with `server.tokens`, up to a limit. Whether it is a list at all is for its schema. */
export function tokenFaults(tokens: unknown, at: string = "server.tokens"): Refusal[] {
  if (!Array.isArray(tokens) || tokens.length > TOKENS_MAX) return [];
  const faults: Refusal[] = [];
  const known = new Set<string>();
  for (const [index, entry] of tokens.entries()) {
    if (faults.length >= FAULTS_MAX) break;
    faults.push(...entryFaults(entry, `${at}[${index}]`, known));
  }
  return faults.slice(0, FAULTS_MAX);
}

function entryFaults(entry: unknown, at: string, known: Set<string>): Refusal[] {
  if (!isRecord(entry)) {
    const read = readShape(tokenSchema, entry, at);
    return read.ok ? [] : [read.failure];
  }
  return [...fieldFaults(entry, at), ...wayFaults(entry, at, known), ...tieFaults(entry, at)];
}

function fieldFaults(entry: Readonly<Record<string, unknown>>, at: string): Refusal[] {
  const keys = Object.keys(entry).slice(0, FAULTS_MAX);
  const asked = Object.hasOwn(entry, "role") ? keys : [...keys, "role"];
  // Each by itself, beside a role that is right: so it has its own faults and no other's.
  return asked.flatMap((key) => {
    const read = readShape(wholeEntry, { role: "admin", [key]: entry[key] }, at);
    return read.ok ? [] : [read.failure];
  });
}
const wholeEntry: s.Schema = s.object<TokenSettings>(FIELDS);

/** How it says which token it is: in one way, and in none that stands further up. */
function wayFaults(entry: Readonly<Record<string, unknown>>, at: string, known: Set<string>): Refusal[] {
  const ways = waysIn(entry);
  const [way = ""] = ways;
  if (ways.length !== 1) {
    const value = ways.length === 0 ? "without a token or tokenEnv" : `with ${ways.join(" and ")} at once`;
    return [{ type: "bad-field", field: at, value, expected: EXACTLY_ONE }];
  }
  const key = `${way} ${String(entry[way])}`;
  if (known.has(key))
    return [{ type: "bad-field", field: at, value: `the ${way} of an entry further up`, expected: "another token" }];
  known.add(key);
  return [];
}

function tieFaults(entry: Readonly<Record<string, unknown>>, at: string): Refusal[] {
  if (entry.project !== undefined && entry.projects !== undefined)
    return [badField(`${at}.projects`, entry.projects, "left out beside project: one or the other")];
  if (entry.role !== "worker") return [];
  const ties = ["project", "projects", "agentId"].filter((key) => entry[key] !== undefined);
  return ties.map((key) => badField(`${at}.${key}`, entry[key], "left out: a worker runs the tasks of all"));
}
