/**
 * The work that a task brings in its `params.work`, as it came over the wire.
 *
 * A server writes it from a plan that it has read; a caller may also write it by hand. What is absent has its default.
 */
import { fail, ok, type Refusal, type Result } from "../../core/base/index.ts";
import { readShape } from "../../protocol/index.ts";
import * as s from "../../protocol/schema/index.ts";
import { type Command, type PlanWorktree, PRESET_NAMES, type Work } from "./work.ts";

type Given = Omit<Partial<Work>, "command" | "worktree"> & {
  readonly command: Readonly<Record<string, unknown>>;
  readonly worktree?: Partial<PlanWorktree> | null;
};

const TEXT_MAX = 1024 * 1024;
const WORDS_MAX = 10_000;
const BASE = "HEAD";
const text = (min: number = 0): s.Schema<string> => s.text(min, TEXT_MAX);
const words = (min: number = 0): s.Schema<readonly string[]> => s.list(text(), { min, max: WORDS_MAX });

const SHAPE: s.Schema<Given> = s.object<Given>({
  command: s.anyObject(),
  cwd: s.optional(text(1)),
  env: s.optional(s.table(text())),
  passEnv: s.optional(words()),
  input: s.optional(text()),
  worktree: s.optional(
    s.nullable(
      s.object<Partial<PlanWorktree>>({
        base: s.optional(text(1)),
        from: s.optional(text(1)),
        merge: s.optional(words()),
      }),
    ),
  ),
  if: s.optional(text(1)),
  until: s.optional(text(1)),
  outputs: s.optional(words()),
});

type Kind = Command["kind"];
const COMMANDS: { readonly [Name in Kind]: s.Schema<Extract<Command, { readonly kind: Name }>> } = {
  line: s.object({ kind: s.oneOf("line"), line: text(1) }),
  words: s.object({ kind: s.oneOf("words"), words: words(1) }),
  agent: s.object({
    kind: s.oneOf("agent"),
    preset: s.oneOf(...PRESET_NAMES),
    prompt: text(1),
    model: s.nullable(text(1)),
    args: words(),
  }),
  call: s.object({ kind: s.oneOf("call"), action: text(1), params: s.anyObject() }),
  nothing: s.object({ kind: s.oneOf("nothing") }),
};
const KIND: s.Schema<{ readonly kind: Kind }> = s.answer({
  kind: s.oneOf("line", "words", "agent", "call", "nothing"),
});

/** `at` is where it stood. */
export function readWork(value: unknown, at: string): Result<Work, Refusal> {
  const read = readShape(SHAPE, value, at);
  if (!read.ok) return read;
  const { worktree = null, ...given } = read.value;
  const command = readCommand(given.command, `${at}.command`);
  if (!command.ok) return command;
  return ok({
    cwd: ".",
    env: {},
    passEnv: [],
    input: "",
    ...given,
    command: command.value,
    worktree: worktree === null ? null : { base: BASE, ...worktree },
  });
}

function readCommand(value: unknown, at: string): Result<Command, Refusal> {
  const kind = readShape(KIND, value, at);
  return kind.ok ? readShape<Command>(COMMANDS[kind.value.kind] as s.Schema<Command>, value, at) : fail(kind.failure);
}
