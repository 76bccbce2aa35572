/**
 * What was used, on the wire: of attempts, tasks and all that sums them up.
 */
import type * as wire from "../generated/usage.ts";
import * as s from "../schema/schema.ts";
import { labelKey } from "./labels.ts";

const usageFields: s.Fields<wire.UsageView> = {
  inputTokens: s.described(s.whole(0), "Tokens read, with those written into a cache."),
  outputTokens: s.described(s.whole(0), "Tokens written."),
  cachedTokens: s.described(s.whole(0), "Tokens read from a cache."),
  cost: s.optional(s.finite(0, 1e300), "What it cost, in the currency of the workers; absent if none said."),
};
/** What attempts used, as they said at their ends. */
export const usageView = (): s.Schema<wire.UsageView> => s.answer<wire.UsageView>(usageFields);
/** What one attempt used. */
export const attemptUsage: s.Schema<wire.AttemptUsage> = s.namedAnswer("AttemptUsage", {
  attempt: s.described(s.whole(1), "Its number."),
  worker: s.optional(s.name(), "The worker it ran on."),
  usage: usageView(),
});
/** What a round of a loop used: the tokens, and the rest as far as its worker said. */
export const roundUsage: s.Schema<wire.RoundUsage> = s.answer<wire.RoundUsage>({
  tokens: s.described(s.whole(0), "Tokens in all."),
  ...(Object.fromEntries(
    Object.entries(usageFields).map(([key, field]) => [key, s.optional<number>(field)]),
  ) as unknown as s.Fields<Partial<wire.UsageView>>),
});

export const USAGE_ROWS_MAX = 1000;
export const USAGE_ROWS_DEFAULT = 100;
const LABEL = "label:";
const WHOLE_NAMES = ["project", "agent", "type", "day"];
/** What usage is summed up by. */
export const usageBy = (): s.Schema<string> =>
  s.refined(
    s.text(1, 100),
    (by) => WHOLE_NAMES.includes(by) || (by.startsWith(LABEL) && labelKey["~check"](by.slice(LABEL.length))),
    "project, agent, type, day, or label: and the key of a label",
  );
export const usageQuery: s.Schema<wire.UsageQuery> = s.object({
  by: s.optional(usageBy(), "What it is summed up by: project, agent, type, day, or label:KEY.", {
    default: "project",
  }),
  project: s.optional(s.name(), "Only of this project."),
  agentId: s.optional(s.name(), "Only of this agent."),
  since: s.optional(s.instant(), "Only since the day of this instant. Days are those of UTC."),
  limit: s.optional(s.whole(1, USAGE_ROWS_MAX), "How many rows at most.", { default: USAGE_ROWS_DEFAULT }),
});

const sumFields: s.Fields<wire.UsageSum> = {
  attempts: s.described(s.whole(0), "How many attempts said what they used."),
  usage: usageView(),
};
export const usageSum: s.Schema<wire.UsageSum> = s.answer<wire.UsageSum>(sumFields);
export const usageReport: s.Schema<wire.UsageReport> = s.namedAnswer("UsageReport", {
  by: s.described(s.text(1, 100), "What the rows are."),
  rows: s.described(
    s.list(
      s.answer<wire.UsageRow>({
        key: s.described(s.text(0, 1000), "The project, agent, type, day or value of the label."),
        ...sumFields,
      }),
    ),
    "Those that used most tokens first; days with the last first.",
  ),
  count: s.described(s.whole(0), "How many rows."),
  total: s.described(usageSum, "Of all rows, also those left out."),
  omitted: s.optional(s.whole(1), "How many rows were left out."),
  completeSince: s.optional(
    s.instant(),
    "What was used before is not known in full any more: there were more than 10 000 combinations of day, project, " +
      "agent and type, or label.",
  ),
});
