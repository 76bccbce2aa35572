/**
 * One attempt from its assignment to its outcome.
 *
 * A place for the run, a workspace, the setup, the command, the cleanup, then the workspace is looked at and the place
 * goes. Whatever goes wrong on our side (a full disk, a directory that cannot be written) sends the task back: it is no
 * fault of the task. Nothing of a run outlives its outcome except its log, its session and a tree with work in it.
 */

import { stat, writeFile } from "node:fs/promises";
import type { FileSource } from "../../protocol/index.ts";
import { isDirectory, OWN_FILE_MODE, present, remember, ringAfter } from "../../std/index.ts";
import type { OutputDirectory } from "../output/directory.ts";
import { createEventReader } from "../output/events.ts";
import { createOutputLog, createRing, type OutputLog } from "../output/log.ts";
import { createRedactor, type Redactor } from "../output/redact.ts";
import { childEnvironment } from "../process/environment.ts";
import { type ProcessEnd, startProcess } from "../process/group.ts";
import type { RunPlace, Runs } from "../process/runs.ts";
import { WorkspaceRefusal } from "../worktree/refusal.ts";
import type { Workspace, WorkspaceReport, Worktrees } from "../worktree/worktree.ts";
import { type ExecContext, type ExecOutcome, type ExecTask, taskDocument } from "./contract.ts";
import type { FileCache } from "./file-cache.ts";
import { layInputs, noFiles } from "./inputs.ts";
import { createListener, type Listener } from "./listener.ts";
import type { ExecSetup } from "./options.ts";
import { type CommandStop, finishedOutcome, outcomeOf, outcomeOfSpawnError } from "./outcome.ts";
import { collectOutputs, OutputTrouble } from "./outputs.ts";
import type { Invocation } from "./presets.ts";
import { readAnswer } from "./result.ts";
import type { Sessions } from "./sessions.ts";
import { createStopper, createWatch, type Stopper } from "./stopper.ts";
import { nameInPlan, treeStartOf } from "./tree-start.ts";

export type AttemptTools = {
  readonly setup: ExecSetup;
  readonly runs: Runs;
  readonly sessions: Sessions;
  readonly outputs: OutputDirectory;
  /** What was fetched for the tasks of this machine. */
  readonly files: FileCache;
  readonly worktrees: Worktrees | null;
  /** When the first command of a task began whose files are kept, by the task. */
  readonly begun: Map<string, number>;
};
export type Attempt = {
  readonly taskId: string;
  readonly number: number;
  readonly log: OutputLog;
  readonly outcome: Promise<ExecOutcome>;
  stop(cause: CommandStop): void;
  kill(): void;
};

export const TROUBLE_RETRY_MS = 15_000;
const NO_ROOM_RETRY_MS = 10_000;
const CLEANUP_MS_MAX = 60_000;
const DATE_TRIES_MAX = 10_000;
const BEGUN_MAX = 10_000;
/** Of what a check prints, the end. */
const NOTE_MAX = 4096;

/** What one attempt's steps share. */
type Work = {
  readonly tools: AttemptTools;
  readonly task: ExecTask;
  readonly context: ExecContext;
  readonly runToken: string | undefined;
  readonly stopper: Stopper;
  readonly log: OutputLog;
  readonly redact: Redactor;
  /** Hears the command only: what setup and cleanup print is log. */
  readonly ear: { listener: Listener | null };
};
type Scene = {
  readonly place: RunPlace;
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly invocation: Invocation;
  /** The task as the child reads it. */
  readonly document: string;
};

export function startAttempt(tools: AttemptTools, task: ExecTask, context: ExecContext): Attempt {
  const { setup, outputs } = tools;
  const given = Object.fromEntries(setup.additions.map(({ name, value }) => [name, value ?? setup.inherited[name]]));
  const runToken = setup.runToken(task);
  const redact = createRedactor([
    setup.inherited,
    given,
    { DROVER_RUN_TOKEN: runToken, DROVER_TOKEN: context.token ?? undefined },
  ]);
  const ear: Work["ear"] = { listener: null };
  const path = outputs.pathOf(task.taskId, context.attempt);
  const { clock, logBytesMax: bytesMax } = setup;
  const onLine: Listener["line"] = (...line) => ear.listener?.line(...line);
  const log = createOutputLog({ path, bytesMax, clock, redact, onLine });
  const stopper = createStopper(context.signal);
  outputs.hold(path);
  const work: Work = { tools, task, context, runToken, stopper, log, redact, ear };
  const { taskId } = task;
  const { stop, kill } = stopper;
  return { taskId, number: context.attempt, log, outcome: conclude(work, path), stop, kill };
}

