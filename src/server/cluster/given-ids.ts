/**
 * Ids for what comes without one: a node that sends a call on gives them, so that the call can be sent once more.
 *
 * Tasks, permits and workers are the same if they are asked for twice under one id. Nothing else is looked at: what is
 * wrong with a body, the leader says.
 */
import { randomUUID } from "node:crypto";
import { isRecord } from "../../core/base/index.ts";
import type { CallName } from "../../protocol/index.ts";

/** By how much a body may grow so, or by numbers that are written in full. One that grows by more is sent without. */
export const GIVEN_BYTES_MAX: number = 512 * 1024;

/** The same body, in which every task, permit and worker has an id: itself where all had. */
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
      return eachOf(body, "calls", (call) => withBody(call, newId));
    default:
      return body;
  }
}

type Fields = Readonly<Record<string, unknown>>;

const named = (body: Fields, newId: () => string): Fields => (body.id === undefined ? { id: newId(), ...body } : body);

function withBody(item: Fields, newId: () => string): Fields {
  const { call, body } = item;
  const named = call === "bulk" ? body : withIds(call as CallName, body, newId);
  return named === body ? item : { ...item, body: named };
}

function eachOf(body: Fields, field: string, change: (item: Fields) => Fields): Fields {
  const items = body[field];
  if (!Array.isArray(items)) return body;
  const changed = items.map((item: unknown) => (isRecord(item) ? change(item) : item));
  return changed.every((item, index) => item === items[index]) ? body : { ...body, [field]: changed };
}
