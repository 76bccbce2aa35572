/**
 * What only a service asks of the core, as steps of a history: attempts lost one by one, schedules, callbacks, a patch
 * of the config.
 */
import type { Instant, ScheduleId, Seq } from "../../../src/core/base/brand.ts";
import type { Command } from "../../../src/core/model/commands.ts";
import type { State } from "../../../src/core/model/state.ts";
import { attemptOf, type Dice, SPANS_MS, TASKS } from "./histories.ts";

const SCHEDULES = ["nightly", "hourly"] as ScheduleId[];

export function serviceCommand(dice: Dice, state: State, now: Instant): Command {
  const schedule = dice.pick(SCHEDULES);
  const nextAt = dice.chance(80) ? ((now + dice.pick(SPANS_MS)) as Instant) : null;
  switch (dice.below(6)) {
    case 0:
      return { type: "put-schedule", schedule, body: dice.pick(["{}", '{"x":1}']), nextAt };
    case 1:
      return {
        type: "move-schedule",
        schedule,
        lastAt: now,
        lastTask: dice.chance(50) ? dice.pick(TASKS) : null,
        nextAt,
      };
    case 2:
      return { type: "remove-schedule", schedule };
    case 3: {
      const end =
        dice.chance(90) && state.callbacks.due.size > 0 ? dice.pick([...state.callbacks.due.keys()]) : (1 as Seq);
      return {
        type: "settle-callback",
        end,
        outcome: { ok: dice.chance(50), status: dice.pick([null, 200]), attempts: 1 },
      };
    }
    case 4: {
      const patch = dice.pick([null, { maxInFlight: 2 }, { retry: { maxLosses: 1 }, perType: { code: 1 } }]);
      return { type: "set-config", config: state.base, patch };
    }
    default:
      return dice.chance(50)
        ? { type: "lose-attempt", ...attemptOf(dice, state), reason: "it is not named" }
        : { type: "return-attempt", ...attemptOf(dice, state) };
  }
}
