/**
 * What a worker does, on the terminal of the person who started it: a line when a task begins, and one when it ends.
 *
 * Only where a person reads standard error: in a log the server's own lines say it, and --quiet is for who does not
 * want it. The words are those of a run (`drover run`).
 */
import type { ExecTask } from "../../worker/exec/index.ts";
import type { ExecOutcome } from "../../worker/index.ts";
import type { Terminal } from "../shell/terminal.ts";
import { padEnd, painter, plain, type Tint } from "../shell/text.ts";
import type { GlobalFlags } from "../shell/verb.ts";
import { span } from "../show/time.ts";

export type QuietFlag = { readonly quiet?: boolean };
type TaskLines = (task: ExecTask, run: () => Promise<ExecOutcome>) => Promise<ExecOutcome>;

const WORDS: Readonly<Record<ExecOutcome["outcome"] | "start", readonly [word: string, tint: Tint]>> = {
  start: ["start", "dim"],
  done: ["done", "green"],
  failed: ["failed", "red"],
  cancelled: ["cancelled", "yellow"],
  requeue: ["again", "yellow"],
  again: ["again", "yellow"],
  ask: ["asks", "yellow"],
  skipped: ["skipped", "yellow"],
};
const WORD_WIDTH = 9;
const TEXT_MAX = 200;

export function taskLines(terminal: Terminal, { quiet, json, color }: QuietFlag & GlobalFlags): TaskLines {
  if (!terminal.isErrorTerminal || quiet === true || json === true) return (_, run) => run();
  const paint = painter(terminal.errorsHaveColours && color !== false);
  const line = (what: keyof typeof WORDS, details: readonly string[]): void => {
    const [word, tint] = WORDS[what];
    const text = details.filter((one) => one !== "").map((one) => plain(one.slice(0, TEXT_MAX)));
    terminal.err(`${paint(tint, padEnd(word, WORD_WIDTH))} ${text.join("  ")}\n`);
  };
  return async (task, run) => {
    const { taskId, attempt, action } = task;
    const begunAt = terminal.now();
    line("start", [taskId, action, attempt > 1 ? `(attempt ${attempt})` : ""]);
    const outcome = await run();
    line(outcome.outcome, [taskId, span(terminal.now() - begunAt), outcome.error ?? outcome.note ?? ""]);
    return outcome;
  };
}
