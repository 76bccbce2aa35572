/** What other layers may use of this room. */

export { INSTANT_NUMBERS, type Why, type WhyCondition, why } from "./why.ts";
