/**
 * What a push worker is sent: its tasks, and the question whether it is there.
 *
 * The worker is an HTTP server that knows nothing of Drover: a browser with tabs, say. It gets
 *
 *     POST <endpoint>/tabs/<tabId>/action      (or /action for a task without a tab, or the path the worker gave)
 *     {…params, "kind": action, "ref": …, "selector": …, "inputs": …, "round": …}
 *
 * and its answer is the task's end (response.ts). `ref` and `selector` may be fields of the task or parameters; the
 * task's own win. `kind` and `tabId` are never taken from `params`, also where the task has no tab: the tab decides who
 * may run a task, and a parameter must not lead to another tab than the one that was routed. `inputs` are there if the
 * task needs others, `round` if it is a loop, and then never a parameter. The tab is in the path, so
 * it is in the body only where a path of the worker's own does not name it.
 *
 * `{tabId}`, `{taskId}` and `{action}` in a worker's path are filled in, percent-encoded. A value of `.` or `..` is
 * refused: every spelling of these climbs in a path.
 */
import { fail, ok, type Result } from "../../core/base/index.ts";
import type { PushTarget } from "../../core/model/index.ts";
import { badInput } from "../../engine/base/index.ts";
import { type Exchange, ExchangeFailure, headerText, type OutboundRequest } from "../../http/index.ts";
import type { ApprovalView, CurrentRound, Inputs } from "../../protocol/index.ts";
import { type Clock, present, ringAfter } from "../../std/index.ts";

const TAB_PATH = "/tabs/{tabId}/action";
const PLAIN_PATH = "/action";
const RESERVED: ReadonlySet<string> = new Set(["kind", "tabId"]);
const PLACEHOLDERS = ["tabId", "taskId", "action"] as const;

export type PushWorld = {
  readonly clock: Clock;
  readonly exchange: Exchange;
  /** Of Drover, for the User-Agent. */
  readonly version: string;
  /** Hears of what should never happen; the driver goes on. */
  readonly onProblem: (error: unknown) => void;
};
/** What is used of a task. */
export type PushTask = {
  readonly taskId: string;
  readonly action?: string;
  readonly tabId?: string;
  readonly ref?: string;
  readonly selector?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly inputs?: Inputs;
  readonly round?: CurrentRound;
  readonly approval?: ApprovalView;
};
type PushRequest = Pick<OutboundRequest, "url" | "method" | "headers"> & { readonly body: string };

/** Throws, naming the field, unless a worker can be posted to there. Addresses of the own network are welcome. */
export function checkPushTarget({ endpoint, path }: { readonly endpoint: unknown; readonly path?: unknown }): void {
  const url = typeof endpoint === "string" ? URL.parse(endpoint) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.port === "0")
    throw badInput("endpoint", endpoint, "an http or https URL, such as http://127.0.0.1:9222");
  if (`${url.username}${url.password}${url.search}${url.hash}` !== "")
    throw badInput("endpoint", "such a URL", "a URL without credentials, query or fragment");
  if (path === undefined || path === null) return;
  if (typeof path !== "string" || !path.startsWith("/") || path.includes("#"))
    throw badInput("path", path, "a path that begins with /, without a fragment");
  const unknown = [...path.matchAll(/\{([^{}]*)\}/g)].find(([, name]) => !PLACEHOLDERS.some((known) => known === name));
  if (unknown !== undefined)
    throw badInput("path", path, `a path with none but {${PLACEHOLDERS.join("}, {")}} to be filled in`);
}

/** The request, or why none can be made: then no other attempt could make one either. */
export function pushRequest(
  { endpoint, path }: PushTarget,
  task: PushTask,
  { attempt, version, token }: { readonly attempt: number; readonly version: string; readonly token?: string },
): Result<PushRequest, string> {
  const template = path ?? (task.tabId === undefined ? PLAIN_PATH : TAB_PATH);
  const filled = fill(template, task);
  if (!filled.ok) return filled;
  const id = headerText(task.taskId);
  const headers = {
    "Content-Type": "application/json",
    Accept: "application/json, text/*;q=0.9, */*;q=0.5",
    "User-Agent": `drover/${version}`,
    "X-Drover-Task-ID": id,
    "X-Drover-Attempt": String(attempt),
    ...(token === undefined ? {} : { "X-Drover-Token": token }),
    // One attempt is posted once; a worker that sees the key again has it from a repeat on the way.
    "Idempotency-Key": `${id}:${attempt}`,
  };
  const url = under(endpoint, filled.value);
  return ok({ url, method: "POST", headers, body: JSON.stringify(bodyOf(task, template)) });
}

/** A path under the endpoint, which may have one of its own. */
const under = (endpoint: string, path: string): URL => new URL(`${endpoint.replace(/\/+$/, "")}${path}`);

function fill(template: string, task: PushTask): Result<string, string> {
  let problem = "";
  const filled = template.replaceAll(/\{(tabId|taskId|action)\}/g, (_, name: (typeof PLACEHOLDERS)[number]) => {
    const value = task[name];
    if (value === undefined) problem = `the path of its worker needs {${name}}, and the task has none`;
    else if (/^\.{1,2}$/.test(value)) problem = `its ${name} is ${value}, which cannot stand in a path`;
    return encodeURIComponent((value ?? "").toWellFormed());
  });
  return problem === "" ? ok(filled) : fail(problem);
}

function bodyOf(
  { action, ref, selector, tabId, inputs, round, approval, params = {} }: PushTask,
  template: string,
): Record<string, unknown> {
  const own = Object.entries(params).filter(([key]) => !RESERVED.has(key));
  return {
    ...Object.fromEntries(own),
    kind: action,
    ...present({ ref, selector }),
    ...(tabId === undefined || template.includes("{tabId}") ? {} : { tabId }),
    ...present({ inputs, round, approval }),
  };
}

export type Health = "answers" | "connects" | "dead";

/**
 * Whether a push worker is there. It does not speak for itself, so Drover asks: GET <endpoint>/health, and any HTTP
 * answer will do, a 404 as well. A worker with one thread that is busy with a long action does not answer meanwhile,
 * though the system still takes connections for it; that is not the same as no worker being there at all, so that hard
 * work is not taken for death.
 */
export async function probe(
  endpoint: string,
  timeoutMs: number,
  { clock, exchange, version }: Pick<PushWorld, "clock" | "exchange" | "version">,
  signal: AbortSignal,
): Promise<Health> {
  const late = new AbortController();
  const ring = (): void => late.abort(new Error(`no answer in ${timeoutMs} ms`));
  const cancel = ringAfter(clock, timeoutMs, ring, { keepAlive: false });
  try {
    const answer = await exchange({
      url: under(endpoint, "/health"),
      method: "GET",
      headers: { "User-Agent": `drover/${version}` },
      signal: AbortSignal.any([late.signal, signal]),
    });
    answer.drop();
    return "answers";
  } catch (error) {
    if (!(error instanceof ExchangeFailure)) throw error;
    return late.signal.aborted && error.isTaken ? "connects" : "dead";
  } finally {
    cancel();
  }
}
