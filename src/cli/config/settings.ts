/**
 * The config of a server, from all its layers, by the schema of drover.yml.
 *
 * `load.ts` knows how layers work and nothing of knobs; the protocol knows the knobs and nothing of layers. Here
 * they meet. Each layer is also checked by itself, so that a bad line does not hide behind a flag that happens to
 * outweigh it today.
 */
import { type Refusal, sentence } from "../../core/base/index.ts";
import { readSettings, readShape, type Settings, settingsSchema, tokenFaults } from "../../protocol/index.ts";
import { type JsonSchema, listForm, mapAdvice, schemaAt } from "./knobs.ts";
import { type ConfigSources, type Fault, type LoadedConfig, loadConfig, type Verdict } from "./load.ts";
import { findUnitless, forPeople } from "./span-unit.ts";

export const SETTINGS_SCHEMA: JsonSchema = settingsSchema as unknown as JsonSchema;

export type ServerConfig = LoadedConfig<Settings>;

export function loadSettings(sources: ConfigSources): ServerConfig {
  return loadConfig(sources, {
    schema: SETTINGS_SCHEMA,
    check: checkEach,
    read: (given) => verdictOf(readSettings(given)),
  });
}

type Read<Value> = ReturnType<typeof readShape<Value>>;

/** Each value by itself. The tokens are one setting, and all their problems are listed. */
function checkEach(given: unknown): Verdict<unknown> {
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
