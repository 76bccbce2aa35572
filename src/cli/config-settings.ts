/**
 * The config of a server, from all its layers, by the schema of drover.yml.
 *
 * `config-load.ts` knows how layers work and nothing of knobs; the protocol knows the knobs and nothing of layers. Here
 * they meet. Each layer is also checked by itself, so that a bad line does not hide behind a flag that happens to
 * outweigh it today.
 */
import { readSettings, readShape, type Settings, sentence, settingsSchema } from "../protocol/index.ts";
import type { JsonSchema } from "./config-knobs.ts";
import { type ConfigSources, type LoadedConfig, loadConfig, type Verdict } from "./config-load.ts";

export const SETTINGS_SCHEMA: JsonSchema = settingsSchema as unknown as JsonSchema;

export type ServerConfig = LoadedConfig<Settings>;

export function loadSettings(sources: ConfigSources): ServerConfig {
  return loadConfig(sources, {
    schema: SETTINGS_SCHEMA,
    check: (given) => verdictOf(readShape(settingsSchema, given)),
    read: (given) => verdictOf(readSettings(given)),
  });
}

type Read<Value> = ReturnType<typeof readShape<Value>>;

function verdictOf<Value>(read: Read<Value>): Verdict<Value> {
  if (read.ok) return read;
  const { failure } = read;
  return { ok: false, field: "field" in failure ? failure.field : "", message: sentence(failure) };
}
