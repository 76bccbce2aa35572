/**
 * The calls of those who look on: pages, dashboards, `drover top`.
 */
import type * as wire from "../generated/index.ts";
import * as watching from "../shapes/watching.ts";
import { type Call, callsOf, type Id } from "./call.ts";
import { EVERYBODY, idOf, READERS, WATCHERS } from "./roles.ts";

type Nothing = Record<never, never>;
export type LinkCalls = { readonly links: Call<{ params: Id; query: wire.LinksQuery }, wire.TaskLinks> };
export type HistoryCalls = {
  readonly history: Call<{ query: wire.HistoryQuery }, wire.History>;
  readonly stuck: Call<Nothing, wire.Stuck>;
};
export type PulseCalls = {
  readonly whoami: Call<Nothing, wire.WhoAmI>;
  readonly pulse: Call<Nothing, wire.Pulse>;
  readonly settings: Call<Nothing, wire.SettingsView>;
  readonly verify: Call<Nothing, wire.Verified>;
};
export type WatchCalls = LinkCalls & HistoryCalls & PulseCalls;

export const watchCalls: WatchCalls = {
  ...callsOf<LinkCalls>("tasks", {
    links: {
      roles: READERS,
      params: idOf("task"),
      query: watching.linksQuery,
      summary: "What a task waits for, and what waits for it",
      description:
        "Its parent and needs, its children and those that need it, each with where it stands. A task that " +
        "needs it is listed until it has heard of its end. Of very many a part is listed: ask again with upSkip and " +
        "downSkip for the next. Where the record of the task has expired (resultTtl), up is what its body names, and " +
        "down has only children whose own records are still there.",
      answers: { 200: watching.taskLinks },
      errors: ["not_found"],
    },
  }),
  ...callsOf<HistoryCalls>("scheduler", {
    history: {
      roles: READERS,
      query: watching.historyQuery,
      summary: "How things stood, every ten seconds of the last six hours",
      description:
        "Totals only rise, so the difference of two samples is what happened between them. A token that is scoped " +
        "sees its own projects beside the totals of all.",
      answers: { 200: watching.history },
    },
    stuck: {
      roles: READERS,
      summary: "Queued tasks that need a person: those that can never run here, and those that wait too long",
      answers: { 200: watching.stuck },
    },
  }),
  ...callsOf<PulseCalls>("server", {
    whoami: {
      roles: EVERYBODY,
      summary: "Who the token speaks for",
      answers: { 200: watching.whoAmI },
    },
    pulse: {
      roles: READERS,
      summary: "Whether anything has happened, and how much waits and runs: once, or as a stream",
      description:
        "With Accept: text/event-stream a message comes when something has changed, at most once a second: for pages " +
        "that look again then, which costs the server far less than following every event.",
      answers: { 200: watching.pulse },
    },
    settings: {
      roles: WATCHERS,
      summary: "Every knob in force, and who set it",
      description:
        "What drover config show --effective --origins would print of this server as it runs now, with what it was " +
        "patched with. Secrets are left out. On a node of a cluster these are the knobs in force in the cluster; " +
        "own has what the node's own config says otherwise.",
      answers: { 200: watching.settingsView },
    },
    verify: {
      roles: WATCHERS,
      summary: "Hash the whole log anew, and say up to where it is as it was written",
      description:
        "It takes as long as the log is, about a second for half a million events; calls at the same time share one " +
        "reading. A node of a cluster also compares its history with what the others have signed. " +
        "Who doubts the server itself runs drover verify over its data directory instead.",
      answers: { 200: watching.verified },
    },
  }),
};
