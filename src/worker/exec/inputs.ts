/**
 * What a command sees of the tasks that its own needs: `inputs` in its task document, the same as a file, and the files
 * they left.
 *
 * Files lie in the directory of inputs, under the name of their need and the path they had. A result that is too large
 * to be handed along comes by hash and size alone: it is fetched like a file, and its path stands in its place. All of
 * it lies there before the command starts. Names come from other machines, and are checked again here.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import type { FileRef, Input, Inputs } from "../../protocol/index.ts";
import { isSafePath, OWN_FILE_MODE, referenceIn } from "../../std/index.ts";
import { fileNameOf } from "../output/safe-name.ts";
import type { RunPlace } from "../process/runs.ts";
import type { FileCache } from "./file-cache.ts";

/** The content of a file that a need has left. */
export type ReadFile = (hash: string) => AsyncIterable<Uint8Array>;

const RESULT = "result.json";

/** The inputs as the command is to see them, once all that belongs to them lies where they say. */
export async function layInputs(
  inputs: Inputs,
  place: Pick<RunPlace, "inputsFile" | "inputsDirectory">,
  { cache, readFile }: { readonly cache: FileCache; readonly readFile: ReadFile },
): Promise<Inputs> {
  const laid: [string, Input][] = [];
  await mkdir(place.inputsDirectory, { recursive: true, mode: 0o700 });
  for (const [key, input] of Object.entries(inputs)) laid.push([key, await layOne(key, input)]);
  const all = Object.fromEntries(laid);
  await writeFile(place.inputsFile, `${JSON.stringify(all)}\n`, { mode: OWN_FILE_MODE });
  return all;

  async function layOne(key: string, input: Input): Promise<Input> {
    const directory = join(place.inputsDirectory, fileNameOf(key));
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const { files = [] } = input;
    for (const file of files) await cache.lay(file, pathOf(directory, file), readFile);
    const elsewhere = referenceIn(input.result);
    if (elsewhere === null) return input;
    // A file of that name has the name.
    const isTaken = files.some(({ path }) => path.split("/")[0]?.toLowerCase() === RESULT);
    const file = isTaken ? `${directory}+${RESULT}` : join(directory, RESULT);
    await cache.lay(elsewhere, file, readFile);
    return { ...input, result: { file } };
  }
}

/** The inputs with every result in its place, for whoever looks into them. */
export async function wholeInputs(inputs: Inputs, readFile: ReadFile = noFiles): Promise<Inputs> {
  const whole: [string, Input][] = [];
  for (const [key, input] of Object.entries(inputs)) {
    const elsewhere = referenceIn(input.result);
    whole.push([key, elsewhere === null ? input : { ...input, result: await json(readFile(elsewhere.hash)) }]);
  }
  return Object.fromEntries(whole);
}

export function noFiles(): never {
  throw new Error("this worker has no way to read files");
}

function pathOf(directory: string, { path }: FileRef): string {
  if (!isSafePath(path)) throw new Error(`the file ${path} cannot be laid: its path leads elsewhere`);
  return join(directory, ...path.split("/"));
}
