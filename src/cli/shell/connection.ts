/**
 * How a verb reaches the server, and what it means for a script when that goes wrong.
 *
 * The address is --url, else DROVER_URL, else that of the server that owns ./.drover, else this machine. The token is
 * DROVER_TOKEN and never a flag, since flags are read by everybody who may list processes. A verb waits for an answer
 * only a little: a person who forgot to start the server wants to hear so at once.
 */
import type { Client, ClientErrorCode, Fetch } from "../../client/index.ts";
import { addressFromEnv, ClientError, createClient } from "../../client/index.ts";
import type { Output } from "./output.ts";
import { asTyped, CliProblem, EXIT, type ExitCode, type Problem } from "./problem.ts";
import { fetchFrom, ownServer } from "./server-file.ts";
import { asWord, plainLines } from "./text.ts";
import { type Call, given } from "./verb.ts";

/** Enough to bridge a restart of the server, and little enough to wait for. */
const RETRIES = 2;
const ASKED_MAX_S = 1;
/** For verbs that watch something for long: a restart of the server must not end them. */
export const RETRIES_WHILE_WATCHING = 12;

/** `isQuiet`: what is shown says by itself that nothing is answered. */
export function clientFor(
  { flags, terminal }: Pick<Call, "flags" | "terminal">,
  { isQuiet = flags.json === true }: { readonly isQuiet?: boolean } = {},
): Client {
  const { url, token } = addressFromEnv(terminal.env);
  try {
    const own = (flags.url ?? url) === undefined ? ownServer(terminal.cwd) : null;
    const fetch = own === null ? terminal.fetch : fetchFrom(own, terminal.fetch);
    const address = given({ url: flags.url ?? url ?? own?.url, token });
    const told = isQuiet ? fetch : telling(fetch, terminal);
    return createClient({ ...address, retries: RETRIES, fetch: impatient(told) });
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    const hint = "the address comes from --url or DROVER_URL, the token from DROVER_TOKEN";
    throw new CliProblem({ message: error.message, code: "usage", exit: EXIT.usage, hint });
  }
}

/** What a verb does that makes one call and shows its answer. */
export function answering<Flags, Answer>(
  ask: (client: Client, call: Call<Flags>) => Promise<Answer>,
  shown: (answer: Answer, output: Output, call: Call<Flags>) => string,
): (call: Call<Flags>) => Promise<ExitCode> {
  return async (call) => {
    const answer = await ask(clientFor(call), call);
    call.output.answer(answer, () => shown(answer, call.output, call));
    return EXIT.ok;
  };
}

/** The first argument, where commander has seen to it that there is one. */
export const idOf = ({ args }: Pick<Call, "args">): string => args[0] ?? "";

/**
 * A server that shuts down or is full asks to come back in half a minute. A program may wait for that; a person wants
 * to hear of it, so that such a wish is not passed on to the client, which would heed it in silence.
 */
function impatient(fetch: Fetch): Fetch {
  return async (url, request) => {
    const answer = await fetch(url, request);
    const { status, headers, body } = answer;
    if (Number(headers.get("retry-after") ?? 0) <= ASKED_MAX_S) return answer;
    const get = (name: string): string | null => (name === "retry-after" ? null : headers.get(name));
    return { status, headers: { get }, body, text: () => answer.text() };
  };
}

/** How often it is said why a call is tried again. */
const TOLD_EVERY_MS = 5000;

/** While no node leads, a call is tried for some seconds: whoever waits for it is told what it waits for. */
function telling(fetch: Fetch, { err, now }: Call["terminal"]): Fetch {
  let toldAt = Number.NEGATIVE_INFINITY;
  const tell = (text: string): string => {
    const { code, error, retryable } = refusalIn(text);
    if (code !== NO_LEADER || retryable !== true || now() - toldAt < TOLD_EVERY_MS) return text;
    toldAt = now();
    err(`still trying: ${plainLines(String(error))}\n`);
    return text;
  };
  return async (url, request) => {
    const answer = await fetch(url, request);
    const { status, headers, body } = answer;
    return status === 503 ? { status, headers, body, text: async () => tell(await answer.text()) } : answer;
  };
}
const NO_LEADER: ClientErrorCode = "no_leader";

