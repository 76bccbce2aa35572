/**
 * The tokens a caller says were used, as they are charged: input, output and cache creation.
 */
import type { UsageTotals } from "../../core/model/index.ts";
import type { Usage, UsageView } from "../../protocol/index.ts";
import { usage } from "../../protocol/shapes/index.ts";
import { readBody } from "./call-options.ts";

/** Of what is not checked yet: a misspelt count would be a call that is never paid for. */
export const tokensOf = (given: Usage): number => countTokens(readBody(usage, given, "usage"));

/** In detail; null where nothing is said. */
export function detailsOf(used: Usage): UsageTotals | null {
  const { inputTokens = 0, outputTokens = 0, cacheCreationTokens = 0, cachedTokens = 0, cost = null } = used;
  const isNothing = inputTokens + outputTokens + cacheCreationTokens + cachedTokens === 0 && cost === null;
  return isNothing ? null : { inputTokens: inputTokens + cacheCreationTokens, outputTokens, cachedTokens, cost };
}

/** As it is shown. */
export const usageView = ({ cost, ...tokens }: UsageTotals): UsageView =>
  cost === null ? tokens : { ...tokens, cost };

export const countTokens = ({ inputTokens = 0, outputTokens = 0, cacheCreationTokens = 0 }: Usage): number =>
  inputTokens + outputTokens + cacheCreationTokens;
