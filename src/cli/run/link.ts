/**
 * The server of a run, over its restarts.
 *
 * A plan on a server goes on whoever watches. So a watcher that loses the server says so, waits for it, and goes on
 * where it was. A server that was found by its data directory may come back at another address: there it is looked for
 * again. If it is a node of a cluster, the others are learnt from it while it is there, and the plan goes on with them.
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
  /** This went wrong: resolves when it may be tried again. Rejects if the signal fires, and where that is no use. */
  back(error: ClientError): Promise<void>;
};

/** What a server that is restarted, full or not there answers with. */
const AWAY: ReadonlySet<string> = new Set([
  ...["network", "timeout", "closed", "overloaded", "bad_answer", "no_leader", "behind", "deposed"],
]);
export const isAway = (error: unknown): error is ClientError => error instanceof ClientError && AWAY.has(error.code);

const LOOK_MS = 500;
/** A server that is ready and refuses is left alone longer each time; so soon after, it is the same trouble. */
const REST_MS_MAX = 10_000;
const ASKED_MS_MAX = 60_000;
const SAME_MS = 5000;
/** For how long the other nodes are asked for, and how many are of use. */
const LEARN_MS = 5000;
const OTHERS_MAX = 8;

export function createLink(given: {
  readonly call: Pick<Call, "flags" | "terminal">;
  readonly server: ServerChoice;
  readonly noted: (text: string) => void;
  readonly rest: (ms: number) => Promise<void>;
  readonly signal: AbortSignal;
}): Link {
  const { call, server, noted, rest, signal } = given;
  let client = clientAt(call, server);
  /** The address that a person gave, or that the data directory says. */
  let at = server.url;
  /** Other nodes of its cluster, until they are needed. */
  let others: readonly string[] = [];
  let looking: Promise<void> | null = null;
  let trouble = { code: "", restMs: LOOK_MS, said: "", endedAt: Number.NEGATIVE_INFINITY };

  /** Where its data directory says that it is now. */
  function lookAgain(): void {
    const found = server.directory === null ? null : readServerFile(server.directory);
    if (found !== null && found.url !== at) {
      at = found.url;
      client = clientAt(call, { ...server, ...found });
      void learnOthers();
    } else if (others.length > 0) client = clientAt(call, { ...server, url: [at, ...others].join(",") });
    others = [];
  }

  /** Whoever names one address means that one; the data directory means the plan's server, whichever node that is. */
  async function learnOthers(): Promise<void> {
    if (server.directory === null) return;
    const from = at;
    const found = await othersOf(client, AbortSignal.any([signal, AbortSignal.timeout(LEARN_MS)]));
    if (from === at) others = found;
  }
  void learnOthers();

  async function look(error: ClientError): Promise<void> {
    const isSame = performance.now() - trouble.endedAt < SAME_MS;
    // It is ready, and what it says makes no sense once more.
    if (isSame && error.code === "bad_answer" && trouble.code === error.code) throw error;
    const isRefusal = error.status !== 0;
    const does = error.code === "bad_answer" ? "says what makes no sense" : "refuses for now";
    const said = isRefusal
      ? `the server ${does}: ${error.message}; the plan is safe there, and this goes on trying`
      : `the server at ${client.url} does not answer; the plan is safe there, and this waits for it`;
    const isNews = !isSame || said !== trouble.said;
    const restMs = isSame ? Math.min(2 * trouble.restMs, REST_MS_MAX) : LOOK_MS;
    if (isNews) noted(said);
    for (let ms = Math.max(restMs, Math.min(error.retryAfterMs ?? 0, ASKED_MS_MAX)); ; ms = LOOK_MS) {
      await rest(ms);
      signal.throwIfAborted();
      lookAgain();
      try {
        await client.ready({ signal, retries: 0 });
        trouble = { code: error.code, restMs, said, endedAt: performance.now() };
        if (isNews && !isRefusal) noted(`the server answers again, at ${client.url}`);
        return;
      } catch (again) {
        if (!isAway(again)) throw again;
      }
    }
  }

  const back = (error: ClientError): Promise<void> => {
    looking ??= look(error).finally(() => {
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
          await back(error);
        }
      }
    },
  };
}

/** Where the other nodes are that are up, by the same scheme; none where there is no cluster, or no answer. */
async function othersOf(client: Client, signal: AbortSignal): Promise<string[]> {
  try {
    const { nodes } = await client.cluster({ signal, retries: 0 });
    const own = new URL(client.url);
    const isUp = (role: string): boolean => role === "leader" || role === "follower";
    const isOther = (url: string): boolean =>
      URL.parse(url)?.protocol === own.protocol && new URL(url).origin !== own.origin;
    return nodes.flatMap(({ url, role }) => (isUp(role) && isOther(url) ? [url] : [])).slice(0, OTHERS_MAX);
  } catch (error) {
    if (error instanceof ClientError || signal.aborted) return [];
    throw error;
  }
}

export const clientAt = (
  call: Pick<Call, "flags" | "terminal">,
  { url, token }: Pick<ServerChoice, "url" | "token">,
): Client =>
  clientFor(
    {
      flags: { ...call.flags, url },
      terminal:
        token === undefined ? call.terminal : { ...call.terminal, env: { ...call.terminal.env, DROVER_TOKEN: token } },
    },
    { isQuiet: true },
  );
