/**
 * One shape for every verb of `drover`: what it is called, what it takes, examples, and what it does.
 *
 * A verb is data and one function. The function is handed a call (its arguments, its flags, a terminal, a client) and
 * answers an exit code. So every verb has --json, --url, help with examples and the same way of failing without a line
 * of its own, and a test calls it like any function. The table of verbs has the name and the summary of each; the rest
 * is loaded when it is asked for.
 */
import type { Command } from "commander";
import { SPAN_UNITS, unitAdvice } from "../../std/span-text.ts";
import type { Output } from "./output.ts";
import type { ExitCode } from "./problem.ts";
import type { Terminal } from "./terminal.ts";

/** The flags every verb has. */
export type GlobalFlags = { readonly json?: boolean; readonly url?: string; readonly color?: boolean };

export type Call<Flags = Readonly<Record<string, unknown>>> = {
  readonly args: readonly string[];
  readonly flags: Flags & GlobalFlags;
  readonly terminal: Terminal;
  readonly output: Output;
  /** The whole command line, for completion and help. */
  readonly program: () => Promise<Program>;
};

/** All verbs as commands of commander; one that is not loaded has only a name and a summary. */
export type Program = {
  readonly root: Command;
  readonly load: (command: Command) => Promise<void>;
  readonly verbs: readonly ListedVerb[];
};

export type FlagSpec = {
  /** As commander writes it: `-p, --project <name>`. */
  readonly flags: string;
  readonly about: string;
  /** Turns the text into a value, or throws `BadValue` with what would be right. */
  readonly read?: (text: string, before: unknown) => unknown;
} & Words;

type Words = {
  /** The only words that are right. */
  readonly choices?: readonly string[];
  /** Words that completion offers; others may be right too. */
  readonly words?: readonly string[];
};
export type ArgumentSpec = Words & { readonly name: string; readonly about: string };

/** What a verb takes and does. */
export type VerbBody<Flags = Readonly<Record<string, unknown>>> = {
  /** What the help says below the summary. */
  readonly about?: string;
  /** Names as commander writes them: `<id>`, `[ids...]`. */
  readonly takes?: readonly ArgumentSpec[];
  readonly flags?: readonly FlagSpec[];
  readonly examples?: readonly (readonly [command: string, meaning: string])[];
  readonly verbs?: readonly Verb<never>[];
  /** Flags it does not know are its arguments: they belong to a program it starts. */
  readonly passesOn?: boolean;
  readonly run?: (call: Call<Flags>) => Promise<ExitCode> | ExitCode;
};

type Named = { readonly name: string; readonly summary: string };
export type Verb<Flags = Readonly<Record<string, unknown>>> = Named & VerbBody<Flags>;
/** A verb in the table. */
export type ListedVerb = Named & { readonly group?: string; readonly load: () => Promise<VerbBody<never>> };

/** The flags every verb has, as it is called. */
export const GLOBAL_FLAGS: readonly FlagSpec[] = [
  { flags: "--json", about: "answer in JSON, for programs" },
  {
    flags: "--url <url>",
    about: "the server, or nodes of a cluster with commas (default: $DROVER_URL, ./.drover's, http://127.0.0.1:4747)",
  },
  { flags: "--no-color", about: "no colours, also on a terminal" },
];

/** Of verbs that read the config of a server. */
export type ConfigFlags = { readonly config?: string; readonly set?: readonly string[] };

export const CONFIG_FLAGS: readonly FlagSpec[] = [
  { flags: "-c, --config <file>", about: "read this file instead of ./drover.yml" },
  {
    flags: "--set <path=value>",
    about: "set one knob, such as scheduler.maxInFlight=10; may be given again",
    read: each,
  },
];

/** Only the fields that have a value: a call says no more than the person did. */
export function given<Fields extends object>(
  fields: Fields,
): { readonly [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}

// ------------------------------------------------------------- flags as values

/** The value of a flag is wrong; the message says what would be right. */
export class BadValue extends Error {}

const numeric =
  (expected: string, form: RegExp, isRight: (value: number) => boolean) =>
  (text: string): number => {
    const value = Number(text);
    if (form.test(text) && isRight(value)) return value;
    throw new BadValue(`It must be ${expected}.`);
  };

export const wholeNumber = (min: number, max: number = Number.MAX_SAFE_INTEGER): ((text: string) => number) =>
  numeric(`a whole number from ${min} to ${max}`, /^-?\d+$/, (value) => value >= min && value <= max);

export const number = (min: number, max: number = Number.MAX_VALUE): ((text: string) => number) =>
  numeric(`a number from ${min} to ${max}`, /\S/, (value) => value >= min && value <= max);

export const numberAbove = (bound: number, max: number): ((text: string) => number) =>
  numeric(`a number above ${bound} and at most ${max}`, /\S/, (value) => value > bound && value <= max);

/** `30s`, `5m`, `250ms`; zero is zero in every unit. */
export function milliseconds(text: string): number {
  const [, digits = "", unit] = /^(\d{1,12})(ms|s|m|h|d)?$/.exec(text) ?? [];
  const advice = unitAdvice(text);
  if (advice !== null) throw new BadValue(`It must be a span, and this one ${advice}.`);
  if (digits === "") throw new BadValue("It must be a span such as 250ms, 30s, 5m, 24h.");
  return Number(digits) * (SPAN_UNITS[unit ?? "ms"] ?? 1);
}

/** `512MiB`, `2GB`, or bytes. */
export function byteCount(text: string): number {
  const [, digits = "", unit = "", binary] = /^(\d{1,12}(?:\.\d{1,3})?) ?(?:([kmgt])(i)?)?b?$/i.exec(text) ?? [];
  if (digits === "") throw new BadValue("It must be a size such as 512MiB or 2GB.");
  const power = unit === "" ? 0 : "kmgt".indexOf(unit.toLowerCase()) + 1;
  return Math.round(Number(digits) * (binary === undefined ? 1000 : 1024) ** power);
}

/** `500m` or `0.5`: cores, as thousandths of one. */
export function cpuMillicores(text: string): number {
  const [, digits = "", milli] = /^(\d{1,9}(?:\.\d{1,3})?)(m)?$/.exec(text) ?? [];
  if (digits === "") throw new BadValue("It must be cores such as 2, 0.5 or 500m.");
  return Math.round(Number(digits) * (milli === undefined ? 1000 : 1));
}

/** A flag that may be given again, and takes several separated by commas. */
export function several(text: string, before: unknown): string[] {
  const more = text.split(",").map((part) => part.trim());
  if (more.some((part) => part === "")) throw new BadValue("It must be one name, or several with commas.");
  return [...(Array.isArray(before) ? (before as string[]) : []), ...more];
}

/** `key=value`; may be given again. What a key may be is for the server to say. */
export function label(text: string, before: unknown): string[] {
  if (!text.includes("=")) throw new BadValue("It must be a label such as team=web.");
  return each(text, before);
}

/** A flag that may be given again, each time as one value. */
export function each(text: string, before: unknown): string[] {
  return [...(Array.isArray(before) ? (before as string[]) : []), text];
}
