/**
 * Ids for what comes without one: a node that sends a call on gives them, so that the call can be sent once more.
 *
 * Tasks, permits and workers are the same if they are asked for twice under one id. Nothing else is looked at: what is
 * wrong with a body, the leader says.
 */
import { randomUUID } from "node:crypto";
import { isRecord } from "../../core/base/index.ts";
import type { CallName } from "../../protocol/index.ts";

/** The same body, in which every task, permit and worker has an id. */
export function withIds(name: CallName, body: unknown, newId: () => string = randomUUID): unknown {
  if (!isRecord(body)) return body;
  switch (name) {
    case "submit":
    case "askPermit":
    case "joinWorker":
      return named(body, newId);
    case "submitBatch":
      return eachOf(body, "tasks", (task) => named(task, newId));
    case "bulk":
      return eachOf(body, "calls", (call) => ({ ...call, ...bodyOf(call, newId) }));
    default:
      return body;
  }
}

type Fields = Readonly<Record<string, unknown>>;

const named = (body: Fields, newId: () => string): Fields => (body.id === undefined ? { id: newId(), ...body } : body);

const bodyOf = ({ call, body }: Fields, newId: () => string): Fields =>
  call === "bulk" || body === undefined ? {} : { body: withIds(call as CallName, body, newId) };

function eachOf(body: Fields, field: string, change: (item: Fields) => Fields): Fields {
  const items = body[field];
  if (!Array.isArray(items)) return body;
  return { ...body, [field]: items.map((item: unknown) => (isRecord(item) ? change(item) : item)) };
}
