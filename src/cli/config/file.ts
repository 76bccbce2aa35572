/**
 * One config file, read so that every complaint about it can say where.
 *
 * The text becomes a list of settings, each with the line and column it stands at. What YAML allows and a config never
 * needs is refused with its line: two documents, a key twice, tags that are not data, aliases that grow without end.
 * The file is bounded in size, depth and number of values before anything is built from it.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import type { JsonSchema, Path } from "./knobs.ts";
import { BadConfig, type ConfigProblem, type Origin } from "./problem.ts";
import { secretStart, withoutQuoted } from "./secret.ts";
import { type YamlWords, yamlComplaints } from "./yaml-complaint.ts";

export const FILE_BYTES_MAX: number = 1024 * 1024;
const VALUES_MAX = 100_000;
const ALIASES_MAX = 100;
const DEPTH_MAX = 32;

/** One value, its path, and where it was given. */
export type Setting = { readonly path: Path; readonly value: unknown; readonly origin: Origin };
export type FileOrigin = Extract<Origin, { kind: "file" }>;

export type ConfigFile = {
  readonly file: string;
  readonly settings: readonly Setting[];
  /** Where a path stands, or the nearest thing around it that does. */
  readonly originOf: (path: Path) => FileOrigin;
  /** The text of a line as it stands. It may hold secrets. */
  readonly line: (number: number) => string;
  /** The line of an origin, without the secrets in it. Undefined if the origin itself is one. */
  readonly shownLine: (origin: FileOrigin) => string | undefined;
};
/** The bytes of a file; null if there is none. Read through one handle, so that its size is that of what is read. */
export function readConfigText(file: string, name: string = file): string | null {
  const bytes = readBytes(file, name);
  if (bytes === null) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw problem(`${name} is not UTF-8 text`);
  }
}

function readBytes(file: string, name: string): Uint8Array | null {
  let handle: number;
  try {
    // Without O_NONBLOCK a named pipe would block here until another process writes to it.
    handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    throw problem(`${name} cannot be read: ${code === "EACCES" ? "no permission" : (error as Error).message}`);
  }
  try {
    if (!fstatSync(handle).isFile()) throw problem(`${name} is not a file`);
    const buffer = Buffer.alloc(FILE_BYTES_MAX + 1);
    let size = 0;
    for (let read = -1; read !== 0 && size < buffer.length; size += read)
      read = readSync(handle, buffer, size, buffer.length - size, null);
    if (size > FILE_BYTES_MAX) throw problem(`${name} is larger than ${FILE_BYTES_MAX} bytes, the most that is read`);
    return buffer.subarray(0, size);
  } finally {
    closeSync(handle);
  }
}

const problem = (message: string): BadConfig => new BadConfig([{ message, origin: null }]);

/** The schema tells which names are known: the value of another may be a secret whose name is misspelt. */
export function parseConfigFile(file: string, text: string, schema: JsonSchema | null = null): ConfigFile {
  const counter = new LineCounter();
  const lines = text.split(/\r?\n/);
  const line = (number: number): string => lines[number - 1] ?? "";
  const originAt = (offset: number): FileOrigin => {
    const { line: found, col } = counter.linePos(offset);
    return { kind: "file", file, line: Math.max(1, found), column: Math.max(1, col) };
  };
  const complain = (message: string, offset: number): ConfigProblem => {
    const origin = originAt(offset);
    const source = shownLine(origin);
    return { message: source === undefined ? withoutQuoted(message) : message, origin, source };
  };
  const document = parseDocument(text, {
    lineCounter: counter,
    prettyErrors: false,
    stringKeys: true,
    uniqueKeys: true,
    strict: true,
    logLevel: "error",
  });
  const shownLine = (origin: FileOrigin): string | undefined => {
    const whole = line(origin.line);
    const from = counter.lineStarts[origin.line - 1] ?? 0;
    const start = secretStart(text, { from, to: from + whole.length }, document, schema);
    if (start >= whole.length) return whole;
    return origin.column > start ? undefined : `${whole.slice(0, start)} (hidden)`;
  };
  const wrong = yamlComplaints(text, [...document.errors, ...document.warnings], WORDS).map(({ message, offset }) =>
    complain(message, offset),
  );
  if (wrong.length > 0) throw new BadConfig(wrong);
  const walk = createWalk(document, originAt, complain);
  const root = document.contents;
  if (root !== null) walk.top(root as Node);
  return { file, settings: walk.settings, line, shownLine, originOf: walk.originOf };
}

