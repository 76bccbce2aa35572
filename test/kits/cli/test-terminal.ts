/**
 * A terminal for tests: what a person would see, and an interrupt without a signal.
 */
import { type Environment, type StopSignal, type Terminal, verbFetch } from "../../../src/cli/shell/terminal.ts";

export type TestTerminal = Terminal & {
  readonly shown: () => string;
  readonly complained: () => string;
  /** Presses a key, for the one who waits for it, or will. */
  readonly press: (key: string) => void;
  /** As Ctrl-C, or kill. */
  readonly signal: (signal: StopSignal) => void;
  /** Resolves as soon as what was printed so far contains this text. */
  readonly saw: (text: string) => Promise<void>;
};

/** Whoever waits for a line that never comes should hear so, and not hang. */
const LATE_MS = 60_000;

export type TestTerminalOptions = {
  readonly width?: number | null;
  readonly height?: number | null;
  readonly hasColours?: boolean;
  readonly env?: Environment;
  readonly cwd?: string;
  readonly home?: string;
  readonly now?: () => number;
  readonly input?: string;
  /** Whether a person could press keys. */
  readonly hasKeys?: boolean;
  readonly fetch?: Terminal["fetch"];
  readonly screen?: Terminal["screen"];
};

export function testTerminal(options: TestTerminalOptions = {}): TestTerminal {
  const { width = null, height = null, hasColours = false, env = {}, input = "" } = options;
  const { cwd = "/nowhere", home = "/nowhere" } = options;
  const texts = { out: "", err: "" };
  const listeners = new Set<{ readonly signals: readonly StopSignal[]; readonly hear: (signal: StopSignal) => void }>();
  const keys: string[] = [];
  let onKey: ((key: string | null) => void) | null = null;
  const waiting = new Set<{ readonly text: string; readonly resolve: () => void }>();

  function write(to: "out" | "err", text: string): void {
    texts[to] += text;
    for (const one of waiting) {
      if (!texts.out.includes(one.text) && !texts.err.includes(one.text)) continue;
      waiting.delete(one);
      one.resolve();
    }
  }

  return {
    ...{ width, height, hasColours, errorsHaveColours: hasColours, isErrorTerminal: true, env, cwd, home },
    now: options.now ?? Date.now,
    fetch: options.fetch ?? verbFetch,
    screen: options.screen ?? null,
    out: (text) => write("out", text),
    err: (text) => write("err", text),
    readInput: async () => input,
    readKey:
      options.hasKeys === true
        ? (signal) =>
            new Promise((resolve) => {
              const key = keys.shift();
              if (key !== undefined) return resolve(key);
              onKey = resolve;
              signal.addEventListener("abort", () => resolve(null), { once: true });
            })
        : null,
    press: (key) => {
      if (onKey === null) keys.push(key);
      else onKey(key);
      onKey = null;
    },
    onSignal: (signals, hear) => {
      const one = { signals, hear };
      listeners.add(one);
      return () => void listeners.delete(one);
    },
    shown: () => texts.out,
    complained: () => texts.err,
    signal: (signal) => {
      for (const { signals, hear } of [...listeners]) if (signals.includes(signal)) hear(signal);
    },
    saw: (text) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      if (texts.out.includes(text) || texts.err.includes(text)) return Promise.resolve();
      const late = setTimeout(
        () => reject(new Error(`"${text}" was not printed, but: ${texts.out}${texts.err}`)),
        LATE_MS,
      );
      waiting.add({
        text,
        resolve: () => {
          clearTimeout(late);
          resolve();
        },
      });
      return promise;
    },
  };
}

/** What a person sees, line by line. */
export const lines = (...all: string[]): string => `${all.join("\n")}\n`;
