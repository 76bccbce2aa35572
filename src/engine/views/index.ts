/** What other layers may use of this room. */

export type { GateView } from "./gate-view.ts";
export { workerView } from "./stats.ts";
export { whyJson } from "./why-json.ts";
