/**
 * `drover events`: the log as it is, and with --follow as it grows. With --json one event a line.
 */

import type { Client } from "../../client/index.ts";
import type { EventJson } from "../../protocol/index.ts";
import { EVENTS_MAX } from "../../protocol/wire/index.ts";
import { clientFor } from "../shell/connection.ts";
import type { Output } from "../shell/output.ts";
import { EXIT, type ExitCode } from "../shell/problem.ts";
import { interruptible } from "../shell/terminal.ts";
import { clip, padEnd, plain, type Tint } from "../shell/text.ts";
import { type Call, given, label, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { named, namedLive } from "./named.ts";

type Flags = {
  readonly after?: number;
  readonly follow?: boolean;
  readonly limit?: number;
  readonly label?: readonly string[];
};

export const eventsVerb: VerbBody<Flags> = {
  takes: [{ name: "[task]", about: "only of this task: its id, or PLAN/TASK" }],
  flags: [
    { flags: "--after <seq>", about: "events behind this number (default: from the beginning)", read: wholeNumber(0) },
    { flags: "-f, --follow", about: "go on with those to come, until Ctrl-C" },
    { flags: "-n, --limit <n>", about: "at most so many", read: wholeNumber(1) },
    { flags: "--label <key=value>", about: "only about tasks with this label; given again, with all", read: label },
  ],
  examples: [
    ["drover events --follow", "everything there was, then everything there will be"],
    ["drover events --after 4711 --limit 20", "the twenty events behind 4711"],
    ["drover events --follow --label team=web", "of the tasks with a label"],
    ["drover events release/ship", "of a task of a plan, on a server or run alone"],
    ["drover events --follow --json | jq 'select(.kind == \"task-failed\")'", "one JSON object a line, for programs"],
  ],
  run: (call) => (call.flags.follow === true ? follow(call) : past(call)),
};

async function past(call: Call<Flags>): Promise<ExitCode> {
  const { args, flags } = call;
  const [word] = args;
  const { calls, id } = word === undefined ? { calls: clientFor(call), id: undefined } : await named(call, word);
  for await (const event of pages(calls, flags, id)) print(event, call);
  return EXIT.ok;
}

/** What there is now, page by page. A pruned log begins later than asked. */
async function* pages(
  client: Pick<Client, "eventPage">,
  flags: Flags,
  task: string | undefined,
): AsyncGenerator<EventJson> {
  const { after = 0, limit = Number.POSITIVE_INFINITY, label: labels } = flags;
  let from: number | undefined = after;
  let left = limit;
  while (from !== undefined && left > 0) {
    const page = await client.eventPage({
      after: from,
      limit: Math.min(left, EVENTS_MAX),
      ...given({ label: labels, task }),
    });
    yield* page.events;
    left -= page.events.length;
    from = page.nextAfter;
  }
}

async function follow(call: Call<Flags>): Promise<ExitCode> {
  const { args, flags } = call;
  const { after = 0, limit = Number.POSITIVE_INFINITY, label: labels } = flags;
  const [word] = args;
  const { calls, id } = word === undefined ? { calls: clientFor(call), id: undefined } : await namedLive(call, word);
  return interruptible(call.terminal, async (signal) => {
    let count = 0;
    for await (const event of calls.events({ after, signal, ...given({ label: labels }) })) {
      if (id !== undefined && event.task !== id) continue;
      print(event, call);
      count += 1;
      if (count >= limit) break;
    }
    return EXIT.ok;
  });
}

const print = (event: EventJson, { output }: Call<Flags>): void => output.line(event, () => eventLine(event, output));

// ------- an event as one line; nothing here knows a kind of event, so one that is added tomorrow is shown as well

const VALUE_MAX = 60;
/** What stands in its own column, or says nothing to a person. */
const LEFT_OUT = new Set(["kind", "at", "task", "attempt", "bodyHash", "resultHash", "policyHash"]);

function eventLine(event: EventJson, output: Output): string {
  const { paint } = output;
  const facts = Object.entries(event.payload)
    .filter(([key, value]) => !LEFT_OUT.has(key) && isWorthShowing(value))
    .map(([key, value]) => `${key}=${clip(plain(shortly(value)), VALUE_MAX)}`);
  const what = [
    event.task ?? "",
    event.attempt === undefined || event.attempt === 0 ? "" : `attempt ${event.attempt}`,
    facts.join(" "),
  ].filter((part) => part !== "");
  const head = `${padEnd(`#${event.seq}`, 8)} ${event.at.replace("T", " ").replace("Z", "")}`;
  const line = `${head}  ${padEnd(event.kind, 18)} ${plain(what.join("  "))}`.trimEnd();
  const shown = output.width === null ? line : clip(line, output.width);
  const rest = shown.slice(head.length);
  const tint = tintOf(event.kind);
  return `${paint("dim", head)}${tint === null ? rest : paint(tint, rest)}`;
}

const isWorthShowing = (value: unknown): boolean =>
  value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);

const shortly = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function tintOf(kind: string): Tint | null {
  if (/-(done|opened|joined)$/.test(kind)) return "green";
  if (/-(failed|lost|throttled|expired)$/.test(kind)) return "red";
  if (/-(cancelled|skipped|paused|left)$/.test(kind)) return "yellow";
  return /-(assigned|running|started)$/.test(kind) ? "cyan" : null;
}
