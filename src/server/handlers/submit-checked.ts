/**
 * Where webhooks may go, checked when a task is submitted, and called when there was no room for it.
 *
 * The engine takes any URL; which addresses are let through is the server's to say. An item of a batch whose address is
 * not, or that is not its caller's to submit, is handed to the engine as refused: what needs it is refused with it, and
 * no other item is.
 */
import { isRecord, sentence } from "../../core/base/index.ts";
import { DroverError, refused } from "../../engine/base/index.ts";
import { refusedItem } from "../../engine/tasks/index.ts";
import type { Caller } from "../../http/index.ts";
import { type BatchAnswer, type BatchBody, checked, type Submitted, type TaskBody } from "../../protocol/index.ts";
import { isWebUrl } from "../../protocol/schema/index.ts";
import { checkCallbackUrl } from "../webhooks/address.ts";
import type { Snapshot } from "../webhooks/delivery.ts";
import { Decided, type Deps } from "./handler.ts";

type Parts = Pick<Deps, "drover" | "early" | "settings" | "onRejected" | "onTurnedAway">;

/** Throws if the URL is one that no webhook may go to. */
export function checkCallback({ settings }: Pick<Deps, "settings">, url: string | undefined, field: string): void {
  if (url === undefined) return;
  const read = checkCallbackUrl(url, settings().webhooks, field);
  if (!read.ok) throw refused(read.failure);
}

/** The whole of a submit in one step, and nearly always without a promise, since it is the call that must be cheap. */
export function submitChecked(
  parts: Parts,
  body: TaskBody,
  headers: string[],
): Decided<Submitted> | Promise<Submitted> {
  checkCallback(parts, body.callbackUrl, "callbackUrl");
  const early = parts.early();
  const answer = early.submit(checked(body));
  if (answer === null) return submitInTime(parts, body, headers);
  if (answer instanceof DroverError) tellRejected(parts, body, answer.details.taskId, answer);
  else if (answer.throttle === true) headers.push(...SLOW_DOWN);
  return new Decided(answer, early.settled);
}
const SLOW_DOWN = ["retry-after", "1"];

/** The same where something is awaited before it is decided. */
export async function submitInTime(
  parts: Parts,
  body: TaskBody,
  headers: string[],
  by?: Caller["attempt"],
): Promise<Submitted> {
  checkCallback(parts, body.callbackUrl, "callbackUrl");
  try {
    const { drover } = parts;
    const submitted = await (by === undefined
      ? drover.submit(checked(body))
      : drover.submitChild(by.task, by.number, body));
    if (submitted.throttle === true) headers.push(...SLOW_DOWN);
    return submitted;
  } catch (error) {
    if (error instanceof DroverError) tellRejected(parts, body, error.details.taskId, error);
    throw error;
  }
}

/** `foreign`: by their indices, the items that are not their caller's to submit, and why. */
export async function submitCheckedBatch(
  parts: Parts,
  batch: BatchBody,
  foreign: ReadonlyMap<number, string>,
  by?: Caller["attempt"],
): Promise<BatchAnswer> {
  checkCallback(parts, batch.callbackUrl, "callbackUrl");
  const tasks = batch.tasks.map((item, index) => {
    const error = foreign.get(index) ?? callbackFault(parts, item, `tasks[${index}].callbackUrl`);
    return error === null ? item : refusedItem(item, error);
  });
  const { drover } = parts;
  const answer = await (by === undefined
    ? drover.submitBatch(checked({ ...batch, tasks }))
    : drover.submitChildren(by.task, by.number, { ...batch, tasks }));
  for (const [index, { state, taskId, error = "" }] of answer.tasks.entries())
    if (state === "rejected") tellRejected(parts, { ...batch, ...batch.tasks[index] } as TaskBody, taskId, error);
  return answer;
}

/** Why no webhook may go to the URL of an item. Whether it is a URL, the engine says. */
function callbackFault({ settings }: Parts, item: unknown, at: string): string | null {
  const url: unknown = isRecord(item) ? item.callbackUrl : undefined;
  if (!isWebUrl(url)) return null;
  const read = checkCallbackUrl(url, settings().webhooks, at);
  return read.ok ? null : sentence(read.failure);
}

/** Only what found no room has an id: what was wrong never became a task. */
function tellRejected(parts: Parts, body: TaskBody, taskId: unknown, why: DroverError | string): void {
  if (typeof taskId !== "string") return;
  const code = typeof why === "string" ? "no_room" : why.code;
  parts.onTurnedAway({ taskId, agentId: body.agentId, code });
  if (body.callbackUrl === undefined) return;
  // It is sent as it is shown. One that was let in since, under the id it chose, has not ended yet.
  parts.drover.task(taskId).then(
    (task) => (task.state === "rejected" ? parts.onRejected(task as Snapshot) : undefined),
    () => {},
  );
}
