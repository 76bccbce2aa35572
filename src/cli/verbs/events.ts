/**
 * `drover events`: the log as it is, and with --follow as it grows. With --json one event a line.
 */

import type { Client } from "../../client/index.ts";
import type { EventJson, EventsQuery } from "../../protocol/index.ts";
import { EVENTS_MAX, givenBackInWords, NOT_BEGUN, reasonInWords } from "../../protocol/wire/index.ts";
import { clientFor } from "../shell/connection.ts";
import type { Output } from "../shell/output.ts";
import { EXIT, type ExitCode, usageProblem } from "../shell/problem.ts";
import { interruptible } from "../shell/terminal.ts";
import { clip, clipMiddle, padEnd, plain, type Tint, widthOf } from "../shell/text.ts";
import { type Call, given, label, several, type VerbBody, wholeNumber } from "../shell/verb.ts";

import { named, namedLive } from "./named.ts";
import { type SinceFlags, sinceFlag, sinceFrom } from "./pages.ts";

type Flags = SinceFlags & {
  readonly after?: number;
  readonly follow?: boolean;
  readonly limit?: number;
  readonly last?: number;
  readonly task?: string;
  readonly kind?: readonly string[];
  readonly label?: readonly string[];
};
type Filter = Pick<EventsQuery, "task" | "kind" | "label" | "since">;

/** How many of the last events are looked through at first for those that are wanted. */
const LOOKED_AT_FIRST = 1000;

export const eventsVerb: VerbBody<Flags> = {
  takes: [{ name: "[task]", about: "only of this task: its id, or PLAN/TASK" }],
  flags: [
    { flags: "--task <id>", about: "only about this task" },
    { flags: "--kind <kinds>", about: "only of these kinds, such as task-failed", read: several },
    { flags: "--label <key=value>", about: "only about tasks with this label; given again, with all", read: label },
    sinceFlag("happened"),
    {
      flags: "--last <n>",
      about: "only the last so many; with --follow, begin with them",
      read: wholeNumber(1, 100_000),
    },
    { flags: "--after <seq>", about: "events behind this number (default: from the beginning)", read: wholeNumber(0) },
    { flags: "-f, --follow", about: "go on with those to come, until Ctrl-C" },
    { flags: "-n, --limit <n>", about: "at most so many", read: wholeNumber(1) },
  ],
  examples: [
    ["drover events --last 20 --follow", "the last twenty, then everything there will be"],
    ["drover events --task tsk_7", "what happened to a task"],
    ["drover events --kind task-failed,attempt-lost --since 8h", "what went wrong overnight"],
    ["drover events --after 4711 --limit 20", "the twenty events behind 4711"],
    ["drover events --follow --label team=web", "of the tasks with a label"],
    ["drover events release/ship", "of a task of a plan, on a server or run alone"],
    ["drover events --follow --json | jq 'select(.kind == \"task-failed\")'", "one JSON object a line, for programs"],
  ],
  run: async (call) => {
    const { last, limit, follow: goesOn } = call.flags;
    if (last !== undefined && limit !== undefined)
      throw usageProblem("--last and --limit were both given", "give --last for the newest, or --limit for the first");
    const word = wordIn(call);
    if (goesOn === true) {
      const live = word === undefined ? { calls: clientFor(call), id: undefined } : await namedLive(call, word);
      return follow(call, live.calls, filterFrom(call, live.id));
    }
    const { calls, id } = word === undefined ? { calls: clientFor(call), id: undefined } : await named(call, word);
    const filter = filterFrom(call, id);
    const events = last === undefined ? pages(calls, filter, call.flags) : lastOf(calls, filter, call.flags, last);
    let count = 0;
    for await (const event of events) {
      print(event, call);
      count += 1;
    }
    // Nothing has happened to a task that is not there, and its name may be wrong: this says so.
    if (count === 0 && id !== undefined) await calls.task(id);
    return EXIT.ok;
  },
};

