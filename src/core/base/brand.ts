/**
 * Ids and units that cannot be mixed up.
 *
 * A brand exists for the compiler only: at run time a TaskId is a string and an Instant is a number.
 * Instants are whole milliseconds since 1970 in log time, spans are whole milliseconds, and a Seq is
 * the number of an event in the log: its identity and the only logical clock there is.
 */

declare const brand: unique symbol;
type Brand<Base, Name extends string> = Base & { readonly [brand]: Name };

export type TaskId = Brand<string, "TaskId">;
export type ProjectId = Brand<string, "ProjectId">;
export type AgentId = Brand<string, "AgentId">;
export type WorkerId = Brand<string, "WorkerId">;
/** Whom a task waits for: one worker, or any of a zone. */
export type ZonePin = Brand<string, "ZonePin">;
export type Pin = WorkerId | ZonePin;
export type GateId = Brand<string, "GateId">;
export type PermitId = Brand<string, "PermitId">;
export type ScheduleId = Brand<string, "ScheduleId">;
/** A moment in log time, in whole milliseconds since 1970. */
export type Instant = Brand<number, "Instant">;
/** A span, in whole milliseconds. */
export type Duration = Brand<number, "Duration">;
/** The number of an event in the log, from 1; 0 is the empty log. */
export type Seq = Brand<number, "Seq">;

export const taskId = (text: string): TaskId => text as TaskId;
export const projectId = (text: string): ProjectId => text as ProjectId;
export const agentId = (text: string): AgentId => text as AgentId;
export const workerId = (text: string): WorkerId => text as WorkerId;
export const gateId = (text: string): GateId => text as GateId;
export const permitId = (text: string): PermitId => text as PermitId;
export const instant = (milliseconds: number): Instant => Math.trunc(milliseconds) as Instant;
export const milliseconds = (count: number): Duration => Math.trunc(count) as Duration;
export const seconds = (count: number): Duration => milliseconds(count * 1000);
export const seq = (count: number): Seq => count as Seq;
export const after = (start: number, span: number): Instant => (start + span) as Instant;
