/**
 * The arguments of a verb, read from its own description with Node's `parseArgs`.
 *
 * Commander takes as long to load as all else a short verb does. It is needed for help and for saying what is wrong
 * with a call; a call that is right is read here. Whatever this reading does not understand, it leaves to commander: a
 * flag before the verb, a value that begins with a dash, anything wrong. So the two never differ in what they say, and
 * a test compares what they make of the same words.
 */
import type { ArgumentSpec, FlagSpec, GlobalFlags, ListedVerb, VerbBody } from "./verb.ts";
import { BadValue, GLOBAL_FLAGS } from "./verb.ts";

export type ParsedCall = {
  readonly run: NonNullable<VerbBody["run"]>;
  readonly args: readonly string[];
  readonly flags: GlobalFlags & Readonly<Record<string, unknown>>;
};

/** What is called, with which arguments; null where commander must look. */
export async function parseCall(words: readonly string[], verbs: readonly ListedVerb[]): Promise<ParsedCall | null> {
  const listed = verbs.find(({ name }) => name === words[0]);
  if (listed === undefined) return null;
  let verb: VerbBody<never> = await listed.load();
  let depth = 1;
  for (let inner = innerOf(verb, words[depth]); inner !== undefined; inner = innerOf(verb, words[depth])) {
    verb = inner;
    depth += 1;
  }
  const { run, takes = [] } = verb as VerbBody;
  const read = run === undefined || verb.passesOn === true ? null : readWords(words.slice(depth), verb.flags ?? []);
  if (run === undefined || read === null || !areTaken(read.args, takes)) return null;
  return read.args.some((word) => innerOf(verb, word) !== undefined) ? null : { run, ...read };
}

const innerOf = ({ verbs = [] }: VerbBody<never>, name: string | undefined): VerbBody<never> | undefined =>
  verbs.find((inner) => inner.name === name);

type Read = Pick<ParsedCall, "args" | "flags">;

function readWords(words: readonly string[], own: readonly FlagSpec[]): Read | null {
  const specs = new Map([...GLOBAL_FLAGS, ...own].map((spec) => [longName(spec), spec]));
  const flags: Record<string, unknown> = {};
  try {
    const { positionals, tokens } = process.getBuiltinModule("node:util").parseArgs({
      args: [...words],
      options: Object.fromEntries([...specs].map(([name, spec]) => [name, optionOf(spec)])),
      allowPositionals: true,
      tokens: true,
    });
    for (const token of tokens) {
      const spec = token.kind === "option" ? specs.get(token.name) : undefined;
      if (token.kind !== "option" || spec === undefined) continue;
      // Whether the next word is the value of a flag that may have one is commander's to say.
      if (spec.flags.endsWith("]")) return null;
      const { name, value } = token;
      const key = keyOf(name);
      if (value === undefined) flags[key] = !name.startsWith("no-");
      else if (spec.choices?.includes(value) === false) return null;
      else flags[key] = spec.read === undefined ? value : spec.read(value, flags[key]);
    }
    return { args: positionals, flags };
  } catch (error) {
    if (error instanceof BadValue || isWrongUse(error)) return null;
    throw error;
  }
}

const isWrongUse = (error: unknown): boolean =>
  error instanceof TypeError && String((error as NodeJS.ErrnoException).code).startsWith("ERR_PARSE_ARGS");

/** `dry-run` of `-n, --dry-run`. */
const longName = ({ flags }: FlagSpec): string => /--([\w-]+)/.exec(flags)?.[1] ?? "";

function optionOf({ flags }: FlagSpec): { type: "string" | "boolean"; short?: string } {
  const short = /^-(\w),/.exec(flags)?.[1];
  return { type: flags.endsWith(">") ? "string" : "boolean", ...(short === undefined ? {} : { short }) };
}

/** `dryRun` of `dry-run`, and `color` of `no-color`. */
const keyOf = (name: string): string =>
  name.replace(/^no-/, "").replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

function areTaken(args: readonly string[], takes: readonly ArgumentSpec[]): boolean {
  const least = takes.filter(({ name }) => name.startsWith("<")).length;
  const most = takes.at(-1)?.name.includes("...") === true ? Number.POSITIVE_INFINITY : takes.length;
  const isChoice = (word: string, at: number): boolean => takes[at]?.choices?.includes(word) !== false;
  return args.length >= least && args.length <= most && args.every(isChoice);
}
