/**
 * The token of an attempt: by it the command or handler that runs submits children of its task, and reads its tree.
 *
 * It names task and attempt, with a code over both and over the event that submitted the task, so that a later task
 * of the same id has other tokens (std/attempt-token.ts). The key lies in the data directory, for its owner only; an
 * engine without one has a key for its life. A session of a worker has a key of its own, made of that one, with which
 * the worker makes the tokens of what it holds, and of nothing else. A token is good while its attempt is live, which
 * is looked up each time: nothing is stored, and none has to be called back.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TaskId } from "../../core/base/index.ts";
import type { State, Task, Worker } from "../../core/model/index.ts";
import { ATTEMPT_TOKEN_FORM } from "../../protocol/index.ts";
import { attemptCode, attemptToken, ifThere, OWN_FILE_MODE } from "../../std/index.ts";

const KEY_FILE = "attempt-key";
const KEY_BYTES = 32;

/** The attempt that a token is of, and whose it is. */
type TokenHolder = {
  readonly task: string;
  readonly attempt: number;
  readonly project: string;
  readonly agentId: string;
};
/** Tokens of attempts. */
export type AttemptTokens = {
  /** The token of an attempt that runs; null if it is over. */
  of(task: string, attempt: number): string | null;
  /** The same of one that is known to be live. */
  ofLive(task: Task, attempt: number): string;
  /** With which the present session of a worker makes the tokens of the attempts that it holds. */
  keyFor(worker: Pick<Worker, "id" | "session">): string;
  /** Whose it is; null if it is none, or its attempt is over. */
  read(token: string): TokenHolder | null;
};

/** `shared`: a secret that all nodes of a cluster have, so that a token outlives the leader that made it. */
export function createAttemptTokens(state: State, data: string | undefined, shared?: string): AttemptTokens {
  const key = shared ?? (data === undefined ? randomBytes(KEY_BYTES) : keyIn(data)).toString("hex");
  const live = (id: string, attempt: number): Task | null => {
    const task = state.tasks.get(id as TaskId);
    const isLive = task?.attempt?.number === attempt && task.attempt.state !== "stopping";
    return isLive ? task : null;
  };
  const nameOf = ({ id, seq }: Task, attempt: number) => ({ taskId: id, attempt, taskSeq: seq });
  const ofLive = (task: Task, attempt: number): string => attemptToken(key, nameOf(task, attempt));
  const keyFor = ({ id, session }: Pick<Worker, "id" | "session">): string =>
    hash("sha512-256", `${key} session ${session} of ${id}`, "base64url");
  return {
    of(id, attempt) {
      const task = live(id, attempt);
      return task === null ? null : ofLive(task, attempt);
    },
    ofLive,
    keyFor,
    read(token) {
      const [, name = "", number, code = ""] = ATTEMPT_TOKEN_FORM.exec(token) ?? [];
      const attempt = Number(number);
      const task = live(Buffer.from(name, "base64url").toString(), attempt);
      const holder = task?.attempt?.worker;
      if (task === null || holder === undefined) return null;
      const isMadeWith = (one: string): boolean =>
        timingSafeEqual(Buffer.from(code), Buffer.from(attemptCode(one, nameOf(task, attempt))));
      if (!isMadeWith(key) && !isMadeWith(keyFor(holder))) return null;
      return { task: task.id, attempt, project: task.project.id, agentId: task.agent.id };
    },
  };
}

/** The key of a data directory, made with its first engine. One engine at a time has the directory. */
function keyIn(directory: string): Buffer {
  const path = join(directory, KEY_FILE);
  const known = ifThere(() => readFileSync(path));
  if (known?.length === KEY_BYTES) return known;
  const key = randomBytes(KEY_BYTES);
  writeFileSync(path, key, { mode: OWN_FILE_MODE });
  return key;
}