async function conclude(work: Work, path: string): Promise<ExecOutcome> {
  const { tools, stopper, log } = work;
  try {
    return await perform(work);
  } catch (error) {
    const message = `this worker could not run it: ${(error as Error).message}`;
    tools.setup.onWarning(`${work.task.taskId}: ${message}`);
    return { outcome: "requeue", error: work.redact.line(message), retryAfterMs: TROUBLE_RETRY_MS };
  } finally {
    stopper.end();
    await log.close();
    if (log.failure !== null)
      tools.setup.onWarning(`output of ${work.task.taskId} is not kept: ${log.failure.message}`);
    await tools.outputs.letGo(path).catch((error) => tools.setup.onWarning(`old output stays: ${error.message}`));
  }
}

async function perform(work: Work): Promise<ExecOutcome> {
  const { tools, task, context, stopper } = work;
  if (stopper.cause !== null) return outcomeOf({ ...UNSTARTED, stop: stopper.cause });
  const place = await tools.runs.begin({ taskId: task.taskId, attempt: context.attempt });
  let workspace: Workspace | null = null;
  let report: WorkspaceReport | null = null;
  let outcome: ExecOutcome = GIVEN_UP;
  try {
    const goesOn = (task.round?.number ?? 1) > 1 || (task.approval?.at !== undefined && context.attempt > 1);
    const start = await treeStartOf(task, tools.setup, context.file);
    const run = { taskId: task.taskId, ...nameInPlan(task), attempt: context.attempt, runId: place.id };
    workspace = start === null ? null : ((await tools.worktrees?.open(run, { ...start, goesOn })) ?? null);
    for (const file of workspace?.leftOut ?? []) work.log.note(file);
    outcome = await performIn(work, place, workspace);
  } catch (error) {
    if (!(error instanceof WorkspaceRefusal)) throw error;
    outcome = refusedOutcome(error);
  } finally {
    const isGoingOn = outcome.outcome === "again" || outcome.outcome === "ask";
    const isDone = outcome.outcome === "done";
    if (workspace !== null) report = (await tools.worktrees?.close(workspace, { isGoingOn, isDone })) ?? null;
    await place.end().catch((error) => tools.setup.onWarning(`the place of a run stays: ${error.message}`));
  }
  if (report !== null) noteWorkspace(work, report);
  const usage = work.ear.listener?.heard.usage ?? null;
  const finished = finishedOutcome(outcome, { workspace: report, usage, redact: work.redact });
  settleSession(work, finished);
  work.log.note(`outcome: ${finished.outcome}${finished.error === undefined ? "" : `: ${finished.error}`}`);
  return finished;
}

/** Until there is another: what goes wrong on our side has none. */
const GIVEN_UP: ExecOutcome = { outcome: "requeue" };
const UNSTARTED = {
  code: null,
  signal: null,
  answer: { kind: "none" },
  failure: null,
  isRateLimited: false,
  lastWords: "",
  output: "",
} as const;

function refusedOutcome({ kind, message }: WorkspaceRefusal): ExecOutcome {
  if (kind === "requeue") return { outcome: "requeue", error: message, retryAfterMs: NO_ROOM_RETRY_MS };
  return { outcome: "failed", error: message, ...(kind === "permanent" ? { permanent: true } : {}) };
}

async function performIn(work: Work, place: RunPlace, workspace: Workspace | null): Promise<ExecOutcome> {
  const { setup } = work.tools;
  const until = work.task.loop?.until;
  if (until !== undefined && !setup.allowUntil)
    return { outcome: "requeue", error: NO_UNTIL, retryAfterMs: TROUBLE_RETRY_MS };
  const scene = await setScene(await withInputs(work, place), place, workspace);
  if (!(await isDirectory(scene.cwd)))
    return { outcome: "failed", error: `the working directory ${scene.cwd} does not exist`, permanent: true };
  try {
    const failed = setup.setup === null ? null : await prepare(work, scene, setup.setup);
    const since = failed === null ? await beginning(work, place) : null;
    const ended = failed ?? (await runCommand(work, scene));
    const outcome = until === undefined || ended.outcome !== "done" ? ended : await check(work, scene, until, ended);
    return failed === null ? await withOutputs(work, scene.cwd, outcome, since) : outcome;
  } finally {
    if (setup.cleanup !== null) await cleanUp(work, scene, setup.cleanup);
  }
}

