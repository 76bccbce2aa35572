/**
 * The body of a call as text, made once, however often the call is then tried.
 *
 * What cannot be sent as it was meant is refused here by its path, as the server would: it is no fault of the network,
 * and trying again would not mend it. What has no id gets one, so that a repeat after a lost answer is the same thing.
 */
import type { CallName, PermitBody } from "../protocol/index.ts";
import { type JsonFault, JsonText, jsonFault, kindInWords } from "../std/plain-json.ts";
import { ClientError } from "./client-error.ts";

/** How many levels of a body only wrap what is itself measured: a task of a batch, the result of an attempt. */
const WRAPPED: { readonly [Name in CallName]?: number } = { submitBatch: 2, sync: 3 };
const KINDS: { readonly [Name in CallName]?: string } = { submit: "task", joinWorker: "worker", askPermit: "permit" };

export function bodyText(name: CallName, body: unknown): string {
  if (body instanceof JsonText) return body.text;
  const found = faultOfWhole(name, body) ?? jsonFault(body, "", -(WRAPPED[name] ?? 0));
  if (found === null) return JSON.stringify(withIds(name, body));
  const { field, value, expected } = found;
  throw new ClientError("bad_request", `${field} is ${value}, and must be ${expected}`, { details: { ...found } });
}

/** Every body is an object; but a patch of null takes all patches back. */
function faultOfWhole(name: CallName, body: unknown): JsonFault | null {
  const isWrong = typeof body !== "object" || Array.isArray(body) || (body === null && name !== "patchConfig");
  return isWrong ? { field: "(body)", value: kindInWords(body), expected: "an object" } : null;
}

/** The same permit, with an id. */
export const namedPermit = (body: PermitBody): PermitBody & { readonly id: string } =>
  named(body, "permit") as PermitBody & { readonly id: string };

function withIds(name: CallName, body: unknown): unknown {
  const kind = KINDS[name];
  if (kind !== undefined) return named(body, kind);
  if (name !== "submitBatch") return body;
  const { tasks, ...batch } = body as { readonly tasks?: unknown };
  return { ...batch, tasks: Array.isArray(tasks) ? tasks.map((task: unknown) => named(task, "task")) : tasks };
}

/** Whatever is no object is left as it is, for the server to refuse. */
function named(body: unknown, kind: string): unknown {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return body;
  return (body as { readonly id?: unknown }).id === undefined ? { ...body, id: newId(kind) } : body;
}

/** Digits and letters that are not taken for each other; 16 of them are 80 bits, which do not meet by chance. */
const LETTERS = "0123456789abcdefghjkmnpqrstvwxyz";
const LETTERS_EACH = 16;
/** Chance for so many ids is fetched and spelled at once: a letter at a time it would be most of what an id costs. */
const CHANCES = LETTERS_EACH * 256;
let spelled = "";
let used = 0;

function newId(kind: string): string {
  if (used === spelled.length) {
    spelled = spellChances();
    used = 0;
  }
  used += LETTERS_EACH;
  return `${kind}_${spelled.slice(used - LETTERS_EACH, used)}`;
}

function spellChances(): string {
  const chances = crypto.getRandomValues(Buffer.alloc(CHANCES));
  for (let at = 0; at < CHANCES; at++) chances[at] = LETTERS.charCodeAt((chances[at] as number) % LETTERS.length);
  return chances.toString("latin1");
}
