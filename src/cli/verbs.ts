/**
 * Every verb of `drover`, in the order of the help.
 */
import { completionVerb } from "./completion.ts";
import { configVerb } from "./config.ts";
import type { Verb } from "./verb.ts";

export const VERBS: readonly Verb<never>[] = [configVerb, completionVerb];
