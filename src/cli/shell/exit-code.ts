/**
 * What the exit code of `drover` means. Scripts rely on these numbers: a meaning may be added, never moved.
 *
 * The codes answer the question a script asks next: did the work fail (look at it), was the call wrong (mend the
 * script), is there nobody (start a server), does the state not allow it (read it first), or is there only no room
 * now (try again)?
 */

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  refused: 4,
  noRoom: 5,
  broken: 6,
  interrupted: 130,
  terminated: 143,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const EXIT_MEANINGS: readonly (readonly [code: ExitCode, name: string, meaning: string])[] = [
  [EXIT.ok, "ok", "it is done"],
  [EXIT.failed, "failed", "the work failed: a task did not end as done, a log is damaged, a law is broken"],
  [EXIT.usage, "usage", "the call is wrong: a flag, a field, a file, the config; the message names it"],
  [EXIT.unreachable, "unreachable", "no server answers there, or it is starting or stopping"],
  [EXIT.refused, "refused", "the server says no: no such thing, its state does not allow this, or no right to it"],
  [EXIT.noRoom, "no room", "the queue is full or a limit is reached: the same call may succeed later"],
  [EXIT.broken, "broken", "the server or this machine failed: a full disk, a directory in use, a bug"],
  [EXIT.interrupted, "interrupted", "Ctrl-C (SIGINT)"],
  [EXIT.terminated, "terminated", "SIGTERM"],
];

/** The text of `drover help exit-codes`. */
export function exitCodeHelp(): string {
  const rows = EXIT_MEANINGS.map(
    ([code, name, meaning]) => `  ${String(code).padStart(3)}  ${name.padEnd(12)} ${meaning}`,
  );
  return ["Exit codes", "", ...rows, ""].join("\n");
}
