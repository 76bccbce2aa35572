/**
 * Why a task does not run, as it goes over the wire: instants are text.
 */
import { INSTANT_NUMBERS, type Why } from "../../core/why/index.ts";
import type { WhyAnswer } from "../../protocol/index.ts";
import { isoTime } from "../../std/index.ts";

export function whyJson({ earliestStart, conditions, ...answer }: Why): WhyAnswer {
  return {
    ...answer,
    conditions: conditions.map(({ notes: _, ...one }) => ({ ...one, numbers: withInstants(one.numbers) })),
    ...(earliestStart === null ? {} : { earliestStart: isoTime(earliestStart) }),
  };
}

const withInstants = (numbers: Why["conditions"][number]["numbers"]): WhyAnswer["conditions"][number]["numbers"] =>
  Object.fromEntries(
    Object.entries(numbers).map(([key, value]) => [
      key,
      INSTANT_NUMBERS.has(key) && typeof value === "number" ? isoTime(value) : value,
    ]),
  );
