/**
 * The environment of a child: what it needs, and nothing it was not given.
 *
 * The worker's own environment holds provider keys and tokens; a task must not get them by accident. So names are let
 * through by a list, and more only by name (`NAME`) or with a value (`NAME=value`). The child is told that nobody sits
 * in front of it, which task it has and where to put the result. Drover's own names cannot be overridden: one of them
 * is the tag by which what a run leaves behind is found.
 */
import type { EnvironmentAddition } from "../../plan/work/index.ts";
import { RUN_PATH_TAG, RUN_TAG } from "./leftovers.ts";

type Environment = Readonly<Record<string, string>>;
export type Inherited = Readonly<Record<string, string | undefined>>;
type RunFacts = {
  readonly runId: string;
  readonly taskId: string;
  readonly attempt: number;
  readonly taskFile: string;
  readonly resultFile: string;
  readonly workspace: string;
  readonly temp: string;
  readonly branch?: string | undefined;
  readonly base?: string | undefined;
  readonly url?: string | undefined;
  /** Of the attempt; and who it is of. */
  readonly token?: string | undefined;
  readonly agentId?: string | undefined;
  readonly runToken?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly inputsFile?: string | undefined;
  readonly inputsDirectory?: string | undefined;
  readonly round?: number | undefined;
};

const LET_THROUGH: ReadonlySet<string> = new Set(
  [
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TZDIR",
    "SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO",
    "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy",
    "XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR",
  ].flatMap((names) => names.split(" ")),
);
const LOCALE = /^LC_[A-Z]+$/;
const NOBODY_THERE: Environment = {
  CI: "1",
  TERM: "dumb",
  GIT_TERMINAL_PROMPT: "0",
  // An agent that meets a rate limit waits for as long as it takes, instead of failing the task.
  CLAUDE_CODE_RETRY_WATCHDOG: "1",
};

/** The worker's own environment as far as any child may see it. */
export function letThrough(inherited: Inherited): Environment {
  const names = Object.keys(inherited).filter((name) => LET_THROUGH.has(name) || LOCALE.test(name));
  return Object.fromEntries(names.map((name) => [name, inherited[name] ?? ""]));
}

export function childEnvironment(
  inherited: Inherited,
  additions: readonly EnvironmentAddition[],
  run: RunFacts,
): Record<string, string> {
  const env: Record<string, string> = { ...letThrough(inherited), ...NOBODY_THERE, TMPDIR: run.temp };
  // Those who gave the child a token of their own choice mean that one.
  if (run.url !== undefined && run.token !== undefined) {
    env.DROVER_TOKEN = run.token;
    if (run.agentId !== undefined) env.DROVER_AGENT = run.agentId;
  }
  for (const { name, value } of additions) {
    const given = value ?? inherited[name];
    if (given !== undefined) env[name] = given;
  }
  return { ...env, ...namesOf(run, inherited[RUN_PATH_TAG]) };
}

function namesOf(run: RunFacts, outerPath: string | undefined): Environment {
  const optional = {
    DROVER_URL: run.url,
    DROVER_RUN_TOKEN: run.runToken,
    DROVER_SESSION_ID: run.sessionId,
    DROVER_BRANCH: run.branch,
    DROVER_BASE: run.base,
    DROVER_INPUTS_FILE: run.inputsFile,
    DROVER_INPUTS_DIR: run.inputsDirectory,
    DROVER_ROUND: run.round?.toString(),
  };
  return {
    DROVER_TASK_ID: run.taskId,
    DROVER_ATTEMPT: String(run.attempt),
    [RUN_TAG]: run.runId,
    [RUN_PATH_TAG]: outerPath === undefined || outerPath === "" ? run.runId : `${outerPath}/${run.runId}`,
    DROVER_TASK_FILE: run.taskFile,
    DROVER_RESULT_FILE: run.resultFile,
    DROVER_WORKSPACE: run.workspace,
    ...Object.fromEntries(Object.entries(optional).flatMap(([name, value]) => (value ? [[name, value]] : []))),
  };
}
