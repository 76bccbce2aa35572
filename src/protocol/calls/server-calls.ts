/**
 * The calls about the scheduler as a whole, its events, and the server itself.
 */

import * as s from "../schema/schema.ts";
import * as event from "../shapes/events.ts";
import * as scheduler from "../shapes/scheduler.ts";
import type { Role } from "../wire/role.ts";
import { type Call, call } from "./call.ts";

type Nothing = Record<never, never>;
export type ServerCalls = {
  readonly stats: Call<Nothing, scheduler.Stats>;
  readonly queue: Call<Nothing, scheduler.QueueView>;
  readonly config: Call<Nothing, scheduler.SchedulerConfig>;
  readonly patchConfig: Call<{ body: scheduler.ConfigPatchBody }, scheduler.SchedulerConfig>;
  readonly reload: Call<Nothing, scheduler.SchedulerConfig>;
  readonly pause: Call<{ body: scheduler.PauseBody }, scheduler.PauseStatus>;
  readonly resume: Call<{ body: scheduler.PauseBody }, scheduler.PauseStatus>;
  readonly events: Call<{ query: event.EventsQuery }, event.EventPage>;
  readonly health: Call<Nothing, event.Health>;
  readonly ready: Call<Nothing, event.Readiness>;
  readonly metrics: Call<Nothing, string>;
  readonly openapi: Call<Nothing, Readonly<Record<string, unknown>>>;
};

const ADMIN: readonly Role[] = ["admin"];
const READERS: readonly Role[] = ["admin", "agent", "viewer"];
const WATCHERS: readonly Role[] = ["admin", "viewer"];

const schedulerCalls: Pick<ServerCalls, "stats" | "queue" | "config" | "patchConfig" | "reload" | "pause" | "resume"> =
  {
    stats: call("stats", {
      tag: "scheduler",
      roles: READERS,
      summary: "Queues, totals and the rules in force",
      answers: { 200: scheduler.stats },
    }),
    queue: call("queue", {
      tag: "scheduler",
      roles: READERS,
      summary: "Who waits, by project and agent, with the head of each queue; bounded",
      answers: { 200: scheduler.queueView },
    }),
    config: call("config", {
      tag: "scheduler",
      roles: READERS,
      summary: "The scheduler section in force",
      answers: { 200: scheduler.schedulerConfig },
    }),
    patchConfig: call("patchConfig", {
      tag: "scheduler",
      roles: ADMIN,
      body: scheduler.configPatchBody,
      needsBody: true,
      summary: "Change fields of the scheduler section",
      description: "Field by field, judged as a whole, all or nothing. It lies over the file and survives a restart.",
      answers: { 200: scheduler.schedulerConfig },
    }),
    reload: call("reload", {
      tag: "scheduler",
      roles: ADMIN,
      summary: "Read the config file again; a bad file changes nothing",
      answers: { 200: scheduler.schedulerConfig },
    }),
    pause: call("pause", {
      tag: "scheduler",
      roles: ADMIN,
      body: scheduler.pauseBody,
      summary: "Start nothing more: of the fleet, a project or a task; what runs goes on",
      answers: { 200: scheduler.pauseStatus },
      errors: ["not_found", "conflict"],
    }),
    resume: call("resume", {
      tag: "scheduler",
      roles: ADMIN,
      body: scheduler.pauseBody,
      summary: "Take a pause back",
      answers: { 200: scheduler.pauseStatus },
      errors: ["not_found", "conflict"],
    }),
  };

export const SERVER_CALLS: ServerCalls = {
  ...schedulerCalls,
  events: call("events", {
    tag: "events",
    roles: WATCHERS,
    query: event.eventsQuery,
    summary: "The events of the log with their hashes: a page of JSON, or a stream",
    description:
      "With Accept: text/event-stream it follows the log. Each message has the event's number as its id and its kind " +
      "as its event; Last-Event-ID (or after) says where to go on.",
    answers: { 200: event.eventPage },
  }),
  health: call("health", {
    tag: "server",
    roles: null,
    summary: "Whether the process is alive",
    answers: { 200: event.health },
  }),
  ready: call("ready", {
    tag: "server",
    roles: null,
    summary: "Whether it takes work: 503 while it starts or shuts down, or when its log has failed",
    answers: { 200: event.readiness },
    errors: ["log_failed", "deposed"],
  }),
  metrics: call("metrics", {
    tag: "server",
    roles: WATCHERS,
    summary: "Numbers for Prometheus",
    answers: { 200: s.text(0, 100_000_000) },
  }),
  openapi: call("openapi", {
    tag: "server",
    roles: null,
    summary: "This document",
    answers: { 200: s.anyObject() },
  }),
};
