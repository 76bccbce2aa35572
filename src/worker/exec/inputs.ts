/**
 * What a command sees of the tasks that its own needs: `inputs` in its task document, and the same as a file.
 *
 * A result that is too large to be handed along comes by hash and size alone. It is fetched before the command starts,
 * laid into the directory of inputs under the name of its need, and its path stands in its place. Where it cannot be
 * read (this worker's token may not) the hash stays, and the worker is warned.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "../../core/base/index.ts";
import type { Input, Inputs } from "../../protocol/index.ts";
import { fileNameOf } from "../output/safe-name.ts";
import type { RunPlace } from "../process/runs.ts";

/** Reads the result of a task; undefined if it may not be read. */
export type ReadResult = (taskId: string) => Promise<unknown>;

const PRIVATE = 0o600;

/** The inputs as the command is to see them, once all that belongs to them lies where they say. */
export async function layInputs(
  inputs: Inputs,
  place: Pick<RunPlace, "inputsFile" | "inputsDirectory">,
  { readResult, warn }: { readonly readResult: ReadResult; readonly warn: (text: string) => void },
): Promise<Inputs> {
  const laid: [string, Input][] = [];
  for (const [key, input] of Object.entries(inputs)) laid.push([key, await layOne(key, input)]);
  const all = Object.fromEntries(laid);
  await mkdir(place.inputsDirectory, { recursive: true, mode: 0o700 });
  await writeFile(place.inputsFile, `${JSON.stringify(all)}\n`, { mode: PRIVATE });
  return all;

  async function layOne(key: string, input: Input): Promise<Input> {
    if (!isElsewhere(input.result)) return input;
    const result = await readResult(input.taskId);
    if (result === undefined) {
      warn(`the result of ${input.taskId} is too large to be handed along, and this worker may not read it`);
      return input;
    }
    const directory = join(place.inputsDirectory, fileNameOf(key));
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const file = join(directory, "result.json");
    await writeFile(file, JSON.stringify(result), { mode: PRIVATE });
    return { ...input, result: { file } };
  }
}

/** The inputs with every result in its place, for whoever looks into them. */
export async function wholeInputs(inputs: Inputs, readResult: ReadResult): Promise<Inputs> {
  const whole: [string, Input][] = [];
  for (const [key, input] of Object.entries(inputs)) {
    const isWhole = !isElsewhere(input.result);
    whole.push([key, isWhole ? input : { ...input, result: await readResult(input.taskId) }]);
  }
  return Object.fromEntries(whole);
}

/** Whether a result stands for one that was too large: `{ file: { hash, size } }` and nothing else. */
function isElsewhere(result: unknown): boolean {
  if (!isRecord(result) || Object.keys(result).join() !== "file" || !isRecord(result.file)) return false;
  const { hash, size, ...more } = result.file;
  return typeof hash === "string" && typeof size === "number" && Object.keys(more).length === 0;
}
