/** What a caller needs to know of the wire without a single schema: this room loads no package. */

export { codeOfStatus, WIRE_CODES, type WireCode, type WireError } from "./codes.ts";
export * from "./endpoints.ts";
export type { Role } from "./role.ts";
export {
  givenBackInWords,
  HANDED_BACK,
  isEnded,
  NOT_BEGUN,
  PUT_BACK,
  reasonInWords,
  TASK_STATES,
  WAIT_MS_DEFAULT,
  WAIT_MS_MAX,
} from "./task-state.ts";
