/** What other layers may use of this room. */

export { canonical } from "./canonical-json.ts";
export { badInput, DroverError, type DroverErrorCode, isStop, refused } from "./drover-error.ts";
export { identityIn } from "./node-identity.ts";
