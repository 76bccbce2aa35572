/**
 * A terminal that fills a screen, for tests: it obeys the few sequences that Ink writes, and shows what a person sees.
 */
import { PassThrough } from "node:stream";
import type { Screen } from "../../../src/cli/shell/terminal.ts";

export type TestScreen = Screen & {
  /** What is on the screen, line by line. */
  readonly lines: () => readonly string[];
  readonly press: (keys: string) => void;
  readonly resize: (columns: number, rows: number) => void;
  /** Resolves with the screen as soon as it shows this. */
  readonly shows: (wanted: RegExp) => Promise<string>;
  /** Everything that was written. */
  readonly bytes: () => string;
};

/** Whoever waits for what never comes should hear so, and not hang. */
const LATE_MS = 60_000;

export function testScreen(columns: number, rows: number): TestScreen {
  const seen = createSeen();
  const waiting = new Set<() => void>();
  let bytes = "";
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns, rows });
  stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.toString("utf8");
    seen.write(chunk.toString("utf8"));
    for (const look of [...waiting]) look();
  });
  const nothing = (): PassThrough => stdin;
  const stdin: PassThrough = Object.assign(new PassThrough(), {
    ...{ isTTY: true, setRawMode: nothing, ref: nothing, unref: nothing },
  });
  const text = (): string => seen.lines().join("\n");
  return {
    stdin: stdin as unknown as Screen["stdin"],
    stdout: stdout as unknown as Screen["stdout"],
    lines: seen.lines,
    bytes: () => bytes,
    press: (keys) => void stdin.write(keys),
    resize(wide, high) {
      Object.assign(stdout, { columns: wide, rows: high });
      stdout.emit("resize");
    },
    shows(wanted) {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      const late = setTimeout(() => reject(new Error(`${wanted} is not on the screen:\n${text()}`)), LATE_MS);
      const look = (): void => {
        if (!wanted.test(text())) return;
        clearTimeout(late);
        waiting.delete(look);
        resolve(text());
      };
      waiting.add(look);
      look();
      return promise;
    },
  };
}

/** Lines and a cursor. */
export function createSeen(): { write(text: string): void; lines(): readonly string[] } {
  let lines: string[] = [""];
  let [row, column] = [0, 0];
  const put = (text: string): void => {
    const before = [...(lines[row] ?? "").padEnd(column)];
    const letters = [...text];
    before.splice(column, letters.length, ...letters);
    lines[row] = before.join("");
    column += letters.length;
  };
  const obey = (count: number, letter: string): void => {
    const most = Math.max(1, count);
    if (letter === "A") row = Math.max(0, row - most);
    if (letter === "B" || letter === "E") row += most;
    if (letter === "C") column += most;
    if (letter === "G") column = most - 1;
    if (letter === "E") column = 0;
    if (letter === "H") [row, column] = [0, 0];
    if (letter === "J") lines = count >= 2 ? [""] : lines.slice(0, row + 1);
    if (letter === "K") lines[row] = count === 2 ? "" : [...(lines[row] ?? "")].slice(0, column).join("");
    while (lines.length <= row) lines.push("");
  };
  /** The beginning of a sequence whose end has not come yet. */
  let begun = "";
  return {
    lines: () => lines,
    write(given) {
      const all = begun + given;
      // biome-ignore lint/suspicious/noControlCharactersInRegex: with this each of them begins
      begun = /\u001b(?:\[[?\d;]*)?$/.exec(all)?.[0] ?? "";
      const text = all.slice(0, all.length - begun.length);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a terminal obeys
      for (const [part, digits, letter] of text.matchAll(/\u001b\[[?]?([\d;]*)([a-zA-Z])|[\r\n]|[^\r\n\u001b]+/g)) {
        if (letter !== undefined) obey(Number.parseInt(digits ?? "", 10) || 0, part.includes("?") ? "" : letter);
        else if (part === "\n") obey(1, "E");
        else if (part === "\r") column = 0;
        else put(part);
      }
    },
  };
}
