/**
 * The text of a plan file, as plain values of which each knows its line.
 *
 * Every complaint about a plan names file, line and column, and points at the very value that is wrong. So the YAML is
 * taken apart node by node, and where each key and each value began is kept beside the values. What YAML allows and a
 * plan never needs is refused with its line: two documents, a key twice, tags that are not data. Anchors and aliases
 * may be used (shared settings are what they are for), as far as they do not grow without end.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import { isRecord } from "../../core/base/index.ts";
import { type ConfigProblem, type Origin, shownProblem } from "../config/problem.ts";
import { commaAdvice, type YamlWords, yamlComplaints } from "../config/yaml-complaint.ts";

export type Path = readonly (string | number)[];
/** Where something stands: its name, or what it is set to. */
export type Spot = "key" | "value";

export type PlanSource = {
  readonly file: string;
  readonly value: unknown;
  /** A complaint about what stands at this path, or about the nearest thing around it that is there. */
  readonly complaint: (message: string, path: Path, spot?: Spot) => PlanProblem;
};
export type PlanProblem = ConfigProblem;

/** Everything that is wrong with a plan. Nothing of it has run. */
export class BadPlan extends Error {
  override readonly name: string = "BadPlan";
  readonly problems: readonly PlanProblem[];

  constructor(problems: readonly PlanProblem[]) {
    super(problems.map(shownProblem).join("\n"));
    this.problems = problems;
  }
}

const VALUES_MAX = 200_000;
const ALIASES_MAX = 1000;
const DEPTH_MAX = 32;

type Offsets = Map<string, { readonly key: number; readonly value: number }>;

/** Throws a `BadPlan` if the text is not YAML, or more of it than a plan can be. */
export function readPlanSource(file: string, text: string): PlanSource {
  const counter = new LineCounter();
  const lines = text.split(/\r\n|\n|\r/);
  const complainAt = (message: string, offset: number): PlanProblem => {
    const { line, col } = counter.linePos(offset);
    const origin: Origin = { kind: "file", file, line: Math.max(1, line), column: Math.max(1, col) };
    return { message, origin, source: lines[origin.line - 1] ?? "" };
  };
  const document = parseDocument(text, {
    // Names that stand twice are found below: looking for them here takes the square of their number.
    lineCounter: counter,
    prettyErrors: false,
    stringKeys: true,
    uniqueKeys: false,
    strict: true,
    logLevel: "error",
    merge: true,
  });
  const wrong = yamlComplaints(text, [...document.errors, ...document.warnings], WORDS).map(({ message, offset }) =>
    complainAt(message, offset),
  );
  if (wrong.length > 0) throw new BadPlan(wrong);
  const offsets: Offsets = new Map();
  const repeats: number[] = [];
  const value = walk(document, offsets, repeats, (message, offset) => new BadPlan([complainAt(message, offset)]));
  if (repeats.length > 0)
    throw new BadPlan(
      repeats.map((at) => complainAt("duplicate key: this name stands twice here; keep one of the two", at)),
    );
  return {
    file,
    value,
    complaint: (message, path, spot = "value") => {
      const problem = complainAt(message, offsetOf(offsets, path, spot));
      const { origin, source = "" } = problem;
      const advice = spot === "key" && origin?.kind === "file" ? commaAdvice(source, origin.column) : null;
      return { ...problem, message: advice ?? message };
    },
  };
}

const WORDS: YamlWords = {
  TAB_AS_INDENT: "a tab cannot indent YAML; use spaces",
  MULTIPLE_DOCS: "a plan is one document; take out what follows the ---",
  TAG_RESOLVE_FAILED: "tags are not read here; write the plain value",
};

const keyOf = (path: Path): string => path.join("\0");

function offsetOf(offsets: Offsets, path: Path, spot: Spot): number {
  for (let length = path.length; length > 0; length--) {
    const found = offsets.get(keyOf(path.slice(0, length)));
    // Something that is missing is complained of at the name of what it is missing in.
    if (found !== undefined) return length === path.length ? found[spot] : found.key;
  }
  return 0;
}

/** The document as plain values; where each began is noted on the way, and where a name stands again. */
function walk(
  document: ReturnType<typeof parseDocument>,
  offsets: Offsets,
  repeats: number[],
  refusal: (message: string, offset: number) => BadPlan,
): unknown {
  let values = 0;
  let aliases = 0;

  function resolved(node: Node | null, depth: number, offset: number): Node | null {
    values += 1;
    if (values > VALUES_MAX) throw refusal(`there are more than ${VALUES_MAX} values up to here`, offset);
    if (depth > DEPTH_MAX) throw refusal(`this is nested more than ${DEPTH_MAX} deep`, offset);
    if (node === null || !isAlias(node)) return node;
    aliases += 1;
    if (aliases > ALIASES_MAX) throw refusal(`there are more than ${ALIASES_MAX} aliases up to here`, offset);
    const target = node.resolve(document) as Node | undefined;
    if (target === undefined) throw refusal("this alias has no anchor before it", offset);
    return target;
  }

  function plain(given: Node | null, path: Path, keyOffset: number): unknown {
    const offset = given?.range?.[0] ?? keyOffset;
    offsets.set(keyOf(path), { key: keyOffset, value: offset });
    const node = resolved(given, path.length, offset);
    if (node === null) return null;
    if (isScalar(node)) return scalar(node.value);
    if (isSeq(node)) return node.items.map((item, index) => plain(item as Node, [...path, index], offset));
    if (!isMap(node)) throw refusal("this is neither a value, a list nor names with values", offset);
    return section(node.items, path);
  }

  function section(items: readonly { readonly key: unknown; readonly value: unknown }[], path: Path): unknown {
    const read = new Map<string, unknown>();
    const merged: [string, unknown][] = [];
    for (const { key, value } of items) {
      const name = String((key as { value: unknown }).value);
      const at = (key as Node).range?.[0] ?? 0;
      // `<<: *shared` gives what is not said here.
      if (name === "<<") merged.push(...mergedFrom(value as Node | null, path, at));
      else if (read.has(name)) repeats.push(at);
      else read.set(name, plain(value as Node | null, [...path, name], at));
    }
    return Object.fromEntries([...merged, ...read]);
  }

  function mergedFrom(value: Node | null, path: Path, at: number): [string, unknown][] {
    const given = plain(value, [...path, "<<"], at);
    const all = Array.isArray(given) ? given.toReversed() : [given];
    return all.flatMap((one) => {
      if (!isRecord(one)) throw refusal("<< takes names with values, or a list of such", at);
      for (const name of Object.keys(one)) offsets.set(keyOf([...path, name]), { key: at, value: at });
      return Object.entries(one);
    });
  }

  const root = document.contents as Node | null;
  return plain(root, [], root?.range?.[0] ?? 0);
}

/** Whole numbers too large for a double were BigInts; as a double they are refused by what reads them. */
const scalar = (value: unknown): unknown => (typeof value === "bigint" ? Number(value) : (value ?? null));
