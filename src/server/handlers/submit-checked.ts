/**
 * Where webhooks may go, checked when a task is submitted, and told of when there was no room for it.
 *
 * The engine takes a callbackUrl for text; which addresses are let through is the server's to say. What is wrong with
 * an item of a batch, its URL or any field, turns away that item and whatever needs it, and no other: in its place the
 * engine is handed one that it must refuse, and its words are replaced by ours.
 */

import { isRecord, type Refusal, sentence } from "../../core/base/index.ts";
import { DroverError, refused } from "../../engine/writer/index.ts";
import {
  type BatchAnswer,
  type BatchBody,
  type BatchTask,
  batchTask,
  readShape,
  type Submitted,
  type TaskBody,
} from "../../protocol/index.ts";
import { checkCallbackUrl } from "../webhooks/address.ts";
import type { Snapshot } from "../webhooks/delivery.ts";
import type { Deps } from "./handler.ts";

type Parts = Pick<Deps, "drover" | "settings" | "onRejected" | "onTurnedAway">;

/** Throws if the URL is one that no webhook may go to. */
export function checkCallback({ settings }: Pick<Deps, "settings">, url: string | undefined, field: string): void {
  if (url === undefined) return;
  const read = checkCallbackUrl(url, settings().webhooks, field);
  if (!read.ok) throw refused(read.failure);
}

/** The whole of a submit in one step, since it is the call that must be cheap. */
export async function submitChecked(parts: Parts, body: TaskBody, headers: string[]): Promise<Submitted> {
  checkCallback(parts, body.callbackUrl, "callbackUrl");
  try {
    const submitted = await parts.drover.submit(body);
    if (submitted.throttle === true) headers.push("retry-after", "1");
    return submitted;
  } catch (error) {
    if (error instanceof DroverError) tellRejected(parts, body, error.details.taskId, error);
    throw error;
  }
}

/** `foreign`: by their places, the items that are not their caller's to submit, and why. */
export async function submitCheckedBatch(
  parts: Parts,
  batch: BatchBody,
  foreign: ReadonlyMap<number, string>,
): Promise<BatchAnswer> {
  checkCallback(parts, batch.callbackUrl, "callbackUrl");
  const bad = new Map<number, string>();
  const tasks = batch.tasks.map((item, index) => {
    const refusal = refusalOf(parts, item, `tasks[${index}]`);
    const error = refusal === null ? foreign.get(index) : sentence(refusal);
    if (error === undefined) return item;
    bad.set(index, error);
    return unacceptable(item);
  });
  const answer = await parts.drover.submitBatch({ ...batch, tasks });
  const answers = answer.tasks.map((item, index) => {
    const error = bad.get(index);
    if (error !== undefined) return { ...item, error };
    if (item.state === "rejected")
      tellRejected(parts, { ...batch, ...batch.tasks[index] } as TaskBody, item.taskId, item.error ?? "");
    return item;
  });
  return { ...answer, tasks: answers };
}

/** What is wrong with one item, if anything is. */
function refusalOf({ settings }: Parts, item: unknown, at: string): Refusal | null {
  const read = readShape(batchTask, item, at);
  if (!read.ok) return read.failure;
  const { callbackUrl } = read.value;
  if (callbackUrl === undefined) return null;
  const url = checkCallbackUrl(callbackUrl, settings().webhooks, `${at}.callbackUrl`);
  return url.ok ? null : url.failure;
}

/** What the engine must turn away, under the same name, so that it turns away what needs it too. */
function unacceptable(item: unknown): BatchTask {
  const id: unknown = isRecord(item) ? item.id : undefined;
  return { action: "", ...(typeof id === "string" ? { id } : {}) };
}

/** Only what found no room has an id: what was wrong never became a task. */
function tellRejected(parts: Parts, body: TaskBody, taskId: unknown, why: DroverError | string): void {
  if (typeof taskId !== "string") return;
  const code = typeof why === "string" ? "no_room" : why.code;
  parts.onTurnedAway({ taskId, agentId: body.agentId, code });
  if (body.callbackUrl === undefined) return;
  // It is told as it is shown. One that was let in since, under the id it chose, has nothing to tell yet.
  parts.drover.task(taskId).then(
    (task) => (task.state === "rejected" ? parts.onRejected(task as Snapshot) : undefined),
    () => {},
  );
}