/** What stands between may refuse too, in words that are no JSON. */
function refusalIn(text: string): { readonly code?: unknown; readonly error?: unknown; readonly retryable?: unknown } {
  try {
    return Object(JSON.parse(text)) as object;
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

type Meaning = readonly [exit: ExitCode, hint?: string];

const ELSEWHERE = "another server: --url http://HOST:PORT, or DROVER_URL";
const LATER = "try again in a while, or raise the limit that the message names";

/** Complete: a code that is added does not compile until it has a meaning here. */
const MEANINGS: Readonly<Record<ClientErrorCode, Meaning>> = {
  network: [EXIT.unreachable, ELSEWHERE],
  timeout: [EXIT.unreachable, ELSEWHERE],
  closed: [EXIT.unreachable, "it is shutting down; try again when it is back"],
  deposed: [EXIT.unreachable, "it leads no more; try again, which asks whoever leads by then"],
  no_leader: [EXIT.unreachable, "no node leads the cluster at the moment; try again in a few seconds"],
  behind: [EXIT.unreachable, "this node of the cluster is behind; try again, or ask another"],
  bad_answer: [EXIT.broken, ELSEWHERE],
  bad_request: [EXIT.usage],
  unsupported_protocol: [EXIT.usage, "use the drover of the server's version"],
  batch_too_large: [EXIT.usage],
  too_large: [EXIT.usage, "put large data into a file and pass its path"],
  unsupported_media_type: [EXIT.usage],
  method_not_allowed: [EXIT.usage],
  unauthorized: [EXIT.refused, "set DROVER_TOKEN to a token of this server"],
  forbidden: [EXIT.refused, "use a token with the right role, project and agent in DROVER_TOKEN"],
  not_found: [EXIT.refused],
  conflict: [EXIT.refused],
  stale_attempt: [EXIT.refused],
  session_lost: [EXIT.refused],
  stale_sync: [EXIT.refused],
  queue_full: [EXIT.noRoom, LATER],
  backpressure: [EXIT.noRoom, LATER],
  limit: [EXIT.noRoom],
  bytes_per_minute: [EXIT.noRoom, LATER],
  log_full: [EXIT.noRoom, "raise log.maxBytes of the server, or lower its log.retain"],
  budget_exhausted: [EXIT.noRoom, LATER],
  over_capacity: [EXIT.noRoom, "raise files.maxTotal of the server, or wait until tasks with files are forgotten"],
  overloaded: [EXIT.noRoom, LATER],
  damaged: [EXIT.broken, "run drover verify on the server's data directory"],
  internal: [EXIT.broken, "the server's own log says more"],
  log_failed: [EXIT.broken, "look at the server's disk and its log"],
  worker_silent: [EXIT.refused],
};

export function clientProblem({ code, message, retryable, details }: ClientError): Problem {
  const [exit, hint] = (code === NO_LEADER ? UNLED.get(details?.journal) : undefined) ?? MEANINGS[code];
  const said = code === "network" ? asTyped(message) : message;
  return { message: said, code, exit, hint: nextStep(code, details ?? {}) ?? hint, retryable, details };
}

/** Why no node leads, where that is known: a journal that is full or away is a person's to mend. */
const UNLED: ReadonlyMap<unknown, Meaning> = new Map([
  ["full", [EXIT.noRoom, "make room in the journal, as the message says; reads are answered meanwhile"]],
  ["away", [EXIT.unreachable, "bring the journal back; nodes go on by themselves. drover cluster status says more"]],
]);

/** What to do next where the server has said what exactly is missing: in words of this command line. */
function nextStep(code: ClientErrorCode, details: NonNullable<Problem["details"]>): string | null {
  const { field, allowed } = details;
  if (code === "not_found") return whereToLook(details);
  if (code !== "forbidden" || typeof allowed !== "string" || typeof field !== "string") return null;
  if (/\bagentId$/.test(field)) return `add --agent ${asWord(allowed)}, or set DROVER_AGENT to it`;
  return /\bproject$/.test(field) ? `add --project ${asWord(allowed)}, or leave --project out` : null;
}

/** What lists those there are. A log that is not found names more than one thing, and says itself where it may be. */
function whereToLook({ project, path, ...named }: NonNullable<Problem["details"]>): string | null {
  if (typeof project === "string")
    return `drover projects lists them; drover projects set ${asWord(project)} --weight 1 registers it`;
  if (typeof path === "string")
    return "the path is added to the address in --url or DROVER_URL: that is http://HOST:PORT, mostly without a path";
  const [only = "", ...others] = Object.keys(named);
  return others.length === 0 ? (LISTED_BY.get(only) ?? null) : null;
}

const LISTED_BY = new Map([
  ["taskId", "drover tasks lists them; a task of a plan is named PLAN/TASK"],
  ["plan", "drover plans lists them"],
  ["workerId", "drover workers lists them"],
  ["scheduleId", "drover schedules lists them"],
]);