/** A task that needs others sees how they ended. */
async function withInputs(work: Work, place: RunPlace): Promise<Work> {
  const { task, tools, context } = work;
  if (task.inputs === undefined) return work;
  const readFile = context.file ?? noFiles;
  const inputs = await layInputs(task.inputs, place, { cache: tools.files, readFile });
  return { ...work, task: { ...task, inputs } };
}

/**
 * From when on what changes in the workspace is the work of the command, as the system dates its files; null where
 * all of it may be handed out. A task that goes on has what it did before.
 */
async function beginning({ tools, task }: Work, place: RunPlace): Promise<number | null> {
  const { taskId, outputs = [] } = task;
  if (outputs.length === 0 || tools.setup.allowUntil) return null;
  const isGoingOn = (task.round?.number ?? 1) > 1 || task.approval?.at !== undefined;
  const known = isGoingOn ? tools.begun.get(taskId) : undefined;
  if (known !== undefined) return known;
  const marker = `${place.taskFile}.began`;
  const dated = async (): Promise<number> => {
    await writeFile(marker, "", { mode: OWN_FILE_MODE });
    return (await stat(marker)).ctimeMs;
  };
  // That time moves in steps, and what was laid in the same step is not the work of the command.
  const before = await dated();
  let since = before;
  for (let tries = 0; since === before && tries < DATE_TRIES_MAX; tries++) since = await dated();
  remember(tools.begun, taskId, since, BEGUN_MAX);
  return since;
}

/**
 * What the command has left. It counts if the command ran to its end, well or not; and a failure stays what it was,
 * whatever becomes of its files.
 */
async function withOutputs(
  { task, context, log, tools }: Work,
  cwd: string,
  outcome: ExecOutcome,
  since: number | null,
): Promise<ExecOutcome> {
  const { outputs = [] } = task;
  if (outputs.length === 0 || (outcome.outcome !== "done" && outcome.outcome !== "failed")) return outcome;
  const note = (text: string): void => log.note(text);
  try {
    const keep = (path: string, source: FileSource): Promise<void> => keepOutput(context, path, source);
    await collectOutputs(outputs, cwd, { keep, note, since, data: tools.setup.data });
    return outcome;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    log.note(message);
    if (outcome.outcome === "failed") return outcome;
    if (error instanceof OutputTrouble)
      return { outcome: "failed", error: message, ...(error.permanent ? { permanent: true } : {}) };
    return { outcome: "requeue", error: `its files could not be kept: ${message}`, retryAfterMs: TROUBLE_RETRY_MS };
  }
}

async function keepOutput(context: ExecContext, path: string, source: FileSource): Promise<void> {
  if (context.output === undefined) throw new OutputTrouble("this worker has no way to keep files");
  try {
    await context.output(path, source);
  } catch (error) {
    const { code, message, details } = error as { code?: unknown; message?: unknown; details?: { field?: unknown } };
    if (code === "bad_request" && details?.field === "hash")
      throw new OutputTrouble(`the output ${path} was changed while it was read`, false);
    if (code === "too_large" || code === "bad_request")
      throw new OutputTrouble(`the output ${path} cannot be kept: ${String(message)}`);
    throw error;
  }
}

