/**
 * Every call of the wire, by name.
 */
import type { CallName } from "../wire/endpoints.ts";
import type { AnswerOf, AskOf, Call } from "./call.ts";
import { FLEET_CALLS, type FleetCalls } from "./fleet-calls.ts";
import { SERVER_CALLS, type ServerCalls } from "./server-calls.ts";
import { TASK_CALLS, type TaskCalls } from "./task-calls.ts";

export type Calls = TaskCalls & FleetCalls & ServerCalls;
export type TaskCallName = keyof TaskCalls;
export type FleetCallName = keyof FleetCalls;
export type ServerCallName = keyof ServerCalls;

export const CALLS: Calls = { ...TASK_CALLS, ...FLEET_CALLS, ...SERVER_CALLS };
export const CALL_LIST: readonly Call[] = Object.values(CALLS) as unknown as readonly Call[];

/** What a call takes: `params`, `query`, `body`, as far as it takes any. */
export type Asked<Name extends CallName> = AskOf<Calls[Name]>;
/** What a call answers when it is not an error. */
export type Answered<Name extends CallName> = AnswerOf<Calls[Name]>;
