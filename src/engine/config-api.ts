/**
 * The config while the engine runs: given anew as a whole, or changed by hand field by field.
 *
 * What the host gives is the base; what is changed by hand lies over it and outlives every new base and every restart,
 * until it is taken back. Both are one event, so no reader ever sees one without the other.
 */
import { hash } from "node:crypto";
import { CORE_VERSION, type Refusal } from "../core/base/index.ts";
import { amendPatch, type Config, readConfig, withPatch } from "../core/config/index.ts";
import { policyOf } from "../core/lifecycle/index.ts";
import type { ConfigInput } from "../protocol/generated/index.ts";
import type { ConfigPatchBody } from "../protocol/index.ts";
import { accepted, badInput, refused } from "./base/drover-error.ts";
import type { Writer } from "./writer/writer.ts";

/** The config while the engine runs. */
export type ConfigApi = {
  /** The whole config anew: what is absent has its default. A bad one changes nothing. */
  reload(config: ConfigInput | Config): Promise<Config>;
  /** Changes fields of the scheduler section over every config that is given; null takes a field, or all, back. */
  patchConfig(patch: ConfigPatchBody): Promise<Config>;
  /** What is in force. */
  effectiveConfig(): Config;
};

export function createConfigApi(writer: Writer): ConfigApi {
  const { state } = writer;
  return {
    async reload(given) {
      if (given === undefined) throw badInput("config", given, "an object; {} sets everything back to its default");
      const config = accepted(readConfig(given));
      const whole = readConfig(withPatch(config, state.patch));
      if (!whole.ok) throw refused(byHand(whole.failure));
      if (JSON.stringify(config) !== JSON.stringify(state.base))
        await writer.run({ type: "set-config", config, patch: state.patch });
      return state.config;
    },
    async patchConfig(given) {
      const patch = accepted(amendPatch(state.base, state.patch, given));
      await writer.run({ type: "set-config", config: state.base, patch });
      return state.config;
    },
    effectiveConfig: () => state.config,
  };
}

/** A config that is fine by itself, and does not go together with what was changed by hand. */
const byHand = (refusal: Refusal): Refusal =>
  refusal.type === "bad-field"
    ? { ...refusal, expected: `${refusal.expected}; it was changed by hand, and a patch of null takes that back` }
    : refusal;

export type LeadingNode = { readonly id: string; readonly url: string; readonly key: string };

/** A new life: gates feel their way, workers of the last process are given up, the config is in force. */
export async function beginLife(writer: Writer, given: Config | null, node?: LeadingNode): Promise<void> {
  const { state } = writer;
  const base = given ?? state.base;
  const policyHash = hash("sha256", policyOf(withPatch(base, state.patch)), "hex");
  writer.execute({ type: "start-engine", coreVersion: CORE_VERSION, policyHash });
  if (node !== undefined)
    writer.execute({ type: "join-node", node: node.id, url: node.url, key: node.key, leads: true });
  if (JSON.stringify(state.base) !== JSON.stringify(base))
    writer.execute({ type: "set-config", config: base, patch: state.patch });
  writer.poke();
  await writer.settled();
}
