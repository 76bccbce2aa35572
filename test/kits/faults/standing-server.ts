/**
 * Servers in processes of their own, one after the other on the same directory: the next stands ready while the last
 * one still serves, so that a test may kill many. Each is killed once enough of what it was asked is acknowledged.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { within } from "../waits.ts";

type Life = { readonly child: ChildProcess; readonly begin: () => Promise<string> };

/** A process that has loaded everything and waits for its turn. */
function standBy(directory: string): Life {
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

/**
 * `sizes` says, by turns, how much is acknowledged in one life: some die young, some in the thick of it. The last one
 * lives until `rest` is over.
 */
export function killedAgainAndAgain(directory: string, times: number, sizes: readonly number[]) {
  const acknowledged = new Set<string>();
  let now = Promise.withResolvers<string>();
  let hasEnough = (): void => {};
  let kills = 0;
  return {
    acknowledged,
    acknowledge: (id: string): void => {
      acknowledged.add(id);
      hasEnough();
    },
    /** Waits while none lives. */
    url: (): Promise<string> => now.promise,
    isLast: (): boolean => kills >= times,
    end: async (rest: (url: string) => Promise<void>): Promise<void> => {
      let next = standBy(directory);
      for (; kills < times; kills++) {
        const life = next;
        const url = await life.begin();
        next = standBy(directory);
        const enough = acknowledged.size + (sizes[kills % sizes.length] ?? 1);
        const lived = new Promise<void>((resolve) => {
          hasEnough = () => void (acknowledged.size >= enough && resolve());
        });
        now.resolve(url);
        await within("enough that is acknowledged", lived);
        now = Promise.withResolvers();
        life.child.kill("SIGKILL");
        await within("the end of a killed server", once(life.child, "exit"));
      }
      const url = await next.begin();
      now.resolve(url);
      await rest(url);
      next.child.stdin?.end();
      await within("the end of the last server", once(next.child, "exit"));
    },
  };
}
