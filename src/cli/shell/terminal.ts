/**
 * The world as a command sees it: where it writes, what it may read, what time it is, when it must stop.
 *
 * A verb touches nothing of the process by itself. So a test runs it in its own process with a terminal of any width,
 * reads back exactly what a person would have seen, and sends it an interrupt without a signal. `main.ts` makes the
 * one real terminal.
 */
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { homedir } from "node:os";
import type { Fetch, Fetched } from "../../client/index.ts";
import { EXIT, type ExitCode, usageProblem } from "./problem.ts";

export type Environment = Readonly<Record<string, string | undefined>>;
/** What ends a command from outside, by the name of its signal. */
export type StopSignal = "SIGINT" | "SIGTERM" | "SIGHUP";

export type Terminal = {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Columns of the terminal that standard output is; null for a file or a pipe, where nothing is ever cut off. */
  readonly width: number | null;
  /** Its lines; null where `width` is. */
  readonly height: number | null;
  readonly hasColours: boolean;
  readonly errorsHaveColours: boolean;
  /** Whether a person reads standard error; else it is a log. */
  readonly isErrorTerminal: boolean;
  readonly env: Environment;
  readonly cwd: string;
  readonly home: string;
  readonly now: () => number;
  readonly fetch: Fetch;
  /** All of standard input as text; refused when it is longer than `bytesMax`. */
  readonly readInput: (bytesMax: number) => Promise<string>;
  /** What a picture that fills the terminal is drawn on; null where no person looks at one and could press a key. */
  readonly screen: Screen | null;
  /** The next key that is pressed, or null once the signal fires; null where no person could press one. */
  readonly readKey: ((signal: AbortSignal) => Promise<string | null>) | null;
  /** Calls the listener at each of these signals until the returned function is called. */
  readonly onSignal: (signals: readonly StopSignal[], listener: (signal: StopSignal) => void) => () => void;
};

export type Screen = { readonly stdin: NodeJS.ReadStream; readonly stdout: NodeJS.WriteStream };

/** The terminal of this process. */
export function processTerminal(): Terminal {
  const { stdout, stderr, env } = process;
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    get width() {
      return stdout.isTTY ? stdout.columns : null;
    },
    get height() {
      return stdout.isTTY ? stdout.rows : null;
    },
    hasColours: wantsColours(stdout.isTTY === true, env),
    errorsHaveColours: wantsColours(stderr.isTTY === true, env),
    isErrorTerminal: stderr.isTTY === true,
    env,
    cwd: process.cwd(),
    home: homedir(),
    now: Date.now,
    fetch: verbFetch,
    readInput,
    screen: process.stdin.isTTY && stdout.isTTY && env.TERM !== "dumb" ? { stdin: process.stdin, stdout } : null,
    readKey: process.stdin.isTTY && stdout.isTTY ? readKey : null,
    onSignal,
  };
}

/** Colours are for people: never in a file or a pipe, never where NO_COLOR is set to anything (no-color.org). */
export function wantsColours(isTerminal: boolean, env: Environment): boolean {
  return isTerminal && (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb";
}

async function readInput(bytesMax: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size > bytesMax) throw usageProblem(`standard input is longer than ${bytesMax} bytes`);
  }
  return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
}

/** While it waits the terminal passes on each key as it is, Ctrl-C too, and shows none. */
function readKey(signal: AbortSignal): Promise<string | null> {
  const { stdin } = process;
  return new Promise((resolve) => {
    const end = (key: string | null): void => {
      stdin.off("data", hear).setRawMode(false).pause();
      signal.removeEventListener("abort", stop);
      resolve(key);
    };
    const hear = (bytes: Buffer): void => end(bytes.toString("utf8").slice(0, 1));
    const stop = (): void => end(null);
    if (signal.aborted) return resolve(null);
    signal.addEventListener("abort", stop);
    stdin.setRawMode(true).resume().on("data", hear);
  });
}

/** One press of Ctrl-C arrives twice under npm and bin/drover.js, which both pass on what the terminal sent us too. */
const SAME_PRESS_MS = 200;

function onSignal(signals: readonly StopSignal[], listener: (signal: StopSignal) => void): () => void {
  let heardAt = Number.NEGATIVE_INFINITY;
  const hear = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    const isSamePress = now - heardAt < SAME_PRESS_MS;
    heardAt = now;
    if (!isSamePress) listener(signal as StopSignal);
  };
  for (const signal of signals) process.on(signal, hear);
  return () => {
    for (const signal of signals) process.off(signal, hear);
  };
}

// ------------------------------------------------------------- a command that lasts until a signal

export const exitOf = (signal: StopSignal): ExitCode => (signal === "SIGINT" ? EXIT.interrupted : EXIT.terminated);

/** What `run` answers; or, once a signal has come, the exit code of the signal, after `onInterrupt` has had its say. */
export async function interruptible(
  terminal: Terminal,
  run: (signal: AbortSignal) => Promise<ExitCode>,
  onInterrupt: () => void = () => {},
): Promise<ExitCode> {
  const stop = new AbortController();
  let heard: StopSignal | null = null;
  const silence = terminal.onSignal(["SIGINT", "SIGTERM"], (signal) => {
    heard ??= signal;
    stop.abort();
  });
  try {
    const code = await run(stop.signal);
    return heard === null ? code : exitOf(heard);
  } catch (error) {
    if (heard === null) throw error;
    onInterrupt();
    return exitOf(heard);
  } finally {
    silence();
  }
}

// ------------------------------------------------------------- one call over HTTP

/** As long as the global `fetch` waits. */
const CONNECT_MS = 10_000;

/**
 * `fetch` as far as a client needs it, made with node:http. A verb makes one call and ends. The global `fetch` takes as
 * long to load as all the rest of the verb, and so does `import "node:http"`, which reads every name that module has,
 * and with them what lies behind `WebSocket`. Redirects are never followed: the client asks for them as they are.
 */
export const verbFetch: Fetch = (url, { method = "GET", headers, signal, body }) => {
  const { promise, resolve, reject } = Promise.withResolvers<Fetched>();
  const options: RequestOptions = { method, headers, signal };
  const request = httpFor(url).request(url, options, (answer) => resolve(fetchedFrom(answer)));
  request.on("error", reject);
  limitConnecting(request);
  if (typeof body === "object") process.getBuiltinModule("node:stream").Readable.from(body).pipe(request);
  else request.end(body);
  return promise;
};

const httpFor = (url: string): Pick<typeof import("node:http"), "request"> =>
  url.startsWith("https:") ? process.getBuiltinModule("node:https") : process.getBuiltinModule("node:http");

function limitConnecting(request: ClientRequest): void {
  const late = setTimeout(() => {
    const error = new Error(`no connection within ${CONNECT_MS} ms`);
    request.destroy(Object.assign(error, { code: "CONNECT_TIMEOUT" }));
  }, CONNECT_MS);
  const isOver = (): void => clearTimeout(late);
  request.on("close", isOver);
  request.on("socket", (socket) => {
    if (socket.connecting) socket.once("connect", isOver);
    else isOver();
  });
}

function fetchedFrom(answer: IncomingMessage): Fetched {
  return {
    status: answer.statusCode ?? 0,
    headers: {
      get: (name) => {
        const value = answer.headers[name.toLowerCase()];
        return value === undefined ? null : String(value);
      },
    },
    body: answer,
    text: async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks).toString("utf8");
    },
  };
}
