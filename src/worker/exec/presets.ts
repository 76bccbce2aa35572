/**
 * The coding agents people run, ready to use: how each is started, told its task, read and continued.
 *
 * A preset is a pure function from a task to a command line. The prompt is `params.prompt`, else the payload (a text,
 * or its `prompt`), else the action; it travels on stdin or in a file, never as a word of the command line, where it
 * could be taken for an option or be too long. What the worker's owner wants in addition (permissions, a sandbox, a
 * model) are words of his own, put behind ours. A task may choose a model; it may not choose options.
 *
 * Each has a reader for what the tool prints, because each counts tokens and names its sessions in its own way.
 */

import { isRecord } from "../../core/base/index.ts";
import type { PresetName } from "../../plan/work/index.ts";
import type { Usage } from "../../protocol/index.ts";
import {
  addUsage,
  createEventReader,
  type Failure,
  type LineReader,
  NOTHING,
  readUsage,
  type Said,
  saysRateLimited,
  textOr,
} from "../output/events.ts";
import { shorten } from "../output/lines.ts";
import type { ExecTask } from "./contract.ts";

export type Invocation = {
  readonly argv: readonly string[];
  /** For its stdin; without it the task's JSON. */
  readonly stdin?: string;
  /** To be written to the prompt file. */
  readonly promptFile?: string;
  /** Beside what every child is given. */
  readonly env?: Readonly<Record<string, string>>;
  /** A reader for one attempt. */
  createReader(): LineReader;
};
type InvocationFacts = {
  /** Words behind ours. */
  readonly args: readonly string[];
  /** The session an earlier attempt of the task had open. */
  readonly sessionId?: string;
  readonly promptFile: string;
};
export type Preset = (task: ExecTask, facts: InvocationFacts) => Invocation;

const PROGRESS_TEXT_MAX = 200;
/** Messages of an agent whose usage may still change; what is older is summed up. */
const MESSAGES_OPEN_MAX = 64;
/** Of a moment, though no limit of rate. */
const PASSING = /\b503\b/;

export const PRESETS: Readonly<Record<PresetName, Preset>> = { claude, codex, aider };

export function promptOf({ params, payload, action }: ExecTask): string {
  const inPayload = typeof payload === "string" ? payload : isRecord(payload) ? payload.prompt : undefined;
  return textOr(params?.prompt, "") || textOr(inPayload, "") || action;
}

/** What the round before left, behind the prompt. */
function withNote(task: ExecTask): string {
  return [roundPrompt(task), ...answered(task)].join("\n\n");
}

/** What a person has said. */
function answered({ approval }: ExecTask): string[] {
  if (approval?.at === undefined) return [];
  const asked = approval.question === undefined ? "" : ` You asked: ${approval.question}`;
  return [`A person has approved this.${asked}${approval.note === undefined ? "" : `\nThe answer: ${approval.note}`}`];
}

function roundPrompt(task: ExecTask): string {
  const { number, max, note } = task.round ?? { number: 1, max: 1 };
  if (number === 1) return promptOf(task);
  const said = note === undefined ? "was not enough." : `was not enough. This came of it:\n\n${note}`;
  return `${promptOf(task)}\n\nThis is round ${number} of at most ${max}. The round before ${said}`;
}

/** A session knows the task already, but not that it was interrupted, nor what came of its last round. */
function promptIn(task: ExecTask, sessionId: string | undefined): string {
  const isAnswered = (task.round?.number ?? 1) > 1 || task.approval?.at !== undefined;
  if (sessionId === undefined || isAnswered) return withNote(task);
  return `Your work on this was interrupted. Look at what is there, then go on and finish it.\n\n${promptOf(task)}`;
}

function modelArgs({ params }: ExecTask): string[] {
  const model = params?.model;
  return typeof model === "string" && /^[\w][\w.:/@[\]-]{0,199}$/.test(model) ? ["--model", model] : [];
}

function claude(task: ExecTask, { args, sessionId }: InvocationFacts): Invocation {
  const resume = sessionId === undefined ? [] : ["--resume", sessionId];
  return {
    argv: ["claude", "-p", "--output-format", "stream-json", "--verbose", ...modelArgs(task), ...resume, ...args],
    stdin: promptIn(task, sessionId),
    createReader: createClaudeReader,
  };
}

/**
 * Each message repeats its usage on every line it is spread over, so the latest per message counts once; the sum is
 * what is known while it runs, and the last line has the total.
 */
function createClaudeReader(): LineReader {
  const readEvent = createEventReader();
  const seen: ClaudeMessages = { open: new Map(), older: {}, turns: 0 };
  return (line) => {
    if (/No conversation found with session ID/i.test(line.text)) return { ...readEvent(line), isSessionGone: true };
    const { json } = line;
    if (json?.type === "assistant" && isRecord(json.message)) {
      return { ...readEvent(line), ...readClaudeMessage(json.message, seen) };
    }
    const said = readEvent(line);
    return said.failure ? { ...said, failure: withProviderFault(said.failure.error) } : said;
  };
}