const WORDS: YamlWords = {
  DUPLICATE_KEY: "duplicate key: this name stands twice in the same section; keep one of the two",
  TAB_AS_INDENT: "a tab cannot indent YAML; use spaces",
  MULTIPLE_DOCS: "a config is one document; take out what follows the ---",
  TAG_RESOLVE_FAILED: "tags are not read here; write the plain value",
};

type Walk = {
  readonly settings: Setting[];
  readonly top: (root: Node) => void;
  readonly originOf: (path: Path) => FileOrigin;
};

/** Goes through the nodes once; maps become paths, everything else is a value at its path. */
function createWalk(
  document: ReturnType<typeof parseDocument>,
  originAt: (offset: number) => FileOrigin,
  complain: (message: string, offset: number) => ConfigProblem,
): Walk {
  const settings: Setting[] = [];
  const origins = new Map<string, FileOrigin>();
  let values = 0;
  let aliases = 0;
  const offsetOf = (node: Node): number => node.range?.[0] ?? 0;
  const refuse = (message: string, at: number): never => {
    throw new BadConfig([complain(message, at)]);
  };

  /** The node itself, or what it is an alias of. Each look counts, so that aliases of aliases come to an end. */
  function resolved(node: Node | null, depth: number, at: number): Node | null {
    values += 1;
    if (values > VALUES_MAX)
      refuse(`there are more than ${VALUES_MAX} values up to here, counting aliases each time`, at);
    if (depth > DEPTH_MAX) refuse(`this is nested more than ${DEPTH_MAX} deep`, at);
    if (node === null || !isAlias(node)) return node;
    aliases += 1;
    if (aliases > ALIASES_MAX)
      refuse(`there are more than ${ALIASES_MAX} aliases up to here; write the values out`, at);
    return (node.resolve(document) as Node | undefined) ?? refuse("this alias has no anchor before it", at);
  }

  function plainValue(given: Node | null, path: Path, at: number): unknown {
    const node = resolved(given, path.length, at);
    if (node === null) return null;
    if (isScalar(node)) return scalarValue(node.value);
    if (isSeq(node))
      return node.items.map((item, index) => {
        const inner = [...path, String(index)];
        const from = offsetOf(item as Node);
        origins.set(inner.join("\0"), originAt(from));
        return plainValue(item as Node, inner, from);
      });
    if (!isMap(node)) return refuse("this is neither a value, a list nor a section", at);
    return Object.fromEntries(
      node.items.map(({ key, value }) => {
        const name = String((key as { value: unknown }).value);
        const inner = [...path, name];
        origins.set(inner.join("\0"), originAt(offsetOf(key as Node)));
        return [name, plainValue(value as Node | null, inner, offsetOf(key as Node))];
      }),
    );
  }

  function section(given: Node | null, path: Path, at: number): void {
    const node = resolved(given, path.length, at);
    origins.set(path.join("\0"), originAt(at));
    if (!isMap(node)) {
      settings.push({ path, value: plainValue(node, path, at), origin: originAt(at) });
      return;
    }
    for (const { key, value } of node.items) {
      const name = String((key as { value: unknown }).value);
      section(value as Node | null, [...path, name], offsetOf(key as Node));
    }
  }

  return {
    settings,
    top: (root) => {
      const node = resolved(root, 0, offsetOf(root));
      if (isScalar(node) && node.value === null) return;
      if (!isMap(node)) refuse("a config begins with the names of its sections, such as scheduler:", offsetOf(root));
      section(node, [], offsetOf(root));
    },
    originOf: (path) => {
      for (let length = path.length; length > 0; length--) {
        const found = origins.get(path.slice(0, length).join("\0"));
        if (found !== undefined) return found;
      }
      return originAt(0);
    },
  };
}

/** Whole numbers too large for a double were BigInts; as a double they are refused by what reads them. */
const scalarValue = (value: unknown): unknown => (typeof value === "bigint" ? Number(value) : (value ?? null));
