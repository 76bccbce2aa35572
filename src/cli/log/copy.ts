/**
 * `drover log copy`: moves a history from one log to another: a data directory, etcd or PostgreSQL, to any of them.
 *
 * It reads and writes the logs themselves and needs no server. Each batch is checked on the way; what the other side
 * has already is passed over, so a copy that was broken off is begun again with the same command. A log is named by a
 * directory or a URL. A URL may have a password in it, so none is ever repeated: logs are called by what they say of
 * themselves.
 */
import { resolve } from "node:path";
import type { CopyReport } from "../../log/shared/index.ts";
import type { Output } from "../shell/output.ts";
import { CliProblem, EXIT, type ExitCode } from "../shell/problem.ts";
import { interruptible } from "../shell/terminal.ts";
import { plain } from "../shell/text.ts";
import type { Call, Verb, VerbBody } from "../shell/verb.ts";
import { progressOf } from "../show/progress.ts";
import { bytes, count } from "../show/time.ts";

/** A journal that cannot be reached at the beginning is most likely named wrongly. */
const OPENING_MS = 30_000;

type NoFlags = Record<never, never>;

const copy: Verb<NoFlags> = {
  name: "copy",
  summary: "copy a history to another log, checked on the way; again, to go on where it was broken off",
  about:
    "A log is a data directory, sqlite:PATH, etcd://HOST:2379,HOST:2379/PREFIX or postgres://USER:PASSWORD@HOST/DB.\n" +
    "FROM may be the URL of a server too: what it has by now is copied, with the token in $DROVER_TOKEN.\n" +
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
  const [from = "", to = ""] = args.map((name) => urlOf(name, terminal.cwd));
  const { copyLog } = await import("../../log/shared/index.ts");
  const bar = progressOf("copy", "events", terminal);
  try {
    const report = await copyLog(from, to, {
      signal,
      openingMs: OPENING_MS,
      token: terminal.env.DROVER_TOKEN ?? null,
      onNotice: (line) => {
        bar.end();
        terminal.err(`${plain(line)}\n`);
      },
      onProgress: bar.at,
    });
    bar.end();
    output.answer(report, () => shownReport(report, output));
    return EXIT.ok;
  } catch (error) {
    throw signal.aborted ? error : await problemOf(error);
  } finally {
    bar.end();
  }
}

/** What has no scheme is a directory. */
const urlOf = (name: string, cwd: string): string => {
  const [, scheme, path = ""] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(name) ?? [];
  if (scheme === undefined) return `sqlite:${resolve(cwd, name)}`;
  return scheme === "sqlite" && path !== "" ? `sqlite:${resolve(cwd, path.replace(/^\/\//, ""))}` : name;
};

function shownReport({ from, to, head, events, bytes: size }: CopyReport, { paint }: Output): string {
  const what = events === 0 ? "has all of it already" : `has ${count(events)} more events (${bytes(size)}) now`;
  const done = `${plain(to)} ${what}, and ends where ${plain(from)} does`;
  return `${paint("green", "✔")} ${done}\n  head ${head.seq}:${head.hash}\n`;
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
