/**
 * What was used, on the wire: of attempts, tasks and all that sums them up.
 */
import type * as wire from "../generated/usage.ts";
import * as s from "../schema/schema.ts";

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
