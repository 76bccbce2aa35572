/**
 * What is wrong with a config as one object, by the schema of drover.yml and in words for people.
 */
import { type Refusal, sentence } from "../../core/base/index.ts";
import { readSettings, readShape, type Settings, settingsSchema, tokenFaults } from "../../protocol/index.ts";
import {
  findUnitless,
  forPeople,
  type JsonSchema,
  listForm,
  mapAdvice,
  schemaAt,
} from "../../protocol/schema/index.ts";

export const SETTINGS_SCHEMA: JsonSchema = settingsSchema as unknown as JsonSchema;

/** A config as one object, read; what is wrong is named by its field. `also` is wrong with the same setting. */
export type Fault = { readonly field: string; readonly message: string };
export type Verdict<Value> =
  | { readonly ok: true; readonly value: Value }
  | (Fault & { readonly ok: false; readonly also?: readonly Fault[] });

/** Whether all of it together can be. */
export const readWhole = (given: unknown): Verdict<Settings> => verdictOf(readSettings(given));

type Read<Value> = ReturnType<typeof readShape<Value>>;

/** Each value by itself. The tokens are one setting, and all their problems are listed. */
export function checkEach(given: unknown): Verdict<unknown> {
  const read = readShape(settingsSchema, given);
  const isOfTokens = !read.ok && faultOf(read.failure).field.startsWith("server.tokens");
  const { server } = given as { readonly server?: { readonly tokens?: unknown } | null };
  const [first, ...also] = read.ok || isOfTokens ? tokenFaults(server?.tokens).map(faultOf) : [];
  const unitless = findUnitless(given, SETTINGS_SCHEMA);
  if (unitless !== null) return { ok: false, ...unitless };
  return first === undefined ? withMap(verdictOf(read), given) : { ok: false, ...first, also };
}

/** A list where a map is wanted is reported with the map, and the other way round. */
function withMap(verdict: Verdict<unknown>, given: unknown): Verdict<unknown> {
  if (verdict.ok) return verdict;
  const path = verdict.field.split(".");
  const schema = schemaAt(SETTINGS_SCHEMA, path);
  let value = given;
  for (const key of path) value = (value as Readonly<Record<string, unknown>> | null | undefined)?.[key];
  const list = schema === null ? null : listForm(path.at(-1) ?? "", value, schema);
  if (list !== null) return { ...verdict, message: `${verdict.field} must be ${list}` };
  const advice = schema === null ? "" : mapAdvice(path.at(-1) ?? "", value, schema);
  return { ...verdict, message: verdict.message + advice };
}

function verdictOf<Value>(read: Read<Value>): Verdict<Value> {
  return read.ok ? read : { ok: false, ...faultOf(read.failure) };
}

const faultOf = (failure: Refusal): Fault => ({
  field: "field" in failure ? failure.field : "",
  message: forPeople(sentence(failure)),
});
