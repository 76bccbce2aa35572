/**
 * A world for an exec worker: a data directory of its own, a clock turned by hand, tasks run by small scripts.
 *
 * Children are real processes. A script says where it is by progress lines (`say ready`), and a test waits for that
 * line, never for a span. What a failed test leaves running ends by itself soon.
 */
import { mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Usage } from "../../../src/protocol/index.ts";
import { createHandClock, type HandClock } from "../../../src/std/hand-clock.ts";
import type { ExecHandler, ExecOutcome, ExecTask } from "../../../src/worker/exec/contract.ts";
import { createExecHandler } from "../../../src/worker/exec/handler.ts";
import type { ExecOptions } from "../../../src/worker/exec/options.ts";
import { procTable } from "../../../src/worker/process/table.ts";

/** Begins every script: `say WORD` tells the test where it is; `linger` waits, but not for ever. */
export const SAY = `say() { printf '{"type":"progress","value":"%s"}\\n' "$1"; }
linger() { n=0; while [ $n -lt 3000 ]; do sleep 0.04; n=$((n + 1)); done; }
`;

export type ExecClock = HandClock & {
  /** Resolves when an alarm is set that rings in so long. */
  armed(spanMs: number): Promise<void>;
};

export function execClock(): ExecClock {
  const clock = createHandClock({ at: 1_000_000 });
  let onSet = (): void => {};
  return {
    ...clock,
    ringAt(at, ring) {
      const cancel = clock.ringAt(at, ring);
      onSet();
      return cancel;
    },
    async armed(spanMs) {
      while (!clock.alarms().includes(spanMs))
        await new Promise<void>((resolve) => {
          onSet = resolve;
        });
    },
  };
}

export type Running = {
  readonly outcome: Promise<ExecOutcome>;
  readonly progress: unknown[];
  readonly usage: Usage[];
  abort(reason?: unknown): void;
  /** Resolves when the script has said it. */
  said(word: string): Promise<void>;
  /** Resolves with the first thing it said. */
  first(): Promise<unknown>;
};
export type World = {
  readonly home: string;
  readonly data: string;
  readonly warnings: string[];
  readonly handler: ExecHandler;
  start(task?: Partial<ExecTask>): Running;
  run(task?: Partial<ExecTask>): Promise<ExecOutcome>;
};

export type WorldOptions = Partial<ExecOptions> & { readonly script?: string };

export const temporaryHome = (t: TestContext): string => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "exec-world-")));
  t.after(() => rmSync(home, { recursive: true, force: true, maxRetries: 3 }));
  return home;
};

/** A worker whose tasks run the script in /bin/sh. */
export function createWorld(t: TestContext, { script, ...options }: WorldOptions): World {
  const home = options.data === undefined ? temporaryHome(t) : join(options.data, "..");
  const data = options.data ?? join(home, "data");
  const warnings: string[] = [];
  const command = script === undefined ? {} : { command: ["/bin/sh", "-c", `${SAY}${script}`] };
  const handler = createExecHandler({
    ...{ data, cwd: home, onWarning: (text: string) => warnings.push(text), ...command },
    ...options,
  });
  t.after(() => handler.close());
  const start = (task: Partial<ExecTask> = {}): Running => startOn(handler, task);
  return { home, data, warnings, handler, start, run: (task) => start(task).outcome };
}

export function startOn(handler: ExecHandler, given: Partial<ExecTask>): Running {
  const controller = new AbortController();
  const [progress, usage]: [unknown[], Usage[]] = [[], []];
  const ears = new Set<() => void>();
  const task: ExecTask = { taskId: "t1", attempt: 1, action: "work", agentId: "a1", ...given };
  const outcome = handler.run(task, {
    attempt: task.attempt,
    signal: controller.signal,
    usage: (value) => usage.push(value),
    progress: (value) => {
      progress.push(value);
      for (const ear of ears) ear();
    },
  });

  async function until(isHeard: () => boolean, what: string): Promise<void> {
    if (isHeard()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const ear = (): void => {
      if (isHeard()) resolve();
    };
    ears.add(ear);
    outcome.then((end) => reject(new Error(`it ended before it said ${what}: ${JSON.stringify(end)}`)), reject);
    await promise.finally(() => ears.delete(ear));
  }
  return {
    ...{ outcome, progress, usage, abort: (reason) => controller.abort(reason) },
    said: (word) => until(() => progress.includes(word), word),
    async first() {
      await until(() => progress.length > 0, "anything");
      return progress[0];
    },
  };
}

const table = procTable();

export function isAlive(pid: number): boolean {
  const entry = table.read(pid);
  return entry !== null && !entry.isZombie;
}

export const exists = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;
