/**
 * Ids and units that cannot be mixed up.
 *
 * A brand exists for the compiler only: at run time a TaskId is a string and an Instant is a number.
 * Instants are whole milliseconds since 1970 in log time, spans are whole milliseconds, and a Seq is
 * the number of an event in the log: its identity and the only logical clock there is.
 */

declare const brand: unique symbol;
type Brand<Base, Name extends string> = Base & { readonly [brand]: Name };

/** The id of a task. */
export type TaskId = Brand<string, "TaskId">;
/** The name of a project. */
export type ProjectId = Brand<string, "ProjectId">;
/** The name of an agent. */
export type AgentId = Brand<string, "AgentId">;
/** The id of a worker. */
export type WorkerId = Brand<string, "WorkerId">;
/** Whom a task waits for: one worker, or any of a zone. */
export type ZonePin = Brand<string, "ZonePin">;
export type Pin = WorkerId | ZonePin;
/** The name of a gate. */
export type GateId = Brand<string, "GateId">;
/** The id of a permit. */
export type PermitId = Brand<string, "PermitId">;
export type ScheduleId = Brand<string, "ScheduleId">;
/** A moment in log time, in whole milliseconds since 1970. */
export type Instant = Brand<number, "Instant">;
/** A span, in whole milliseconds. */
export type Duration = Brand<number, "Duration">;
/** The number of an event in the log, from 1; 0 is the empty log. */
export type Seq = Brand<number, "Seq">;

/** Text as the id of a task; nothing is checked. */
export const taskId = (text: string): TaskId => text as TaskId;
/** Text as the name of a project; nothing is checked. */
export const projectId = (text: string): ProjectId => text as ProjectId;
/** Text as the name of an agent; nothing is checked. */
export const agentId = (text: string): AgentId => text as AgentId;
/** Text as the id of a worker; nothing is checked. */
export const workerId = (text: string): WorkerId => text as WorkerId;
/** Text as the name of a gate; nothing is checked. */
export const gateId = (text: string): GateId => text as GateId;
/** Text as the id of a permit; nothing is checked. */
export const permitId = (text: string): PermitId => text as PermitId;
/** Milliseconds since 1970 as an instant; a fraction is cut off. */
export const instant = (milliseconds: number): Instant => Math.trunc(milliseconds) as Instant;
/** Milliseconds as a span; a fraction is cut off. */
export const milliseconds = (count: number): Duration => Math.trunc(count) as Duration;
/** Seconds as a span. */
export const seconds = (count: number): Duration => milliseconds(count * 1000);
/** A whole number as the number of an event. */
export const seq = (count: number): Seq => count as Seq;
export const after = (start: number, span: number): Instant => (start + span) as Instant;
