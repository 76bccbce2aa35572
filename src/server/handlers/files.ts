/**
 * The calls about the files of tasks: contents that come in, and go out, as they are.
 *
 * Neither is held in memory. What comes in is counted and hashed as it comes, and refused as soon as it is too much.
 * What goes out was checked before, is named by its hash alone, and is never to be taken for a page: whatever a task
 * has written, a browser is to store it and not to look into it.
 *
 * A worker's token puts and reads for an attempt that its session runs, the token of an attempt for that one. All
 * others read what they may read the task of.
 */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { TaskId } from "../../core/base/index.ts";
import { badInput, refused } from "../../engine/base/index.ts";
import {
  type Caller,
  cutOffSilent,
  forbidden,
  headersOf,
  PollEnded,
  ServerRefusal,
  uploadOf,
} from "../../http/index.ts";
import type { FileCalls } from "../../protocol/calls/index.ts";
import { BYTES, type FileQuery, type PutFileQuery, type StoredFile } from "../../protocol/index.ts";
import { present } from "../../std/index.ts";
import { checkCall, checkTask, isOwn, sessionOf } from "../access/token-scope.ts";
import type { Deps, Exchange, Handlers } from "./handler.ts";
import { ANSWERED } from "./server.ts";

/** A reader that takes nothing for so long is gone. */
const SILENCE_MS = 120_000;

export function fileHandlers({ drover }: Pick<Deps, "drover">): Handlers<keyof FileCalls> {
  const { state, files } = drover;

  /** What attempts have put by their own tokens, each content once. */
  const putBy = new WeakMap<object, Map<string, number>>();

  /**
   * The token of an attempt puts as much as its task may list: what is kept is shared by all, and what no task lists
   * stays for an hour. Answers how to say how large it was; 0 if it is not kept.
   */
  function takeRoom(hash: string, { caller, request }: Exchange): (size: number) => void {
    const { attempt: own } = caller;
    const live = own === undefined ? null : (state.tasks.get(own.task as TaskId)?.attempt ?? null);
    const taken = live === null ? null : (putBy.get(live) ?? new Map<string, number>());
    if (live === null || taken === null || taken.has(hash)) return () => {};
    putBy.set(live, taken);
    const { maxFile, maxTask, maxFilesPerTask } = state.config.files;
    const length = Number(request.headers["content-length"] ?? maxFile);
    const bytes = [...taken.values()].reduce((sum, size) => sum + size, length);
    if (taken.size >= maxFilesPerTask || bytes > maxTask)
      throw new ServerRefusal(
        "too_large",
        `an attempt may put ${maxFilesPerTask} files (files.maxFilesPerTask) of ${maxTask} bytes together ` +
          "(files.maxTask), and this one is more",
        { maxFilesPerTask, maxTask },
      );
    taken.set(hash, length);
    return (size) => void (size === 0 ? taken.delete(hash) : taken.set(hash, size));
  }

  /** What the token of an attempt says is what is meant; a query may repeat it. */
  function ownAttempt({ attempt: own }: Caller, query: PutFileQuery): PutFileQuery {
    if (own === undefined) return query;
    const { task = own.task, attempt = own.number } = query;
    if (task !== own.task || attempt !== own.number)
      throw forbidden(`this is the token of attempt ${own.number} of ${own.task}`, { field: "task" });
    return { ...query, task, attempt };
  }

  function checkAttempt(caller: Caller, { task, attempt, session }: PutFileQuery): void {
    if (caller.role === "worker" && task === undefined)
      throw badInput("task", undefined, "the task of an attempt that this worker runs");
    if (caller.role === "worker" || session !== undefined)
      checkCall(state, caller, present({ taskId: task, attempt, session }));
  }

  async function put(hash: string, query: PutFileQuery, exchange: Exchange): Promise<StoredFile> {
    const { caller, request } = exchange;
    if (caller.role === "agent" && caller.attempt === undefined)
      throw forbidden("the role agent may not do this; it takes admin, worker, or the token of an attempt");
    checkAttempt(caller, query);
    const { task, attempt } = ownAttempt(caller, query);
    if (task !== undefined && sessionOf(state, task, attempt) === null)
      throw refused({ type: "attempt-stale", task: task as never, attempt: attempt ?? 0, current: null });
    const type = request.headers["content-type"];
    if (type !== undefined && type !== BYTES)
      throw new ServerRefusal("unsupported_media_type", `files are sent as they are: Content-Type: ${BYTES}`);
    const { maxFile } = state.config.files;
    if (Number(request.headers["content-length"]) > maxFile)
      throw new ServerRefusal("too_large", `a file may have ${maxFile} bytes (files.maxFile), and this one has more`, {
        maxFile,
      });
    const settle = takeRoom(hash, exchange);
    try {
      const by = task === undefined || attempt === undefined ? {} : { task, attempt };
      const stored = await files.put(uploadOf(request), { hash, ...by });
      settle(stored.size);
      return stored;
    } catch (error) {
      settle(0);
      if (request.destroyed && !request.complete) throw new PollEnded("hung-up");
      throw error;
    }
  }

  async function get(hash: string, query: FileQuery, exchange: Exchange): Promise<string> {
    const { caller, response, request } = exchange;
    checkAttempt(caller, query);
    const own = caller.attempt?.task;
    const { task = own } = query;
    if (task !== undefined && caller.role !== "worker") await checkTask(drover, caller, task);
    const { size, bytes } = await files.open(hash, {
      ...present({ task }),
      // An attempt reads what its task needs, whosever that is.
      mayRead: (owner) => (task !== undefined && task === own) || isOwn(caller, owner),
    });
    const named = ["content-length", String(size), "content-disposition", `attachment; filename="${hash}"`];
    response.writeHead(200, [...headersOf(BYTES), ...named, "content-security-policy", "sandbox; default-src 'none'"]);
    cutOffSilent(response, SILENCE_MS);
    try {
      await pipeline(request.method === "HEAD" ? [] : Readable.from(bytes), response);
    } catch (error) {
      // In the middle of an answer nothing can be said any more; its length says that it was cut.
      response.destroy();
      if (!(error instanceof Error)) throw error;
    }
    return ANSWERED as never;
  }

  return {
    putFile: ({ params, query }, exchange) => put(params.hash, query, exchange),
    file: ({ params, query }, exchange) => get(params.hash, query, exchange),
  };
}