type ClaudeMessages = { readonly open: Map<string, Usage>; older: Usage; turns: number };

function readClaudeMessage(message: Record<string, unknown>, seen: ClaudeMessages): Said {
  const { usage, ...problem } = readUsage(message.usage);
  const id = textOr(message.id, "");
  if (!seen.open.has(id)) seen.turns += 1;
  seen.open.set(id, usage ?? seen.open.get(id) ?? {});
  const [first] = seen.open;
  if (first !== undefined && seen.open.size > MESSAGES_OPEN_MAX) {
    seen.older = addUsage(seen.older, first[1]);
    seen.open.delete(first[0]);
  }
  const blocks = Array.isArray(message.content) ? message.content.filter(isRecord) : [];
  const text = blocks.findLast((block) => block.type === "text")?.text;
  const tool = blocks.findLast((block) => block.type === "tool_use")?.name;
  const progress = {
    turns: seen.turns,
    ...(typeof text === "string" ? { text: shorten(text, PROGRESS_TEXT_MAX) } : {}),
    ...(typeof tool === "string" ? { tool } : {}),
  };
  return { progress, usage: [...seen.open.values()].reduce(addUsage, seen.older), ...problem };
}

function codex(task: ExecTask, { args, sessionId }: InvocationFacts): Invocation {
  const resume = sessionId === undefined ? [] : ["resume", sessionId];
  return {
    argv: ["codex", "exec", "--json", ...modelArgs(task), ...args, ...resume, "-"],
    stdin: promptIn(task, sessionId),
    createReader: createCodexReader,
  };
}

/** The last message is the answer; a turn that completes tells its tokens; one that fails says why. */
function createCodexReader(): LineReader {
  const seen = { usage: {} as Usage, message: "", sessionId: "" };
  return ({ json }) => {
    switch (json?.type) {
      case "thread.started":
        seen.sessionId = textOr(json.thread_id, "");
        return seen.sessionId === "" ? NOTHING : { sessionId: seen.sessionId };
      case "item.completed":
        return readCodexItem(json.item, seen);
      case "turn.completed": {
        const { usage = {}, ...problem } = readUsage(json.usage);
        seen.usage = addUsage(seen.usage, usage);
        const result = { value: { result: seen.message, sessionId: seen.sessionId } };
        return { usage: seen.usage, failure: null, result, ...problem };
      }
      case "turn.failed":
        return {
          failure: withProviderFault(isRecord(json.error) ? textOr(json.error.message, "it failed") : "it failed"),
        };
      case "error":
        return { failure: withProviderFault(textOr(json.message, "it failed")) };
      default:
        return NOTHING;
    }
  };
}

function readCodexItem(item: unknown, seen: { message: string }): Said {
  if (!isRecord(item)) return NOTHING;
  if (item.type === "agent_message") seen.message = textOr(item.text, seen.message);
  const text = textOr(item.text, "") || textOr(item.command, "");
  return {
    progress: { step: textOr(item.type, "item"), ...(text === "" ? {} : { text: shorten(text, PROGRESS_TEXT_MAX) }) },
  };
}

function aider(task: ExecTask, { args, promptFile }: InvocationFacts): Invocation {
  const quiet = ["--yes-always", "--no-pretty", "--no-stream", "--no-check-update", "--no-fancy-input"];
  return {
    argv: ["aider", "--message-file", promptFile, ...quiet, ...modelArgs(task), ...args],
    stdin: "",
    promptFile: withNote(task),
    createReader: createAiderReader,
  };
}

const AIDER_TOKENS =
  /Tokens: ([\d.]+[kM]?) sent(?:, ([\d.]+[kM]?) cache write)?(?:, [\d.]+[kM]? cache hit)?, ([\d.]+[kM]?) received/;

/** It speaks to people: tokens per message, rounded to thousands. */
function createAiderReader(): LineReader {
  let usage: Usage = {};
  return ({ text }) => {
    const [, sent, written, received] = AIDER_TOKENS.exec(text) ?? [];
    if (sent === undefined || received === undefined) return NOTHING;
    const cache = written === undefined ? {} : { cacheCreationTokens: rounded(written) };
    const said = readUsage({ inputTokens: rounded(sent), outputTokens: rounded(received), ...cache });
    usage = addUsage(usage, said.usage ?? {});
    return { ...said, usage };
  };
}

function rounded(text: string): number {
  const unit = text.endsWith("M") ? 1_000_000 : text.endsWith("k") ? 1000 : 1;
  return Math.round(Number.parseFloat(text) * unit);
}

/** A provider that is overloaded or out of quota is no failure of the task. */
function withProviderFault(error: string): Failure {
  const isRateLimited = saysRateLimited(error);
  if (!isRateLimited && !PASSING.test(error)) return { error };
  const [, seconds] = /try again in (\d{1,9}(?:\.\d{1,9})?) ?s/i.exec(error) ?? [];
  const ms = Math.ceil(Number(seconds) * 1000);
  return { error, later: { isRateLimited, ...(Number.isFinite(ms) ? { retryAfterMs: ms } : {}) } };
}
