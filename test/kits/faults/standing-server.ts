/**
 * Servers in processes of their own, one after the other on the same directory: the next stands ready while the last
 * one still serves, so that a test may kill many.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

export type Life = { readonly child: ChildProcess; readonly begin: () => Promise<string> };

/** A process that has loaded everything and waits for its turn. */
export function standBy(directory: string): Life {
  const path = join(import.meta.dirname, "server-process.ts");
  const child = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", path, directory], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { NODE_COMPILE_CACHE: join(directory, "compiled"), ...process.env },
  });
  const begin = async (): Promise<string> => {
    const line = once(createInterface({ input: child.stdout as NodeJS.ReadableStream }), "line");
    child.stdin?.write("begin\n");
    const [url] = (await Promise.race([line, once(child, "exit").then(() => [""])])) as [string];
    assert.match(url, /^http:/, "the server could not start again");
    return url;
  };
  return { child, begin };
}
