/** What other layers may use of this room: the bodies that the engine reads. */

export { permitBody, settleBody } from "./permits.ts";
export { joinBody, SESSION_MAX, syncBody, usage, workerOptions } from "./workers.ts";