/** A task may be named as the argument or by --task. */
function wordIn({ args: [word], flags: { task } }: Call<Flags>): string | undefined {
  if (word !== undefined && task !== undefined && word !== task)
    throw usageProblem(`the task is ${word}, and --task ${task}`, "name one task");
  return word ?? task;
}

/** An unknown kind is refused by the server, which knows them all. */
function filterFrom({ flags, terminal }: Call<Flags>, task: string | undefined): Filter {
  const { kind, label: labels } = flags;
  const since = sinceFrom(flags, terminal.now());
  return given({ task, kind: kind as Filter["kind"], label: labels, since });
}

/** What there is now, page by page, from the first that the log still has. */
async function* pages(
  calls: Pick<Client, "eventPage">,
  filter: Filter,
  { after, limit = Number.POSITIVE_INFINITY }: Pick<Flags, "after" | "limit">,
): AsyncGenerator<EventJson> {
  let from = after;
  let left = limit;
  do {
    const size = Math.min(left, EVENTS_MAX);
    const page = await calls.eventPage({ ...filter, ...given({ after: from }), limit: size });
    yield* page.events;
    left -= page.events.length;
    from = page.nextAfter;
  } while (from !== undefined && left > 0);
}

/** What answers: a server, or the log of a plan that ran alone, which is short and read whole. */
type Source = Pick<Client, "eventPage"> & Partial<Pick<Client, "ready">>;

/** The last so many. They are looked for from the end of the log, further back each time, until there are enough. */
async function* lastOf(
  calls: Source,
  filter: Filter,
  { after: from }: Pick<Flags, "after">,
  wanted: number,
): AsyncGenerator<EventJson> {
  const { since } = filter;
  const begin = await calls.eventPage({ ...given({ after: from, since }), limit: 1 });
  const first = begin.events[0]?.seq;
  if (first === undefined) return;
  const head = (await calls.ready?.())?.seq ?? 0;
  for (let looked = Math.max(LOOKED_AT_FIRST, wanted); ; looked *= 4) {
    const after = Math.max(first - 1, head - looked);
    const found: EventJson[] = [];
    for await (const event of pages(calls, filter, { after })) {
      found.push(event);
      if (found.length > wanted) found.shift();
    }
    if (found.length < wanted && after >= first) continue;
    return yield* found;
  }
}

function follow(call: Call<Flags>, client: Client, filter: Filter): Promise<ExitCode> {
  const { after, last, limit = Number.POSITIVE_INFINITY } = call.flags;
  return interruptible(call.terminal, async (signal) => {
    let [from, count] = [after, 0];
    if (last !== undefined) {
      from = (await client.ready()).seq;
      for await (const event of lastOf(client, filter, call.flags, last)) {
        print(event, call);
        from = Math.max(from, event.seq);
      }
    }
    for await (const event of client.events({ ...filter, ...given({ after: from }), signal })) {
      print(event, call);
      count += 1;
      if (count >= limit) break;
    }
    return EXIT.ok;
  });
}

const print = (event: EventJson, { output }: Call<Flags>): void => output.line(event, () => eventLine(event, output));

// ------- an event as one line; few kinds are known here, so one that is added tomorrow is shown as well

const VALUE_MAX = 60;
/** In fewer columns the day and the middle of a long id give way to what happened. */
const WIDE = 100;
const NARROW_ID_MAX = 24;
/** What stands in its own column, or says nothing to a person. */
const LEFT_OUT = new Set(["kind", "at", "task", "attempt", "bodyHash", "resultHash", "policyHash", "key"]);

