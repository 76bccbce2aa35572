/**
 * The tokens of the config, as http/tokens.ts takes them: what the config gives in plain is hashed when the server
 * starts.
 */
import { hash } from "node:crypto";
import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import { type Caller, type Grant, type KnownToken, ServerRefusal } from "../../http/index.ts";
import { ATTEMPT_TOKEN, type TokenSettings } from "../../protocol/index.ts";

const SENDABLE = /^[\x21-\x7e]{1,1024}$/;
const TOKEN_LENGTH_MIN = 16;

/** Why a server cannot run with these settings: a code for the program that starts it, a sentence for people. */
export class StartRefusal extends Error {
  readonly code: "bad_settings" | "port_taken";

  constructor(code: StartRefusal["code"], message: string) {
    super(message);
    this.code = code;
  }
}

const badToken = (message: string): StartRefusal => new StartRefusal("bad_settings", message);

/** Throws where the config names a variable that is not set, or scopes a worker, which runs the tasks of all. */
export function knownTokens(
  tokens: readonly TokenSettings[],
  env: NodeJS.ProcessEnv = process.env,
): readonly KnownToken[] {
  const seen = new Set<string>();
  return tokens.map((settings, index) => {
    const hash = hashOf(settings, index, env);
    const key = hash.toString("hex");
    // Two entries would mean two roles, and which of them counts would hang on their sequence.
    if (seen.has(key)) throw badToken(`server.tokens[${index}] is a token that stands further up already`);
    seen.add(key);
    return { hash, caller: callerOf(settings, index) };
  });
}

function hashOf({ token, tokenHash, tokenEnv }: TokenSettings, index: number, env: NodeJS.ProcessEnv): Buffer {
  if (tokenHash !== undefined) return Buffer.from(tokenHash, "hex");
  const text = token ?? env[tokenEnv ?? ""] ?? "";
  const at = token === undefined ? `server.tokens[${index}].tokenEnv names ${tokenEnv};` : `server.tokens[${index}]:`;
  if (text.length < TOKEN_LENGTH_MIN) throw badToken(`${at} set it to at least ${TOKEN_LENGTH_MIN} characters`);
  // One that no header can hold would never let its caller in, and no error would say why.
  if (!SENDABLE.test(text)) throw badToken(`${at} a token is printable ASCII without blanks and line ends`);
  return hash("sha256", text, "buffer");
}

function callerOf({ role, project, projects, agentId }: TokenSettings, index: number): Caller {
  const own = projects ?? (project === undefined ? null : [project]);
  if (role === "worker" && (own !== null || agentId !== undefined))
    throw badToken(
      `server.tokens[${index}] scopes a worker to a project or agent; a worker runs the tasks of all: leave both out`,
    );
  return { role, projects: own, agentId: agentId ?? null };
}

/** The token of an attempt is known by the engine: good while that attempt is live, also where there are no tokens. */
export const attemptGrant =
  ({ attemptTokens }: Pick<Drover, "attemptTokens">): Grant =>
  (token) => {
    if (!token.startsWith(ATTEMPT_TOKEN)) return null;
    const holder = attemptTokens.read(token);
    if (holder === null)
      throw new ServerRefusal("unauthorized", "this is no token of an attempt that is live: it may be over");
    const { task, attempt: number, project, agentId } = holder;
    return { role: "agent", projects: [project], agentId, attempt: { task, number } };
  };

/** Another node of the cluster, which reads what lies beside the log. */
export const nodeGrant =
  ({ isTokenOfNode }: Pick<DroverNode, "isTokenOfNode">): Grant =>
  (token) =>
    isTokenOfNode(token) ? { role: "viewer", projects: null, agentId: null } : null;
