/**
 * One config file, read so that every complaint about it can say where.
 *
 * The text becomes a list of settings, each with the line and column it stands at. The file is bounded in size, depth
 * and number of values before anything is built from it.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { isRecord } from "../../core/base/index.ts";
import type { JsonSchema, Path } from "../../protocol/schema/index.ts";
import { BadConfig, type FileOrigin, type Origin } from "./problem.ts";
import { secretStart, withoutQuoted } from "./secret.ts";
import type { YamlComplaint } from "./yaml-complaint.ts";
import { readYaml, type YamlRules, type YamlText } from "./yaml-source.ts";

export const FILE_BYTES_MAX: number = 1024 * 1024;

/** One value, its path, and where it was given. */
export type Setting = { readonly path: Path; readonly value: unknown; readonly origin: Origin };

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

const RULES: YamlRules = {
  words: {
    DUPLICATE_KEY: "duplicate key: this name stands twice in the same section; keep one of the two",
    MULTIPLE_DOCS: "a config is one document; take out what follows the ---",
  },
  valuesMax: 100_000,
  aliasesMax: 100,
  merges: false,
  uniqueKeys: true,
};

/** The schema tells which names are known: the value of another may be a secret whose name is misspelt. */
export function parseConfigFile(file: string, text: string, schema: JsonSchema | null = null): ConfigFile {
  const shownIn = ({ document, line, lineStarts }: YamlText, origin: FileOrigin): string | undefined => {
    const whole = line(origin.line);
    const from = lineStarts[origin.line - 1] ?? 0;
    const start = secretStart(text, { from, to: from + whole.length }, document, schema);
    if (start >= whole.length) return whole;
    return origin.column > start ? undefined : `${whole.slice(0, start)} (hidden)`;
  };
  const refusal = (complaints: readonly YamlComplaint[], source: YamlText): BadConfig =>
    new BadConfig(
      complaints.map(({ message, offset }) => {
        const origin = source.originAt(offset);
        const shown = shownIn(source, origin);
        return { message: shown === undefined ? withoutQuoted(message) : message, origin, source: shown };
      }),
    );
  const source = readYaml(file, text, RULES, refusal);
  const { value, line } = source;
  const originOf = (path: Path): FileOrigin => source.originOf(path, "key");
  if (value !== null && !isRecord(value)) {
    const offset = source.document.contents?.range?.[0] ?? 0;
    throw refusal([{ message: "a config begins with the names of its sections, such as scheduler:", offset }], source);
  }
  const settings = [...settingsIn(value ?? {}, [], originOf)];
  return { file, settings, line, originOf, shownLine: (origin) => shownIn(source, origin) };
}

/** Sections become paths; everything else is a value at its path. */
function* settingsIn(value: unknown, path: Path, originOf: (path: Path) => FileOrigin): Generator<Setting> {
  if (isRecord(value))
    for (const [key, inner] of Object.entries(value)) yield* settingsIn(inner, [...path, key], originOf);
  else yield { path, value, origin: originOf(path) };
}
