/**
 * Listens to what a child prints, and keeps what matters of it.
 *
 * Progress and usage go to the caller of the attempt as they come; a session is written down the moment it is seen; the
 * latest result, the latest line that is JSON, and what the tool says went wrong are kept for the end. Nothing a child
 * prints can make this throw, or the whole worker would end by it: what makes no sense is left out, and told once.
 */

import { isRecord } from "../../core/base/index.ts";
import type { Usage } from "../../protocol/index.ts";
import {
  type Failure,
  grownUsage,
  type Line,
  type LineReader,
  NOTHING,
  readUsage,
  type Said,
  saysRateLimited,
} from "../output/events.ts";
import { shorten } from "../output/lines.ts";
import type { Redactor } from "../output/redact.ts";
import type { ExecContext } from "./contract.ts";
import { isShallow } from "./result.ts";

type HeardOutput = {
  usage: Usage | null;
  result: { readonly value: unknown } | null;
  lastJson: { readonly value: unknown } | null;
  failure: Failure | null;
  isSessionGone: boolean;
  /** A line on stderr was a provider's 429 or 529. */
  isRateLimited: boolean;
};
export type Listener = {
  line(stream: "out" | "err", text: string, lostBytes: number): void;
  readonly heard: Readonly<HeardOutput>;
};

/** Progress travels with every sync and is kept in memory: more than this is cut. */
const PROGRESS_MAX = 8 * 1024;
const EVENTS: ReadonlySet<unknown> = new Set(["progress", "usage", "heartbeat"]);

export function createListener(options: {
  readonly read: LineReader;
  readonly context: Pick<ExecContext, "progress" | "usage">;
  readonly redact: Redactor;
  onSession(sessionId: string): void;
  /** The first thing it printed that makes no sense. */
  onProblem(problem: string): void;
}): Listener {
  const { read, context, redact, onSession } = options;
  let hasProblem = false;
  const heard: HeardOutput = {
    usage: null,
    result: null,
    lastJson: null,
    failure: null,
    isSessionGone: false,
    isRateLimited: false,
  };

  function complain(problem: string): void {
    if (!hasProblem) options.onProblem(problem);
    hasProblem = true;
  }

  /** A reader may be somebody else's, and then it may do anything. */
  function understood(line: Line): Said {
    try {
      const { usage, progress, ...said } = read(line);
      const shown = progress === undefined ? {} : { progress: boundedProgress(progress, redact) };
      return { ...said, ...shown, ...readUsage(usage) };
    } catch (error) {
      complain(`a line was not understood: ${error instanceof Error ? error.message : "its reader failed"}`);
      return NOTHING;
    }
  }

  function take(said: Said): void {
    if (said.problem !== undefined) complain(said.problem);
    if (said.sessionId !== undefined) onSession(said.sessionId);
    if (said.isSessionGone === true) heard.isSessionGone = true;
    if (said.result !== undefined) heard.result = said.result;
    if (said.failure !== undefined) heard.failure = said.failure;
    if (said.usage !== undefined) {
      heard.usage = grownUsage(heard.usage ?? {}, said.usage);
      context.usage(heard.usage);
    }
    if (said.progress !== undefined) context.progress(said.progress);
  }

  return {
    heard,
    line(stream, text, lostBytes) {
      const value = stream === "out" && lostBytes === 0 ? parseJson(text) : undefined;
      const json = isRecord(value) ? value : null;
      if (stream === "err" && saysRateLimited(text)) heard.isRateLimited = true;
      if (value !== undefined && !EVENTS.has(json?.type)) heard.lastJson = { value };
      take(understood({ stream, text, json }));
    },
  };
}

/** Objects and lists only: a number on a line of its own is rather a count that somebody printed. */
function parseJson(text: string): unknown {
  const first = text.trimStart()[0];
  if (first !== "{" && first !== "[") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function boundedProgress(value: unknown, redact: Redactor): unknown {
  if (!isShallow(value)) return "(nested too deeply to be shown)";
  const text = JSON.stringify(value) ?? "null";
  return text.length <= PROGRESS_MAX ? redact.value(value) : shorten(redact.line(text), PROGRESS_MAX);
}
