/**
 * Which server a plan joins: the one that is named, else the one that owns the data directory beside the plan.
 *
 * The nearest directory counts, from that of the plan up to where the command is given. A server that has gone is no
 * server: then the plan runs alone, and is told so. So does one that a task runs: the token of an attempt puts no plan.
 */
import { dirname, join, relative } from "node:path";
import { addressFromEnv } from "../../client/index.ts";
import { ATTEMPT_TOKEN } from "../../protocol/index.ts";
import { isThere, OWN_DATA, readServerFile } from "../shell/server-file.ts";
import type { Terminal } from "../shell/terminal.ts";
import { shortPath } from "../shell/text.ts";

export type ServerChoice = {
  readonly url: string;
  /** What opens it, if not DROVER_TOKEN. */
  readonly token?: string;
  /** Who says so: a flag, a variable or a file. */
  readonly by: string;
  /** The data directory that named it; null if a person did. */
  readonly directory: string | null;
};

/** Null: none, and the plan runs alone. `noted` hears of one that has gone. */
export async function findServer(given: {
  readonly url: string | undefined;
  readonly terminal: Pick<Terminal, "env" | "cwd" | "fetch">;
  /** That of the plan. */
  readonly directory: string;
  readonly noted: (text: string) => void;
}): Promise<ServerChoice | null> {
  const { terminal, directory, noted } = given;
  const { url: named, token } = addressFromEnv(terminal.env);
  if (given.url !== undefined) return { url: given.url, by: "--url", directory: null };
  if (named !== undefined && token?.startsWith(ATTEMPT_TOKEN) === true) {
    noted("DROVER_TOKEN is that of a task, which submits children and puts no plan");
    return null;
  }
  if (named !== undefined) return { url: named, by: "DROVER_URL", directory: null };
  for (const one of directoriesFrom(directory, terminal.cwd)) {
    const data = join(one, OWN_DATA);
    const said = readServerFile(data);
    if (said === null) continue;
    const by = shortPath(join(data, "server.json"), terminal.cwd);
    if (await isThere(said, terminal.fetch)) return { url: said.url, by, directory: data };
    noted(`the server that ${by} names is gone`);
  }
  return null;
}

/** From the directory of the plan up to the one of the command; where that is not above it, these two. */
function directoriesFrom(directory: string, cwd: string): readonly string[] {
  const below = relative(cwd, directory);
  if (below === "") return [directory];
  if (below.startsWith("..")) return [directory, cwd];
  const all = [directory];
  for (let at = directory; at !== cwd && at !== dirname(at); ) {
    at = dirname(at);
    all.push(at);
  }
  return all;
}
