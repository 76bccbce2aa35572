/**
 * Where webhooks may go, checked when a task is submitted, and told of when there was no room for it.
 *
 * The engine takes a callbackUrl for text; which addresses are let through is the server's to say. A bad one in an
 * item of a batch turns away that item and whatever needs it, and no other: the engine is handed the item with a
 * callbackUrl it must refuse, and its words are replaced by ours.
 */
import { isRecord } from "../core/shape-of-input.ts";
import { DroverError, refused } from "../engine/drover-error.ts";
import type { BatchAnswer, BatchBody, Submitted, TaskBody } from "../protocol/index.ts";
import type { Deps } from "./handler.ts";
import { refusalSentence } from "./problem.ts";
import { checkCallbackUrl } from "./webhook-address.ts";
import type { Snapshot } from "./webhook-delivery.ts";

type Parts = Pick<Deps, "drover" | "settings" | "onRejected" | "onTurnedAway">;

/** Throws if the URL is one that no webhook may go to. */
export function checkCallback({ settings }: Pick<Deps, "settings">, url: string | undefined, field: string): void {
  if (url === undefined) return;
  const read = checkCallbackUrl(url, settings().webhooks, field);
  if (!read.ok) throw refused(read.failure);
}

export async function submitChecked(parts: Parts, body: TaskBody): Promise<Submitted> {
  checkCallback(parts, body.callbackUrl, "callbackUrl");
  try {
    return await parts.drover.submit(body);
  } catch (error) {
    if (error instanceof DroverError) tellRejected(parts, body, error.details.taskId, error);
    throw error;
  }
}

export async function submitCheckedBatch(parts: Parts, batch: BatchBody): Promise<BatchAnswer> {
  checkCallback(parts, batch.callbackUrl, "callbackUrl");
  const bad = new Map<number, string>();
  const tasks = batch.tasks.map((item, index) => {
    const url: unknown = isRecord(item) ? item.callbackUrl : undefined;
    if (url === undefined) return item;
    const read = checkCallbackUrl(url, parts.settings().webhooks, `tasks[${index}].callbackUrl`);
    if (read.ok) return item;
    bad.set(index, refusalSentence(read.failure));
    return { ...item, callbackUrl: "" };
  });
  const answer = await parts.drover.submitBatch({ ...batch, tasks });
  const answers = answer.tasks.map((item, index) => {
    const error = bad.get(index);
    if (error !== undefined) return { ...item, error };
    const task = batch.tasks[index];
    if (item.state === "rejected" && isRecord(task))
      tellRejected(parts, { ...batch, ...task } as unknown as TaskBody, item.taskId, item.error ?? "");
    return item;
  });
  return { ...answer, tasks: answers };
}

/** Only what found no room has an id: what was wrong never became a task. */
function tellRejected(parts: Parts, body: TaskBody, taskId: unknown, why: DroverError | string): void {
  if (typeof taskId !== "string") return;
  const [error, code] = typeof why === "string" ? [why, "no_room"] : [why.message, why.code];
  parts.onTurnedAway({ taskId, agentId: body.agentId, code });
  if (body.callbackUrl === undefined) return;
  const { id: _, tasks: __, ...submitted } = body as TaskBody & { readonly tasks?: unknown };
  parts.onRejected({ ...submitted, taskId, state: "rejected", attempt: 0, error } as Snapshot);
}