async function setScene(work: Work, place: RunPlace, workspace: Workspace | null): Promise<Scene> {
  const { task, context, tools, runToken } = work;
  const { setup, sessions } = tools;
  const cwd = workspace?.cwd ?? setup.cwd;
  const { id: runId, temp, taskFile, resultFile, promptFile } = place;
  const { inputsFile, inputsDirectory } = task.inputs === undefined ? {} : place;
  const { taskId } = task;
  const { attempt } = context;
  const sessionId = sessions.of(taskId);
  const document = taskDocument(task, attempt, cwd);
  const invocation: Invocation = setup.preset?.(task, { args: setup.args, promptFile, ...present({ sessionId }) }) ?? {
    argv: setup.argv ?? [],
    createReader: createEventReader,
  };
  await writeFile(taskFile, document, { mode: OWN_FILE_MODE });
  if (invocation.promptFile !== undefined) await writeFile(promptFile, invocation.promptFile, { mode: OWN_FILE_MODE });
  const { branch, base } = workspace?.note ?? {};
  const run = { runId, taskId, attempt, workspace: cwd, temp, taskFile, resultFile };
  const round = task.round?.number;
  const token = context.token ?? undefined;
  const more = {
    url: setup.url,
    token,
    agentId: task.agentId,
    runToken,
    sessionId,
    branch,
    base,
    inputsFile,
    inputsDirectory,
    round,
  };
  const env = childEnvironment(setup.inherited, setup.additions, { ...run, ...more });
  return { place, cwd, document, env: { ...env, ...invocation.env }, invocation };
}

/** Null when the workspace is ready. */
async function prepare(work: Work, scene: Scene, script: string): Promise<ExecOutcome | null> {
  const { stopper, log } = work;
  const end = await runProcess(work, scene, { argv: ["/bin/sh", "-c", script], stdin: "", what: "setup" });
  if (stopper.cause !== null) return outcomeOf({ ...UNSTARTED, stop: stopper.cause, lastWords: log.lastWords() });
  if (end.code === 0) return null;
  const words = log.lastWords();
  const how = end.signal === null ? `exit code ${end.code}` : `died by ${end.signal}`;
  return { outcome: "failed", error: `the setup command failed (${how})${words === "" ? "" : `: ${words}`}` };
}

async function runCommand(work: Work, scene: Scene): Promise<ExecOutcome> {
  const { tools, task, context, stopper, redact, ear, log } = work;
  const { argv, stdin = scene.document } = scene.invocation;
  if (stopper.cause !== null) return outcomeOf({ ...UNSTARTED, stop: stopper.cause });
  const { taskId } = task;
  const onSession = (sessionId: string): void =>
    orWarn(tools, `the session of ${taskId} is not kept`, () => tools.sessions.note(taskId, sessionId));
  const onProblem = (problem: string): void => {
    log.note(problem);
    tools.setup.onWarning(`${taskId}: ${redact.line(problem)}`);
  };
  const listener = createListener({ read: scene.invocation.createReader(), context, redact, onSession, onProblem });
  ear.listener = listener;
  let end: ProcessEnd;
  try {
    end = await runProcess(work, scene, { argv, stdin, what: "command" });
  } catch (error) {
    return outcomeOfSpawnError(error, argv, scene.cwd);
  }
  const answer = await readAnswer({ file: scene.place.resultFile, ...listener.heard });
  const { code, signal } = end;
  // What came to its end by itself is done, whatever was to stop it then. Whether that counts is said elsewhere.
  const stop = code === 0 && !end.isStopped ? null : stopper.cause;
  const { failure, isRateLimited } = listener.heard;
  const spoken = { lastWords: log.lastWords(), output: log.recent() };
  return outcomeOf({ code, signal, stop, answer, failure, isRateLimited, ...spoken });
}

const NO_UNTIL =
  "this worker runs no loop.until of tasks; start it with --allow-until (allowUntil), or send it to one that does";

/** Whether the work of this round is good. What the check prints is for the next. */
async function check(work: Work, scene: Scene, script: string, outcome: ExecOutcome): Promise<ExecOutcome> {
  const { stopper, ear, redact } = work;
  const words = createRing(NOTE_MAX);
  const heard = silenced(ear.listener);
  ear.listener = heard && { ...heard, line: (_stream, text) => words.push(redact.line(text)) };
  const end = await runProcess(work, scene, { argv: ["/bin/sh", "-c", script], stdin: "", what: "check" });
  ear.listener = heard;
  if (stopper.cause !== null) return outcomeOf({ ...UNSTARTED, stop: stopper.cause });
  if (end.code === 0) return outcome;
  const how = end.signal === null ? `exit code ${end.code}` : `died by ${end.signal}`;
  return { outcome: "again", note: words.text().trim() || `the check failed (${how})` };
}