export function eventLine(event: EventJson, { paint, width }: Pick<Output, "paint" | "width">): string {
  const isNarrow = width !== null && width < WIDE;
  const id = event.task ?? "";
  const { text, without, isCalm } = inWords(event);
  const facts = Object.entries(event.payload)
    .filter(([key, value]) => !LEFT_OUT.has(key) && !without.includes(key) && isWorthShowing(value))
    .map(([key, value]) => (key === "restUntil" ? restOf(value, event.at) : factOf(key, value)))
    .filter((fact) => fact !== "");
  const what = [
    isNarrow ? clipMiddle(id, NARROW_ID_MAX) : id,
    event.attempt === undefined || event.attempt === 0 ? "" : `attempt ${event.attempt}`,
    text,
    facts.join(" "),
  ].filter((part) => part !== "");
  const at = isNarrow ? event.at.slice(11, 19) : event.at.replace("T", " ").replace("Z", "");
  const head = `${padEnd(`#${event.seq}`, 8)} ${at}`;
  const line = `${head}  ${padEnd(event.kind, 19)} ${plain(what.join("  "))}`.trimEnd();
  const shown = width === null ? line : clip(line, width);
  const rest = shown.slice(head.length);
  const tint = isCalm ? "dim" : tintOf(event.kind);
  return `${paint("dim", head)}${tint === null ? rest : paint(tint, rest)}`;
}

/** What is said of an event, and which of its facts that makes needless. */
type Told = {
  readonly text: string;
  readonly without: readonly string[];
  /** Nobody is to be warned, though its kind is one that warns. */
  readonly isCalm?: true;
};
const NOTHING: Told = { text: "", without: [] };
const OF_LOSS = ["cause", "reason", "tokens", "estimate", "restUntil"] as const;

/** Few kinds have words of their own: those whose facts are no facts to a person. */
function inWords({ payload }: EventJson): Told {
  switch (payload.kind) {
    case "task-assigned": {
      const text = `given to ${payload.worker}, ${reasonInWords(payload.reason)}`;
      return { text, without: ["worker", "reason", "rank"] };
    }
    case "attempt-lost": {
      const reason = payload.reason === null ? null : clip(plain(payload.reason), VALUE_MAX);
      const text = givenBackInWords({ cause: payload.cause, reason });
      return text === null ? NOTHING : { text, without: OF_LOSS, isCalm: true };
    }
    case "attempt-stopped":
      return payload.unbegun ? { text: NOT_BEGUN, without: ["tokens", "unbegun"] } : { text: "", without: ["unbegun"] };
    default:
      return NOTHING;
  }
}

/** Until when its task rests, as an instant; a rest that is none says nothing. */
const restOf = (until: unknown, at: string): string =>
  Number(until) > Date.parse(at) ? `restUntil=${new Date(Number(until)).toISOString()}` : "";

const isWorthShowing = (value: unknown): boolean =>
  value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);

/** `weight=3`; of what has parts as many as there is room for, each whole: `settings.weight=3 settings.hold=false …` */
function factOf(key: string, value: unknown): string {
  const parts = partsOf(key, value);
  const [only = ""] = parts;
  if (parts.length === 1) return clip(only, key.length + 1 + VALUE_MAX);
  const fits = parts.filter((_, index) => widthOf(parts.slice(0, index + 1).join(" ")) <= VALUE_MAX);
  if (parts.length > 0 && fits.length === 0) return `${key}=…`;
  return [...fits, ...(fits.length < parts.length ? ["…"] : [])].join(" ");
}

function partsOf(key: string, value: unknown): readonly string[] {
  if (!isWorthShowing(value)) return [];
  if (Array.isArray(value) && value.every((one) => typeof one !== "object"))
    return [`${key}=${plain(value.join(","))}`];
  if (Array.isArray(value)) return [`${key}=${value.length}`];
  if (typeof value === "object")
    return Object.entries(value as object).flatMap(([name, one]) => partsOf(`${key}.${name}`, one));
  return [`${key}=${plain(typeof value === "number" ? String(Number(value.toFixed(3))) : String(value))}`];
}

function tintOf(kind: string): Tint | null {
  if (/-(done|opened|joined)$/.test(kind)) return "green";
  if (/-(failed|lost|throttled|expired)$/.test(kind)) return "red";
  if (/-(cancelled|skipped|paused|left)$/.test(kind)) return "yellow";
  return /-(assigned|running|started)$/.test(kind) ? "cyan" : null;
}
