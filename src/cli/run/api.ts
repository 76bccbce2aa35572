/**
 * The calls of a server, for a plan that runs alone: while it runs, `drover why`, `task`, `events`, `approve` and
 * `cancel` in another terminal reach into it.
 *
 * It listens on this machine alone, and only who can read its server.json, the owner of the data directory, has the
 * token that opens it. A run of a moment does without: what a server is made of takes longer to load.
 */
import { randomBytes } from "node:crypto";
import type { Drover } from "../../engine/index.ts";
import { readSettings } from "../../protocol/index.ts";
import type { Server } from "../../server/index.ts";
import { type Clock, ringAfter } from "../../std/index.ts";
import { removeServerFile, writeServerFile } from "../shell/server-file.ts";
import { logsIn } from "./task-logs.ts";

/** A run that is over by then needs none. */
const MOMENT_MS = 500;

export type RunApi = {
  /** Ends it, and the engine with it. */
  close(): Promise<void>;
};

export function startApi(given: {
  readonly drover: Drover;
  readonly data: string;
  readonly noted: (text: string) => void;
  readonly clock: Clock;
}): RunApi {
  const { drover, data, noted, clock } = given;
  let starting: Promise<Server | null> = Promise.resolve(null);
  const cancel = ringAfter(clock, MOMENT_MS, () => {
    starting = start(given).catch((error: Error) => {
      noted(`other commands do not reach into this run: ${error.message}`);
      return null;
    });
  });
  return {
    async close() {
      cancel();
      const server = await starting;
      if (server === null) return await drover.close();
      removeServerFile(data, server.id);
      await server.close({ graceMs: 0 });
    },
  };
}

type Starting = Parameters<typeof startApi>[0];

async function start({ drover, data }: Starting): Promise<Server> {
  const { startServer } = await import("../../server/index.ts");
  const token = randomBytes(24).toString("base64url");
  const settings = readSettings({ server: { port: 0, shutdownGrace: 0, tokens: [{ token, role: "admin" }] } });
  if (!settings.ok) throw new Error(JSON.stringify(settings.failure));
  const server = await startServer({ drover, settings: settings.value, logsOf: logsIn(data) });
  writeServerFile(data, { url: server.url, id: server.id, token });
  return server;
}
