/**
 * The worker that `drover serve` brings along beside a node of a cluster: a `drover worker` in the same process.
 *
 * It joins by the node's own address, which reaches whoever leads, so what it runs goes on over a change of the lead,
 * and it works the same beside a leader and beside a follower. A caller who may submit anywhere in the cluster can then
 * run anything here, so it is there only where it was asked for. Where callers need a token it needs one too, since
 * another node must know it: DROVER_TOKEN.
 */
import { join } from "node:path";
import { errorText } from "../../core/base/index.ts";
import { realClock, restFor } from "../../std/index.ts";
import { usageProblem } from "../shell/problem.ts";
import type { StopSignal, Terminal } from "../shell/terminal.ts";
import { type Call, given } from "../shell/verb.ts";
import { work } from "../worker/worker.ts";
import {
  description,
  isAskedFor,
  type LocalWorker,
  type LocalWorkerFlags,
  logsBeside,
  noWorker,
  START_ONE,
  slotsOf,
} from "./local-worker.ts";
import type { JournalTarget } from "./messages.ts";

/** What is wrong with the call shows at once; a cluster without a leader is not waited for. */
const JOIN_MS = 2000;

export async function startNodeWorker(options: {
  readonly call: Call<LocalWorkerFlags>;
  readonly node: string;
  readonly log: JournalTarget;
  readonly url: string;
  /** Whether callers need a token. */
  readonly hasTokens: boolean;
  readonly killGraceMs: number;
  readonly complain: (text: string) => void;
}): Promise<LocalWorker> {
  const { call, log, url, complain } = options;
  const { flags } = call;
  const logsOf = logsBeside(log);
  if (!isAskedFor(flags)) return noWorker(`none (a node of a cluster): ${START_ONE}, or --worker`, logsOf);
  if (options.hasTokens && (call.terminal.env.DROVER_TOKEN ?? "") === "")
    throw usageProblem(
      "the worker beside a node needs a token, since server.tokens is set",
      "set DROVER_TOKEN to one with the role worker, which all nodes know",
    );
  const { exec, shell, env, quiet, json, color } = flags;
  const slots = slotsOf(flags);
  const what = exec === undefined ? { commands: true } : { exec, ...given({ shell }) };
  const id = `local-${options.node}`;
  const data = join(log.directory, "worker");
  const [terminal, signal] = signalledByHand(call.terminal, complain);
  const joined = Promise.withResolvers<void>();
  let isThere = false;
  const ended = work({
    ...call,
    terminal,
    // Standard output is the server's, for its welcome; a worker says one thing there, that it has joined.
    output: {
      ...call.output,
      line: () => {
        isThere = true;
        joined.resolve();
      },
    },
    flags: { ...what, ...given({ env, quiet, json, color }), id, url, slots, killGrace: options.killGraceMs, data },
  }).finally(() => {
    isThere = false;
  });
  const early = restFor(realClock, JOIN_MS, { keepAlive: false });
  await Promise.race([joined.promise, early, ended]);
  ended.catch((error: unknown) => complain(`the local worker has ended: ${errorText(error)}`));
  const over = ended.then(
    () => {},
    () => {},
  );
  const stopBy = (name: StopSignal): Promise<void> => {
    signal(name);
    return over;
  };
  return {
    id: () => (isThere ? id : null),
    describe: () => `${id}: ${description(flags, slots)}`,
    runs: true,
    logsOf,
    drain: () => stopBy("SIGTERM"),
    // Counts as two: what runs is stopped, whether it was told to end before or not.
    stop: () => stopBy("SIGHUP"),
    withdraw: () => {},
    limitWorktrees: () => {},
  };
}

/** A terminal whose signals come from here; what is written there is a log's where standard error is one. */
function signalledByHand(
  terminal: Terminal,
  complain: (text: string) => void,
): readonly [Terminal, (signal: StopSignal) => void] {
  const listeners = new Set<(signal: StopSignal) => void>();
  const own: Terminal = {
    ...terminal,
    err: (text) => (terminal.isErrorTerminal ? terminal.err(text) : complain(text.replace(/^warning: /, "").trimEnd())),
    onSignal: (_, listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const signal = (name: StopSignal): void => {
    for (const listener of listeners) listener(name);
  };
  return [own, signal];
}
