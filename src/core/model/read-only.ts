/**
 * The state as everything but `evolve` sees it: to be read, at any depth, and never written.
 *
 * `decide`, `pump`, `why` and all that they call take these types, and so do other layers. A write through them does
 * not compile; at run time they are the same objects, and nothing costs anything. They are made from the types of
 * state.ts, so a field is declared once.
 */
import type { DeepReadonly } from "../collections/deep-readonly.ts";
import type { Plan } from "./plan.ts";
import type * as written from "./state.ts";

/** The state for all but `evolve`: it may be read at any depth, and not written. */
export type ReadonlyState = DeepReadonly<written.State>;
export type ReadonlyTask = DeepReadonly<written.Task>;
export type ReadonlyExtra = DeepReadonly<written.TaskExtra>;
export type ReadonlyPlan = DeepReadonly<Plan>;
export type ReadonlyTaskGroup = DeepReadonly<written.TaskGroup>;
export type ReadonlyAttempt = DeepReadonly<written.Attempt>;
export type ReadonlyProject = DeepReadonly<written.Project>;
export type ReadonlyAgent = DeepReadonly<written.Agent>;
export type ReadonlyGroup = DeepReadonly<written.Group>;
export type ReadonlyHold = DeepReadonly<written.Hold>;
export type ReadonlyWorker = DeepReadonly<written.Worker>;
export type ReadonlyFleet = DeepReadonly<written.Fleet>;
export type ReadonlyShape = DeepReadonly<written.Shape>;
export type ReadonlyDemand = DeepReadonly<written.Demand>;
export type ReadonlyRequirements = DeepReadonly<written.Requirements>;
export type ReadonlyTombstone = DeepReadonly<written.Tombstone>;
export type ReadonlyLinks = DeepReadonly<written.Links>;
export type ReadonlyTab = DeepReadonly<written.Tab>;
export type ReadonlyTimer = DeepReadonly<written.Timer>;
