/**
 * A server for an example: `drover serve` on a free port, with its data in a directory that goes with it.
 *
 * A program of your own would find its server by DROVER_URL and DROVER_TOKEN; an example brings its own, so that it
 * runs anywhere and leaves nothing behind.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const DROVER = join(import.meta.dirname, "../../bin/drover.js");

export type LocalServer = AsyncDisposable & { readonly url: string };

export async function startLocalServer(...flags: readonly string[]): Promise<LocalServer> {
  const data = await mkdtemp(join(tmpdir(), "drover-example-"));
  const args = [DROVER, "serve", "--json", "--port", "0", "--data", data, "--log-level", "error", ...flags];
  const server = spawn(process.execPath, args, { cwd: data, stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  for await (const chunk of server.stdout.iterator({ destroyOnReturn: false })) {
    said += String(chunk);
    if (said.trimEnd().endsWith("}")) break;
  }
  const { url } = JSON.parse(said) as { url: string };
  return {
    url,
    async [Symbol.asyncDispose]() {
      server.kill("SIGTERM");
      if (server.exitCode === null) await once(server, "exit");
      await rm(data, { recursive: true, force: true });
    },
  };
}
