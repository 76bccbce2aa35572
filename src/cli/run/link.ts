/**
 * The server of a run, over its restarts.
 *
 * A plan on a server goes on whoever watches. So a watcher that loses the server says so, waits for it, and goes on
 * where it was. A server that was found by its data directory may come back at another address: there it is looked for
 * again.
 */
import { type Client, ClientError } from "../../client/index.ts";
import { clientFor } from "../shell/connection.ts";
import { readServerFile } from "../shell/server-file.ts";
import type { Call } from "../shell/verb.ts";
import type { ServerChoice } from "./find-server.ts";

export type Link = {
  /** The server as it is reached now. */
  client(): Client;
  /** Makes a call; while the server is away it waits for it, and makes the call then. */
  call<Answer>(ask: (client: Client) => Promise<Answer>): Promise<Answer>;
  /** The server was lost: resolves when it answers again. Rejects when the signal fires. */
  back(): Promise<void>;
};

/** What a server that is restarted, or not there, answers with. */
const AWAY: ReadonlySet<string> = new Set([
  ...["network", "timeout", "closed", "overloaded", "bad_answer", "no_leader", "behind", "deposed"],
]);
export const isAway = (error: unknown): boolean => error instanceof ClientError && AWAY.has(error.code);

const LOOK_MS = 500;

export function createLink(given: {
  readonly call: Pick<Call, "flags" | "terminal">;
  readonly server: ServerChoice;
  readonly noted: (text: string) => void;
  readonly rest: (ms: number) => Promise<void>;
  readonly signal: AbortSignal;
}): Link {
  const { call, server, noted, rest, signal } = given;
  let client = clientAt(call, server);
  let looking: Promise<void> | null = null;

  /** Where its data directory says that it is now. */
  function lookAgain(): void {
    const found = server.directory === null ? null : readServerFile(server.directory);
    if (found !== null && found.url !== client.url) client = clientAt(call, { ...server, ...found });
  }

  async function look(): Promise<void> {
    noted(`the server at ${client.url} does not answer; the plan is safe there, and this waits for it`);
    for (;;) {
      await rest(LOOK_MS);
      signal.throwIfAborted();
      lookAgain();
      try {
        await client.ready({ signal, retries: 0 });
        return noted(`the server answers again, at ${client.url}`);
      } catch (error) {
        if (!isAway(error)) throw error;
      }
    }
  }

  const back = (): Promise<void> => {
    looking ??= look().finally(() => {
      looking = null;
    });
    return looking;
  };

  return {
    client: () => client,
    back,
    async call(ask) {
      for (;;) {
        try {
          return await ask(client);
        } catch (error) {
          if (!isAway(error) || signal.aborted) throw error;
          await back();
        }
      }
    },
  };
}

export const clientAt = (
  call: Pick<Call, "flags" | "terminal">,
  { url, token }: Pick<ServerChoice, "url" | "token">,
): Client =>
  clientFor({
    flags: { ...call.flags, url },
    terminal:
      token === undefined ? call.terminal : { ...call.terminal, env: { ...call.terminal.env, DROVER_TOKEN: token } },
  });
