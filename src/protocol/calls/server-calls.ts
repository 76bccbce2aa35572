/**
 * The calls about the server itself, and about the cluster that it is a node of.
 */
import type * as wire from "../generated/index.ts";
import * as s from "../schema/schema.ts";
import { clusterView } from "../shapes/cluster.ts";
import * as event from "../shapes/events.ts";
import { type Call, callsOf } from "./call.ts";
import { WATCHERS } from "./roles.ts";

type Nothing = Record<never, never>;
export type ServerCalls = {
  readonly health: Call<Nothing, wire.Health>;
  readonly ready: Call<Nothing, wire.Readiness>;
  readonly metrics: Call<Nothing, string>;
  readonly openapi: Call<Nothing, Readonly<Record<string, unknown>>>;
};
export type ClusterCalls = { readonly cluster: Call<Nothing, wire.ClusterView> };

export const clusterCalls: ClusterCalls = callsOf<ClusterCalls>("server", {
  cluster: {
    roles: WATCHERS,
    summary: "The nodes of the cluster, how far each is, and the health of their journal",
    description:
      "As the node that answers sees them. One with another hash at an event that both have is flagged by differs. A " +
      "server that is no node of a cluster answers 404.",
    answers: { 200: clusterView },
    errors: ["not_found", "log_failed"],
  },
});

export const serverCalls: ServerCalls = callsOf<ServerCalls>("server", {
  health: { roles: null, summary: "Whether the process is alive", answers: { 200: event.health } },
  ready: {
    roles: null,
    summary: "Whether it takes work: 503 while it starts or shuts down, or when its log has failed",
    description: "A node of a cluster takes work if it leads, or follows and keeps up.",
    answers: { 200: event.readiness },
    errors: ["log_failed", "deposed", "no_leader", "behind"],
  },
  metrics: { roles: WATCHERS, summary: "Numbers for Prometheus", answers: { 200: s.text(0, 100_000_000) } },
  openapi: { roles: null, summary: "This document", answers: { 200: s.anyObject() } },
});
