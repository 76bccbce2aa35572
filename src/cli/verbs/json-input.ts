/**
 * JSON that a person gives a verb: on the command line, in a file (`@file`), or on standard input (`-`).
 */
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { usageProblem } from "../shell/problem.ts";
import type { Terminal } from "../shell/terminal.ts";

/** More than the server takes; what is larger belongs into a file whose path the task has. */
const BYTES_MAX = 16 * 1024 * 1024;

export async function readJson(flag: string, given: string, terminal: Terminal): Promise<unknown> {
  const { text, from } = await textOf(flag, given, terminal);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const hint = `such as ${flag} '{"path": "src"}', ${flag} @file.json, or ${flag} - for standard input`;
    throw usageProblem(`${flag}: ${from} is not JSON: ${error.message}`, hint);
  }
}

export async function readJsonObject(
  flag: string,
  given: string,
  terminal: Terminal,
): Promise<Record<string, unknown>> {
  const value = await readJson(flag, given, terminal);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw usageProblem(`${flag} must be a JSON object, such as '{"path": "src"}'`);
}

async function textOf(flag: string, given: string, terminal: Terminal): Promise<{ text: string; from: string }> {
  if (given === "-") return { text: await terminal.readInput(BYTES_MAX), from: "standard input" };
  if (!given.startsWith("@")) return { text: given, from: "its value" };
  const file = given.slice(1);
  try {
    const path = resolve(terminal.cwd, file);
    if (statSync(path).size > BYTES_MAX) throw usageProblem(`${flag}: ${file} is larger than ${BYTES_MAX} bytes`);
    return { text: readFileSync(path, "utf8"), from: file };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw usageProblem(`${flag}: ${file} cannot be read: ${code === "ENOENT" ? "there is no such file" : code}`);
  }
}
