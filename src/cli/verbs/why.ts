/**
 * `drover why ID`: every condition between a task and its start, now or as of an event in the past; with the numbers
 * that decide, who is ahead, and when it could start.
 *
 * What holds it is what a person came for; the conditions that are met are listed on request. Beside an instant stands
 * how far away it is.
 */
import type { WhyAnswer, WhyCondition } from "../../protocol/index.ts";
import { clientFor, idOf } from "../shell/connection.ts";
import type { Output } from "../shell/output.ts";
import { asTyped, EXIT } from "../shell/problem.ts";
import { asWord, padEnd, plain, widthOf, wrapLine } from "../shell/text.ts";
import { given, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { namesAround, whyByName } from "../show/plan-names.ts";
import { age, count } from "../show/time.ts";
import { named, TASK_ARGUMENT } from "./named.ts";

type Flags = { readonly at?: number; readonly all?: boolean };

export const whyVerb: VerbBody<Flags> = {
  takes: [{ name: "<id>", about: TASK_ARGUMENT }],
  flags: [
    { flags: "--at <seq>", about: "as of this event (drover events shows their numbers)", read: wholeNumber(1) },
    { flags: "--all", about: "every condition, also those that are met, and counters that are zero" },
  ],
  examples: [
    ["drover why tsk_12", "what it waits for, who is ahead, when it could start"],
    ["drover why tsk_12 --at 4711", "the same as of event 4711"],
    ["drover why release/ship", "of a task of a plan, on a server or run alone"],
  ],
  run: async (call) => {
    const word = idOf(call);
    const { calls, id, ...known } = await named(call, word);
    const answer = await calls.why(id, given({ at: call.flags.at }));
    const { isJson } = call.output;
    const names = known.names ?? (isJson ? new Map() : await namesAround(clientFor(call), id));
    // Its id alone does not say which run has it: to approve it, it is named as here.
    const asNamed = (text: string): string =>
      asTyped(text.replaceAll(`drover approve ${id}`, () => `drover approve ${asWord(names.get(id) ?? word)}`));
    const conditions = answer.conditions.map((one) => ({ ...one, detail: asNamed(one.detail) }));
    const shown = whyByName({ ...answer, summary: asNamed(answer.summary), conditions }, names);
    call.output.answer(answer, () => whyPicture(shown, call.output, call.flags.all === true ? "all" : "; see --all"));
    return EXIT.ok;
  },
};

const OPEN = "✔";
const SHUT = "✘";
const TEXT_MIN = 30;
const BELOW = "    ";
const NEVER_MS = 5 * 365 * 24 * 3_600_000;
const INSTANT = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z(?!\w)/g;

/** What holds it; of what does not, all, or how many there are and how they are seen. */
export function whyPicture(why: WhyAnswer, output: Output, met: string): string {
  const all = met === "all";
  const shut = why.conditions.filter((condition) => !condition.ok);
  const open = why.conditions.filter((condition) => condition.ok);
  const width = Math.max(0, ...(all ? why.conditions : shut).map(({ code }) => widthOf(code)));
  const block = (conditions: readonly WhyCondition[]): string =>
    conditions
      .map((condition) => conditionLines(condition, { width, output, all, isWell: isWell(condition, why) }))
      .join("");
  return [
    headLines(why, output),
    shut.length === 0 ? "" : `\n${block(shut)}`,
    open.length === 0 ? "" : `\n${all ? block(open) : metLine(open.length, shut.length, met, output)}`,
    aheadLines(why, output),
    startLines(why, shut, output),
  ].join("");
}

function metLine(open: number, shut: number, how: string, { paint, width }: Output): string {
  const others = shut === 0 ? "" : "other ";
  const words = open === 1 ? `1 ${others}condition is met` : `${open} ${others}conditions are met`;
  const lines = wrapLine(`  ${words}${how}`, width ?? Number.POSITIVE_INFINITY);
  return `${lines.map((line) => paint("dim", line)).join("\n")}\n`;
}

/** The first words are the task's id, painted after the lines are made: colours take no room. */
function headLines({ task, state, summary }: WhyAnswer, { paint, width, now }: Output): string {
  const id = plain(task);
  const [first = "", ...rest] = wrapLine(
    `${id} is ${state}. ${plain(inTime(summary, now()))}`,
    width ?? Number.POSITIVE_INFINITY,
  );
  const head = first.startsWith(id) ? paint("bold", id) + first.slice(id.length) : first;
  return `${[head, ...rest].join("\n")}\n`;
}

/** It need not start any more: what runs or is done is as it should be, and no red mark stands before it. */
const isWell = ({ ok, code }: WhyCondition, { state }: WhyAnswer): boolean =>
  ok || code === "running" || (code === "ended" && state === "done");

function conditionLines(
  condition: WhyCondition,
  { width, output, all, isWell }: { width: number; output: Output; all: boolean; isWell: boolean },
): string {
  const { paint } = output;
  const now = output.now();
  const mark = isWell ? paint("green", OPEN) : paint("red", SHUT);
  const indent = " ".repeat(width + 6);
  const columns = output.width ?? Number.POSITIVE_INFINITY;
  // On a narrow screen the text goes below the name of the condition, and not beside it.
  const isNarrow = columns - indent.length < TEXT_MIN;
  const room = columns - (isNarrow ? BELOW.length : indent.length);
  const text = wrapLine(plain(inTime(condition.detail, now)), room);
  const numbers = numbersOf(condition, now, all);
  const dim = numbers === "" || condition.ok ? [] : wrapLine(numbers, room).map((line) => paint("dim", line));
  if (isNarrow) return [`  ${mark} ${condition.code}`, ...[...text, ...dim].map((line) => BELOW + line), ""].join("\n");
  const [first = "", ...rest] = text;
  const lines = [...rest, ...dim].map((line) => indent + line);
  return [`  ${mark} ${padEnd(condition.code, width)}  ${first}`, ...lines, ""].join("\n");
}

/** What is zero says nothing that the sentence does not. */
function numbersOf({ numbers }: WhyCondition, now: number, all: boolean): string {
  return Object.entries(numbers)
    .filter(([, value]) => value !== null && (all || value !== 0) && !isNever(value, now))
    .map(([key, value]) => `${key} ${typeof value === "number" ? count(value) : shownText(value ?? "", now)}`)
    .join(", ");
}

/** A budget without a window ends its window in many years: that is no answer to when. */
const isNever = (value: unknown, now: number): boolean => isInstant(value) && Date.parse(value) - now > NEVER_MS;

/** An instant is shown by how far it is away: the sentence above it has it whole. */
const shownText = (value: string, now: number): string => (isInstant(value) ? age(value, now) : plain(value));

/** A sentence in which each instant is written for people. */
const inTime = (sentence: string, now: number): string =>
  sentence.replaceAll(INSTANT, (instant) => `${instant} (${age(instant, now)})`);

function aheadLines({ ahead }: WhyAnswer, output: Output): string {
  if (ahead.count === 0 && ahead.next.length === 0) return "";
  const own = ahead.count === 1 ? "1 task of its agent is" : `${count(ahead.count)} tasks of its agent are`;
  const head = ahead.count === 0 ? "Before it:" : `Before it: ${own} ahead.`;
  const rows = ahead.next.map(({ task, agent, reason }) => {
    const whose = `  ${plain(task)} of ${plain(agent)}`;
    const because = plain(reason);
    const room = output.width ?? Number.POSITIVE_INFINITY;
    if (widthOf(whose) + 2 + widthOf(because) <= room) return `${whose}  ${output.paint("dim", because)}\n`;
    const below = wrapLine(because, room - BELOW.length).map((line) => `${BELOW}${output.paint("dim", line)}\n`);
    return `${whose}\n${below.join("")}`;
  });
  const shown = wrapLine(head, output.width ?? Number.POSITIVE_INFINITY).join("\n");
  return `\n${shown}\n${rows.join("")}`;
}

function startLines({ state, earliestStart }: WhyAnswer, shut: readonly WhyCondition[], output: Output): string {
  if (state !== "waiting" && state !== "queued") return "";
  if (earliestStart === undefined && shut.length === 0) return "";
  const { width, now } = output;
  const opens = shut.map(({ numbers }) => numbers.until).filter((until) => isInstant(until) && !isNever(until, now()));
  const last = earliestStart ?? opens.toSorted().at(-1);
  const rest = earliestStart === undefined ? ", if others let it: it depends on them too." : "";
  const away = last === undefined ? "" : age(String(last), now());
  const start =
    last === undefined
      ? "not known, since it depends on others and not on the clock alone."
      : `${last}${away === "" ? "" : ` (${away})`}${rest}`;
  return `\n${wrapLine(`Earliest start: ${start}`, width ?? Number.POSITIVE_INFINITY).join("\n")}\n`;
}

const isInstant = (value: unknown): value is string => typeof value === "string" && value.replace(INSTANT, "") === "";