async function cleanUp(work: Work, scene: Scene, script: string): Promise<void> {
  const { setup } = work.tools;
  // A stop that has come already must not stop the cleaning up; but that may not take for ever either.
  const { clock, ladder } = setup;
  const graceMs = ladder.interruptGraceMs + ladder.terminateGraceMs;
  const limitMs = work.stopper.cause === null ? CLEANUP_MS_MAX : Math.min(CLEANUP_MS_MAX, graceMs);
  const limit = new AbortController();
  const cancel = ringAfter(clock, limitMs, () => limit.abort());
  const stopper = createStopper(limit.signal);
  work.ear.listener = silenced(work.ear.listener);
  try {
    await runProcess({ ...work, stopper }, scene, { argv: ["/bin/sh", "-c", script], stdin: "", what: "cleanup" });
  } catch (error) {
    work.log.note(`the cleanup command could not be run: ${(error as Error).message}`);
  } finally {
    cancel();
    stopper.end();
  }
}

/** What it heard stays; it hears no more. */
const silenced = (listener: Listener | null): Listener | null => listener && { heard: listener.heard, line: () => {} };

async function runProcess(
  work: Work,
  scene: Scene,
  { argv, stdin, what }: { argv: readonly string[]; stdin: string; what: "setup" | "command" | "check" | "cleanup" },
): Promise<ProcessEnd> {
  const { stopper, log } = work;
  const { clock, table, ladder, startTimeoutMs, idleTimeoutMs, onWarning } = work.tools.setup;
  const limits =
    what === "command" ? { startMs: startTimeoutMs, idleMs: idleTimeoutMs } : { startMs: null, idleMs: null };
  const watch = createWatch({ clock, ...limits, onSilence: (kind, spanMs) => stopper.stop({ kind, spanMs }) });
  const startedAt = clock.elapsed();
  log.note(`${what}: ${argv.map(shown).join(" ")}`);
  try {
    const plan = {
      argv,
      stdin,
      cwd: scene.cwd,
      env: scene.env,
      runId: scene.place.id,
      onOutput: (stream: "out" | "err", chunk: Buffer) => {
        watch.noteOutput();
        log.output(stream, chunk);
      },
      onSignal: (signal: NodeJS.Signals) => log.note(`sent ${signal}`),
    };
    const child = await startProcess(plan, { clock, table, ladder });
    stopper.guard(child);
    await scene.place
      .noteLeader(child.leader)
      .catch((error) => onWarning(`a run is not written down: ${error.message}`));
    const end = await child.ended;
    log.endLines();
    noteEnd(work, end, clock.elapsed() - startedAt);
    return end;
  } finally {
    stopper.guard(null);
    watch.end();
  }
}

/** On one line, so that it can be seen where a word ends. */
const shown = (word: string): string => (/^[\w./:=@%+,-]+$/.test(word) ? word : JSON.stringify(word));

function noteEnd({ log, task, tools }: Work, { code, signal, leftovers }: ProcessEnd, spanMs: number): void {
  const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
  log.note(`ended ${how} after ${spanMs} ms`);
  if (leftovers.killed > 0) log.note(`killed ${leftovers.killed} processes it had left behind`);
  if (leftovers.remaining.length === 0) return;
  tools.setup.onWarning(`${task.taskId}: processes ${leftovers.remaining.join(", ")} would not die`);
}

/** It is over, or its session is lost: then the next attempt, if there is one, begins anew. */
function settleSession({ tools, task: { taskId }, ear }: Work, { outcome, permanent }: ExecOutcome): void {
  if (outcome !== "done" && permanent !== true && !ear.listener?.heard.isSessionGone) return;
  orWarn(tools, `the session of ${taskId} stays`, () => tools.sessions.forget(taskId));
}

function orWarn({ setup }: AttemptTools, otherwise: string, action: () => void): void {
  try {
    action();
  } catch (error) {
    setup.onWarning(`${otherwise}: ${(error as Error).message}`);
  }
}

function noteWorkspace({ log, context }: Work, report: WorkspaceReport): void {
  const { isKept, path, branch, changedCount, changedFiles, problem } = report;
  if (isKept)
    log.note(
      `kept ${path} on branch ${branch}: ${problem ?? `${changedCount} file${changedCount === 1 ? "" : "s"} changed`}`,
    );
  if (changedCount > 0) context.progress({ changedFiles: changedFiles.slice(0, 50), changedCount, branch });
}
