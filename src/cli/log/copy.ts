/**
 * `drover log copy`: moves a history from one log to another: a data directory, etcd or PostgreSQL, to any of them.
 *
 * It reads and writes the logs themselves and needs no server. Each batch is checked on the way; what the other side
 * has already is passed over, so a copy that was broken off is begun again with the same command. A log is named by a
 * directory or a URL. A URL may have a password in it, so none is ever repeated: logs are called by what they say of
 * themselves. From a server or a directory into a directory the files of tasks go along.
 */
import { resolve } from "node:path";
import { createClient } from "../../client/index.ts";
import type { FilesCopied } from "../../engine/files/index.ts";
import type { CopyReport } from "../../log/shared/index.ts";
import type { Output } from "../shell/output.ts";
import { CliProblem, EXIT, type ExitCode } from "../shell/problem.ts";
import { liveServer } from "../shell/server-file.ts";
import { interruptible } from "../shell/terminal.ts";
import { plain } from "../shell/text.ts";
import type { Call, Verb, VerbBody } from "../shell/verb.ts";
import { progressOf } from "../show/progress.ts";
import { bytes, count } from "../show/time.ts";

/** A journal that cannot be reached at the beginning is most likely named wrongly. */
const OPENING_MS = 30_000;

/** Files that could not be copied, as they are shown. */
const SHOWN_MAX = 10;

type NoFlags = Record<never, never>;

const copy: Verb<NoFlags> = {
  name: "copy",
  summary: "copy a history to another log, checked on the way; again, to go on where it was broken off",
  about:
    "A log is a data directory, sqlite:PATH, etcd://HOST:2379,HOST:2379/PREFIX or postgres://USER:PASSWORD@HOST/DB.\n" +
    "FROM may be the URL of a server too, or the directory of one that runs here: what it has by now is copied,\n" +
    "with the token in $DROVER_TOKEN.\n" +
    "Into a directory, from a server or a directory, the files that tasks have left go along.\n" +
    "Stop the servers of other logs first. TO must be empty, or have the beginning of the same history.",
  takes: [
    { name: "<from>", about: "the log that is read" },
    { name: "<to>", about: "the log that gets what it does not have" },
  ],
  examples: [
    ["drover log copy .drover etcd://a:2379,b:2379,c:2379/drover", "from one machine into a cluster"],
    ['drover log copy "$PG_URL" backup', "out of PostgreSQL, into a directory"],
  ],
  run: (call) => interruptible(call.terminal, (signal) => run(call, signal), onInterrupt(call)),
};

export const logVerb: VerbBody<NoFlags> = {
  examples: copy.examples ?? [],
  verbs: [copy as Verb<never>],
};

const onInterrupt =
  ({ terminal }: Call<NoFlags>) =>
  (): void =>
    terminal.err("The copy was broken off. The same command goes on with it.\n");

async function run(call: Call<NoFlags>, signal: AbortSignal): Promise<ExitCode> {
  const { args, terminal, output } = call;
  const [named = "", to = ""] = args.map((name) => urlOf(name, terminal.cwd));
  const { from, token } = await sourceOf(call, named);
  const { copyLog } = await import("../../log/shared/index.ts");
  const bar = progressOf("copy", "events", terminal);
  try {
    const report = await copyLog(from, to, {
      signal,
      openingMs: OPENING_MS,
      token: token ?? null,
      onNotice: (line) => {
        bar.end();
        terminal.err(`${plain(line)}\n`);
      },
      onProgress: bar.at,
    });
    bar.end();
    const files = await takeFiles(call, { from, to, token, signal });
    const answer = { ...report, ...files };
    output.answer(answer, () => shownReport(answer, output));
    return files.missing.length === 0 ? EXIT.ok : EXIT.failed;
  } catch (error) {
    throw signal.aborted ? error : await problemOf(error);
  } finally {
    bar.end();
  }
}

/** A directory that a server of this machine owns is read by that one: what it has by now. */
async function sourceOf({ terminal }: Call<NoFlags>, named: string): Promise<Pick<Way, "from" | "token">> {
  const { DROVER_TOKEN: given } = terminal.env;
  const directory = directoryIn(named);
  const server = directory === null ? null : await liveServer(directory, terminal.fetch);
  if (server === null) return { from: named, token: given };
  terminal.err(`A server runs on ${plain(directory ?? "")}: what it has by now is copied from ${plain(server.url)}.\n`);
  return { from: server.url, token: given ?? server.token };
}

type Way = {
  readonly from: string;
  readonly to: string;
  /** Of a server that is read. */
  readonly token: string | undefined;
  readonly signal: AbortSignal;
};
/** A journal has no files, neither to give nor to take. */
async function takeFiles({ terminal }: Call<NoFlags>, { from, to, token, signal }: Way): Promise<FilesCopied> {
  const directory = directoryIn(to);
  const origin = directoryIn(from);
  const isServer = /^https?:/.test(from);
  if (directory === null || (origin === null && !isServer)) return { files: 0, fileBytes: 0, missing: [] };
  const { copyFiles, readContent } = await import("../../engine/files/index.ts");
  const login = token === undefined ? {} : { token };
  const client = isServer ? createClient({ url: from, ...login, fetch: terminal.fetch }) : null;
  async function* open(hash: string): AsyncGenerator<Uint8Array> {
    yield* client === null ? await readContent(origin ?? "", hash) : client.files.open(hash, { signal });
  }
  const bar = progressOf("copy", "files", terminal);
  try {
    return await copyFiles(directory, { open, signal, onProgress: bar.at });
  } finally {
    bar.end();
  }
}

const directoryIn = (url: string): string | null => (url.startsWith("sqlite:") ? url.slice("sqlite:".length) : null);

/** What has no scheme is a directory. */
const urlOf = (name: string, cwd: string): string => {
  const [, scheme, path = ""] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(name) ?? [];
  if (scheme === undefined) return `sqlite:${resolve(cwd, name)}`;
  return scheme === "sqlite" && path !== "" ? `sqlite:${resolve(cwd, path.replace(/^\/\//, ""))}` : name;
};

function shownReport(report: CopyReport & FilesCopied, { paint }: Output): string {
  const { from, to, head, events, bytes: size, files, fileBytes, missing } = report;
  const what = events === 0 ? "has all of it already" : `has ${count(events)} more events (${bytes(size)}) now`;
  const done = `${plain(to)} ${what}, and ends where ${plain(from)} does`;
  const along = files === 0 ? "" : `  ${count(files)} files of tasks (${bytes(fileBytes)}) went along\n`;
  const lines = missing.slice(0, SHOWN_MAX).map(({ path, task, why }) => `  ${plain(`${path} of ${task}: ${why}`)}\n`);
  const not = missing.length === 0 ? "" : `  ${count(missing.length)} files of tasks could not be copied:\n`;
  const mark = missing.length === 0 ? paint("green", "✔") : paint("red", "✘");
  return `${mark} ${done}\n  head ${head.seq}:${head.hash}\n${along}${not}${lines.join("")}`;
}

async function problemOf(error: unknown): Promise<unknown> {
  const { LogFailure } = await import("../../log/index.ts");
  if (!(error instanceof LogFailure)) return error;
  return new CliProblem({ message: error.message, code: `log_${error.code}`, exit: EXITS[error.code] ?? EXIT.broken });
}

const EXITS: Readonly<Record<string, ExitCode>> = {
  corrupt: EXIT.failed,
  unreachable: EXIT.unreachable,
  refused: EXIT.refused,
  diverged: EXIT.refused,
  pruned: EXIT.refused,
  "journal-full": EXIT.noRoom,
};
