/**
 * The client of the service: `createClient`, its error, and the types of what goes over the wire.
 */

export type * as wire from "../protocol/generated/index.ts";
export type { AnyParams, SharedCalls, TasksFilter } from "../protocol/index.ts";
export { addressFromEnv, DEFAULT_URL } from "./addresses.ts";
export type { CallOptions } from "./call-options.ts";
export { type Client, createClient, type WaitOptions } from "./client.ts";
export { ClientError, type ClientErrorCode } from "./client-error.ts";
export type { Fetch, Fetched, FetchedHeaders, FetchRequest } from "./fetch.ts";
export type { ClientFiles } from "./files.ts";
export type { FollowOptions } from "./follow-events.ts";
export type { ClientOptions } from "./read-options.ts";
