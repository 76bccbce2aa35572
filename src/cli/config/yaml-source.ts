/**
 * The text of a YAML file, as plain values of which each knows where it stands.
 *
 * Every complaint about a file names its line and column, and points at the very value that is wrong. So the YAML is
 * taken apart node by node, and where each key and each value began is kept beside the values. What YAML allows and
 * such a file never needs is refused with its line: two documents, a key twice, tags that are not data. Anchors and
 * aliases may be used, as far as they do not grow without end: depth, values and aliases are bounded.
 */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import { isRecord } from "../../core/base/index.ts";
import type { FileOrigin } from "./problem.ts";
import { type YamlComplaint, yamlComplaints } from "./yaml-complaint.ts";

type Path = readonly (string | number)[];
/** Where something stands: its name, or what it is set to. */
type Spot = "key" | "value";

export type YamlRules = {
  readonly words: { readonly DUPLICATE_KEY: string; readonly MULTIPLE_DOCS: string };
  readonly valuesMax: number;
  readonly aliasesMax: number;
  /** Whether `<<: *shared` gives what is not said beside it. */
  readonly merges: boolean;
  /** Whether the parser looks for names that stand twice, beside its other complaints: the square of their number. */
  readonly uniqueKeys: boolean;
};
export type YamlText = {
  readonly document: Document;
  readonly lineStarts: readonly number[];
  readonly line: (number: number) => string;
  readonly originAt: (offset: number) => FileOrigin;
};
/** Everything that is wrong, as an error to throw. */
type Refusal = (complaints: readonly YamlComplaint[], source: YamlText) => Error;

type YamlSource = YamlText & {
  readonly value: unknown;
  /** Where a path stands, or the nearest thing around it that does. */
  readonly originOf: (path: Path, spot: Spot) => FileOrigin;
};

const DEPTH_MAX = 32;
const WORDS = {
  TAB_AS_INDENT: "a tab cannot indent YAML; use spaces",
  TAG_RESOLVE_FAILED: "tags are not read here; write the plain value",
};

export function readYaml(file: string, text: string, rules: YamlRules, refusal: Refusal): YamlSource {
  const lineCounter = new LineCounter();
  const { uniqueKeys, merges: merge, words } = rules;
  const options = { lineCounter, uniqueKeys, merge, prettyErrors: false, stringKeys: true, strict: true } as const;
  const document = parseDocument(text, { ...options, logLevel: "error" });
  const lines = text.split(/\r?\n/);
  const source: YamlText = {
    document,
    lineStarts: lineCounter.lineStarts,
    line: (number) => lines[number - 1] ?? "",
    originAt: (offset) => {
      const { line, col } = lineCounter.linePos(offset);
      return { kind: "file", file, line: Math.max(1, line), column: Math.max(1, col) };
    },
  };
  const wrong = yamlComplaints(text, [...document.errors, ...document.warnings], { ...WORDS, ...words });
  if (wrong.length > 0) throw refusal(wrong, source);
  const { value, offsets, repeats } = walk(document, rules, (message, offset) =>
    refusal([{ message, offset }], source),
  );
  if (repeats.length > 0)
    throw refusal(
      repeats.map((offset) => ({ message: words.DUPLICATE_KEY, offset })),
      source,
    );
  return { ...source, value, originOf: (path, spot) => source.originAt(offsetOf(offsets, path, spot)) };
}

type Offsets = Map<string, { readonly key: number; readonly value: number }>;

const keyOf = (path: Path): string => path.join("\0");

function offsetOf(offsets: Offsets, path: Path, spot: Spot): number {
  for (let length = path.length; length > 0; length--) {
    const found = offsets.get(keyOf(path.slice(0, length)));
    // Something that is missing is complained of at the name of what it is missing in.
    if (found !== undefined) return length === path.length ? found[spot] : found.key;
  }
  return 0;
}

type Walked = { readonly value: unknown; readonly offsets: Offsets; readonly repeats: readonly number[] };

/** The document as plain values; where each began is noted on the way, and where a name stands again. */
function walk(document: Document, rules: YamlRules, refusal: (message: string, offset: number) => Error): Walked {
  const { valuesMax, aliasesMax, merges } = rules;
  const offsets: Offsets = new Map();
  const repeats: number[] = [];
  let values = 0;
  let aliases = 0;

  /** The node itself, or what it is an alias of. Each look counts, so that aliases of aliases come to an end. */
  function resolved(node: Node | null, depth: number, offset: number): Node | null {
    values += 1;
    if (values > valuesMax)
      throw refusal(`there are more than ${valuesMax} values up to here, counting aliases each time`, offset);
    if (depth > DEPTH_MAX) throw refusal(`this is nested more than ${DEPTH_MAX} deep`, offset);
    if (node === null || !isAlias(node)) return node;
    aliases += 1;
    if (aliases > aliasesMax)
      throw refusal(`there are more than ${aliasesMax} aliases up to here; write the values out`, offset);
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
    if (isSeq(node))
      return node.items.map((item, index) =>
        plain(item as Node, [...path, index], (item as Node | null)?.range?.[0] ?? offset),
      );
    if (!isMap(node)) throw refusal("this is neither a value, a list nor names with values", offset);
    return section(node.items, path);
  }

  function section(items: readonly { readonly key: unknown; readonly value: unknown }[], path: Path): unknown {
    const read = new Map<string, unknown>();
    const merged: [string, unknown][] = [];
    for (const { key, value } of items) {
      const name = String((key as { value: unknown }).value);
      const at = (key as Node).range?.[0] ?? 0;
      if (merges && name === "<<") merged.push(...mergedFrom(value as Node | null, path, at));
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
  return { value: plain(root, [], root?.range?.[0] ?? 0), offsets, repeats };
}

/** Whole numbers too large for a double were BigInts; as a double they are refused by what reads them. */
const scalar = (value: unknown): unknown => (typeof value === "bigint" ? Number(value) : (value ?? null));
