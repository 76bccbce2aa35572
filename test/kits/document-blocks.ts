/**
 * The blocks of a document that are more than text: programs, and the files they find.
 *
 *     ```ts                   a whole program
 *     ```ts serve             the same, with `drover serve` behind DROVER_URL; more words are flags of it
 *     ```sh run               a script; ```sh serve with a server. A bare ```sh is only to be looked at
 *     ```sh etcd              a script with an etcd behind LOG_URL; ```sh postgres with a PostgreSQL
 *     ```python serve …       the same for Python
 *     ```yaml drover.yml      a file that lies in the directory of every program after it in the document
 *
 * What a program prints is promised in comments, `// → ` or `# → `, line by line; `…` in one stands for anything, and
 * alone for any number of lines.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
const BLOCK = /^```(\w+)([^\n]*)\n(.*?)^```$/gms;

export type Language = "ts" | "sh" | "python";
export type Block = {
  readonly name: string;
  readonly file: string;
  readonly language: Language;
  readonly code: string;
  /** The flags of the server it wants; null: it wants none. */
  readonly serve: readonly string[] | null;
  /** Where a cluster's log is, if it wants one. */
  readonly engine: "etcd" | "postgres" | null;
  readonly files: ReadonlyMap<string, string>;
  readonly promises: readonly string[];
};

const LANGUAGES: Readonly<Record<string, Language>> = { ts: "ts", js: "ts", sh: "sh", python: "python" };
const ENDING: Readonly<Record<Language, string>> = { ts: "mts", sh: "sh", python: "py" };
const PROMISE: Readonly<Record<Language, RegExp>> = { ts: /\/\/ → (.*)$/gm, sh: /# → (.*)$/gm, python: /# → (.*)$/gm };

export function blocksOf(path: string): Block[] {
  const text = readFileSync(join(root, path), "utf8");
  const files = new Map<string, string>();
  const blocks: Block[] = [];
  for (const { 1: kind = "", 2: info = "", 3: code = "", index } of text.matchAll(BLOCK)) {
    const [purpose, ...words] = info.trim().split(/ +/).filter(Boolean);
    if (kind === "yaml" && purpose !== undefined) files.set(purpose, code);
    const language = LANGUAGES[kind];
    if (language === undefined || (language === "sh" && purpose === undefined)) continue;
    const line = text.slice(0, index).split("\n").length;
    blocks.push({
      ...{ name: `${path}:${line}`, language, code, files: new Map(files) },
      file: `${path.replaceAll(/\W/g, "-")}-${line}.${ENDING[language]}`,
      serve: purpose === "serve" ? words : null,
      engine: purpose === "etcd" || purpose === "postgres" ? purpose : null,
      promises: [...code.matchAll(PROMISE[language])].map(([, promise = ""]) => promise.trimEnd()),
    });
  }
  return blocks;
}

const ANY_LINES = "…";

/** The first promise that was not kept, in words; null if all were. */
export function brokenPromise(promises: readonly string[], printed: readonly string[]): string | null {
  const [promise, ...later] = promises;
  const [line, ...rest] = printed;
  if (promise === ANY_LINES) {
    const starts = printed.map((_, index) => index).concat(printed.length);
    const fits = starts.some((start) => brokenPromise(later, printed.slice(start)) === null);
    return fits
      ? null
      : `after any number of lines it does not print: ${later.join("\n")}\n but: ${printed.join("\n")}`;
  }
  if (promise === undefined) return line === undefined ? null : `it also prints: ${line}`;
  if (line === undefined) return `it does not print: ${promise}`;
  if (!isKept(promise, line)) return `it should print: ${promise}\n but prints:     ${line}`;
  return brokenPromise(later, rest);
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
const isKept = (promise: string, line: string): boolean =>
  new RegExp(`^${promise.split("…").map(escaped).join(".*")}$`).test(line);
