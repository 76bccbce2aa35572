/**
 * Projects and gates on the wire: who pays, and what stands before a provider.
 */
import { BYTES_MAX, BYTES_MIN } from "../../core/config/index.ts";
import type * as wire from "../generated/projects.ts";
import * as s from "../schema/schema.ts";
import { priority } from "./tasks.ts";
import { usageView } from "./usage.ts";

type TokenWindow = { readonly limit: number; readonly used: number } | null;

const amount = (description: string): s.Schema<number> => s.described(s.finite(-1e300, 1e300), description);

export const projectBody: s.Schema<wire.ProjectBody> = s.namedObject(
  "ProjectBody",
  {
    weight: s.optional(s.finite(0, 1_000_000, true), "Its share among the projects that have work."),
    maxConcurrent: s.optional(s.whole(1), "How many of its tasks run at once."),
    budget: s.optional(
      s.object<NonNullable<wire.ProjectBody["budget"]>>({
        limit: s.optional(s.nullable(s.whole(1)), "Tokens in the window; null: as many as it likes."),
        window: s.optional(s.span(1000)),
      }),
    ),
    maxPriority: s.optional(priority(), "The most urgent its tasks and calls may be; −200 opens the express lane."),
    provider: s.optional(s.nullable(s.name()), "The gate of tasks that name none."),
    bytesPerMinute: s.optional(
      s.nullable(s.size(BYTES_MIN, BYTES_MAX)),
      "What it may store in a minute, such as 256MiB; null: as much as it likes.",
    ),
  },
  { examples: [{ weight: 2, maxConcurrent: 10, budget: { limit: 1_000_000, window: "24h" } }] },
);
const budgetRules = (): s.Schema<wire.ProjectView["budget"]> =>
  s.answer({ limit: s.nullable(s.whole(1)), window: s.described(s.whole(1), "Milliseconds.") });
const SPENT = "Tokens in the budget's window.";
const FREES_AT =
  "When the first of it leaves the window, and the budget has more room by the clock alone; absent where there is no " +
  "limit or nothing was spent.";
const RESERVED = "Tokens set aside for what runs now, and for calls outside a task that wait or are out.";
export const projectView: s.Schema<wire.ProjectView> = s.namedAnswer("Project", {
  id: s.name(),
  weight: s.finite(0, 1_000_000, true),
  maxConcurrent: s.whole(1),
  budget: budgetRules(),
  maxPriority: s.whole(-1_000_000_000, 1_000_000_000),
  provider: s.nullable(s.name()),
  bytesPerMinute: s.nullable(s.whole(1)),
  status: s.oneOf("active", "paused"),
  queued: s.described(s.whole(0), "Waiting and queued tasks. What is parked is neither."),
  inFlight: s.whole(0),
  level: amount("Charged ÷ weight, halved every half life: the lowest goes first."),
  share: amount("What it was charged within fairness.window ÷ what all were; 0 if nothing was."),
  target: amount("Its weight ÷ the weights of all."),
  deficit: amount("Target − share: positive if it got less than its weight entitles it to."),
  charged: amount("Tokens and start costs it was charged altogether, calls included; what runs at its estimate."),
  spent: amount(SPENT),
  freesAt: s.optional(s.instant(), FREES_AT),
  usage: s.optional(usageView(), "What attempts of its tasks used in all, as they said at their ends."),
  reserved: amount(RESERVED),
});
const fleetSpending = (): s.Schema<NonNullable<wire.ProjectList["fleet"]>> =>
  s.answer({
    budget: budgetRules(),
    spent: amount(SPENT),
    freesAt: s.optional(s.instant(), FREES_AT),
    reserved: amount(RESERVED),
  });
export const projectList: s.Schema<wire.ProjectList> = s.answer({
  projects: s.list(projectView),
  count: s.whole(0),
  fleet: s.optional(fleetSpending(), "The budget of all together; absent for a token that is scoped to some."),
});

const tokenWindow = (): s.Schema<TokenWindow> =>
  s.nullable(s.answer<NonNullable<TokenWindow>>({ limit: s.whole(0), used: s.finite(0, 1e300) }));
const gateFields: s.Fields<wire.GateJson> = {
  id: s.name(),
  running: s.whole(0),
  queued: s.whole(0),
  limit: s.described(s.whole(0), "How many may run now: maxConcurrent, or fewer while it recovers."),
  maxConcurrent: s.whole(1),
  blockedUntil: s.optional(s.instant(), "The provider said 429 or 529: nothing goes out until then."),
  throttles: s.described(s.whole(0), "Episodes of 429 in a row."),
  slowStart: s.nullable(s.whole(1)),
  requests: s.whole(0),
  requestsUsed: s.finite(0, 1e300),
  windowMs: s.whole(1),
  tokensUsed: s.answer<wire.GateJson["tokensUsed"]>({
    perMinute: tokenWindow(),
    perHour: tokenWindow(),
    perDay: tokenWindow(),
  }),
  tokensReserved: s.finite(-1e300, 1e300),
  held: s.described(s.nullable(s.name()), "What holds the next call, if anything does."),
  heldUntil: s.optional(s.instant(), "When time alone may let it go."),
};
const gateJson: s.Schema<wire.GateJson> = s.namedAnswer("Gate", gateFields);
const gateStats = (): s.Schema<wire.GateStats> =>
  s.answer({
    scheduled: s.described(s.whole(0), "Calls that were let out."),
    completed: s.described(s.whole(0), "Calls that came back; those whose permit ran out are not counted."),
    rateLimited: s.described(s.whole(0), "Calls that met a window or a block when they asked, and 429s reported."),
    waitMs: s.described(s.whole(0), "The waits of all that were let out."),
    serviceMs: s.described(s.whole(0), "The time all that came back were out."),
    peakQueued: s.whole(0),
    peakRunning: s.whole(0),
  });
const gateCall = (): s.Schema<wire.GateCall> =>
  s.answer({
    id: s.described(s.name(), "Its permit."),
    class: s.oneOf("critical", "high", "normal", "low"),
    state: s.oneOf("running", "queued"),
    seconds: s.described(s.finite(0, 1e300), "Since it was let out, or since it was first asked for."),
    project: s.name(),
    task: s.optional(s.name(), "The task that makes the call, if one does."),
  });
export const gateDetail: s.Schema<wire.GateDetail> = s.namedAnswer("GateDetail", {
  ...gateFields,
  stats: gateStats(),
  calls: s.list(gateCall()),
});
export const gateList: s.Schema<wire.GateList> = s.answer({ gates: s.list(gateJson), count: s.whole(0) });
