/**
 * The core's own word on what plain data is, for those who read a body before it is sent: both sides draw one line.
 */
export { isPlainObject } from "../core/base/plain-object.ts";
export { THROWS } from "../core/base/refusal.ts";
