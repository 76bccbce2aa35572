/**
 * A variable for a command, as it is written: `NAME=value`, or `NAME` alone for the one of that name outside.
 *
 * Drover's own names cannot be given: one of them is the tag by which what a run leaves behind is found.
 */

/** A name to let through, or a name and its value. */
export type EnvironmentAddition = { readonly name: string; readonly value: string | null };

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const RESERVED = new RegExp(
  "^DROVER_(RUN_(ID|PATH|TOKEN)|(TASK|SESSION)_ID|ATTEMPT|ROUND|" +
    "(TASK|RESULT|INPUTS)_FILE|INPUTS_DIR|WORKSPACE|BRANCH|BASE)$",
);

export function readAddition(text: string): EnvironmentAddition {
  const [, name = "", value] = /^([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
  if (!NAME.test(name)) throw new Error(`env: "${text}" is neither NAME nor NAME=value`);
  if (RESERVED.test(name)) throw new Error(`env: ${name} is set by Drover for every task and cannot be given`);
  if (value?.includes("\0")) throw new Error(`env: the value of ${name} holds a zero byte`);
  return { name, value: value ?? null };
}
