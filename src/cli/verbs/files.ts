/**
 * `drover files TASK`: what a task has left; with --get one of them, as a file of this machine.
 *
 * A file that is there already stays as it is: what a task has written must not take the place of a person's own.
 */
import { open, rm } from "node:fs/promises";
import { basename, resolve } from "node:path";
import type { FileRef } from "../../protocol/index.ts";
import { idOf } from "../shell/connection.ts";
import type { Output } from "../shell/output.ts";
import { CliProblem, EXIT, type ExitCode, usageProblem } from "../shell/problem.ts";
import { plain } from "../shell/text.ts";
import type { Call, VerbBody } from "../shell/verb.ts";
import { bytes } from "../show/time.ts";
import { named, TASK_ARGUMENT } from "./named.ts";

type Flags = { readonly get?: string; readonly out?: string };

export const filesVerb: VerbBody<Flags> = {
  takes: [{ name: "<id>", about: TASK_ARGUMENT }],
  flags: [
    { flags: "-g, --get <path>", about: "fetch the one with this path; it is written to a file of the same name here" },
    { flags: "-o, --out <file>", about: "write it to this file instead; it must not be there yet" },
  ],
  examples: [
    ["drover files tsk_12", "what it has left"],
    ["drover files release/spec", "of a task of a plan, on a server or run alone"],
    ["drover files tsk_12 --get spec.md", "one of them, as ./spec.md"],
    ["drover files tsk_12 --get report/all.pdf --out all-2.pdf", "one of them, under another name"],
  ],
  run: (call) => (call.flags.get === undefined ? list(call) : fetchOne(call, call.flags.get)),
};

async function list(call: Call<Flags>): Promise<ExitCode> {
  if (call.flags.out !== undefined) throw usageProblem("--out is for --get", "say which: --get PATH");
  const { calls, id } = await named(call, idOf(call));
  const { taskId, files = [] } = await calls.task(id);
  call.output.answer({ taskId, files }, () => shown(files, call.output));
  return EXIT.ok;
}

function shown(files: readonly FileRef[], { table }: Output): string {
  if (files.length === 0) return "It has left no files.\n";
  return table(files, [
    { title: "PATH", of: ({ path }) => path, shrinks: true },
    { title: "SIZE", of: ({ size }) => bytes(size), align: "right" },
    { title: "HASH", of: ({ hash }) => hash },
  ]);
}

async function fetchOne(call: Call<Flags>, path: string): Promise<ExitCode> {
  const word = idOf(call);
  const { calls, id } = await named(call, word);
  const { files = [] } = await calls.task(id);
  const file = files.find((one) => one.path === path);
  if (file === undefined)
    throw new CliProblem({
      message: `${word} has left no file ${path}`,
      code: "not_found",
      exit: EXIT.refused,
      hint: files.length === 0 ? "it has left none" : `it has left ${files.map((one) => one.path).join(", ")}`,
    });
  const target = resolve(call.terminal.cwd, call.flags.out ?? basename(path));
  await writeNew(target, calls.files.open(file.hash, { task: id }));
  call.output.answer({ ...file, file: target }, () => `${plain(target)}  ${bytes(file.size)}\n`);
  return EXIT.ok;
}

/** All of it or nothing; what is there is never touched. */
async function writeNew(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, "wx").catch((error: NodeJS.ErrnoException) => {
    const why = error.code === "EEXIST" ? "it is there already" : (error.code ?? error.message);
    throw usageProblem(`${path} cannot be written: ${why}`, "name another with --out FILE");
  });
  try {
    for await (const chunk of content) await file.writeFile(chunk);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}
