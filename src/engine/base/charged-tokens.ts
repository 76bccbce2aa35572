/**
 * The tokens a caller says were used, as they are charged: input, output and cache creation.
 */
import type { Usage } from "../../protocol/index.ts";
import { usage } from "../../protocol/shapes/index.ts";
import { readBody } from "./call-options.ts";

/** Of what is not checked yet: a misspelt count would be a call that is never paid for. */
export const tokensOf = (given: Usage): number => countTokens(readBody(usage, given, "usage"));

export const countTokens = ({ inputTokens = 0, outputTokens = 0, cacheCreationTokens = 0 }: Usage): number =>
  inputTokens + outputTokens + cacheCreationTokens;
