/**
 * Every verb of the command line with all that it takes, for tests and documents that tell of it.
 */
import type { Verb } from "../../../src/cli/shell/verb.ts";
import { VERBS } from "../../../src/cli/verbs.ts";

export const LOADED_VERBS: readonly Verb<never>[] = await Promise.all(
  VERBS.map(async ({ name, summary, load }) => ({ name, summary, ...(await load()) })),
);
