/**
 * A constant load on a cluster over plain HTTP: submits, cancels, permits and workers, and what they were told.
 *
 * Every caller knows all addresses. One that gets no answer, or an answer that says "not now" (5xx), asks again under
 * the same id, at the next address. What was answered as done is taken down: the checker (cluster-checker.ts) compares
 * it with the history. Nothing here is shared with the product.
 */
const ANSWER_MS = 5000;
const REST_MS = 60;
const POLL_MS = 400;

export type Promised =
  /** The task was taken. */
  | { readonly kind: "submitted"; readonly task: string }
  | { readonly kind: "cancelled"; readonly task: string }
  /** The result counts. */
  | { readonly kind: "result"; readonly task: string; readonly attempt: number; readonly worker: string }
  | { readonly kind: "settled"; readonly permit: string };
export type ClusterLoad = {
  readonly promises: readonly Promised[];
  /** What was answered and must not be. */
  readonly faults: readonly string[];
  /** Resolves when so many tasks more were done and as many submitted, whoever leads. */
  flows(tasks: number): Promise<void>;
  /** No more is submitted; resolves when every caller has its answer and every task has ended. */
  drain(): Promise<void>;
  stop(): Promise<void>;
};

type Json = Record<string, never> & { readonly [name: string]: unknown };
type Answer = { readonly status: number; readonly json: Json };

export function startLoad(urls: () => readonly string[]): ClusterLoad {
  const promises: Promised[] = [];
  const faults: string[] = [];
  const heard = new Set<() => void>();
  const open = new Set<string>();
  let [isDraining, isOver] = [false, false];
  /** Counts addresses: the one that answered last is asked first. */
  let answering = 0;
  let names = 0;

  function promise(one: Promised): void {
    promises.push(one);
    for (const look of [...heard]) look();
  }

  /** Asks until somebody answers; null once the load is over. */
  async function ask(method: string, path: string, body?: object): Promise<Answer | null> {
    // Each call goes round by itself: callers that shared one count moved it on together, back to where they were.
    for (let turn = answering; !isOver; turn++) {
      const all = urls();
      const url = all[turn % Math.max(1, all.length)];
      const answer = url === undefined ? null : await once(`${url}${path}`, method, body);
      if (answer !== null && answer.status < 500) {
        answering = turn;
        return answer;
      }
      await rest(REST_MS);
    }
    return null;
  }

  async function submits(lane: number): Promise<void> {
    while (!isDraining && !isOver) {
      const task = `t${lane}-${++names}`;
      const answer = await ask("POST", "/tasks", {
        id: task,
        agentId: `agent-${lane}`,
        action: "work",
        maxAttempts: 5,
      });
      if (answer === null) return;
      if (answer.status !== 202 && answer.status !== 200) faults.push(`submit of ${task}: ${JSON.stringify(answer)}`);
      open.add(task);
      promise({ kind: "submitted", task });
      if (names % 10 === 0) await cancel(task);
      await rest(REST_MS);
    }
  }

  async function cancel(task: string): Promise<void> {
    const answer = await ask("POST", `/tasks/${task}/cancel`, {});
    // 409: it has ended, perhaps by this very call, whose answer was lost.
    if (answer?.status === 200) promise({ kind: "cancelled", task });
    else if (answer !== null && answer.status !== 409) faults.push(`cancel of ${task}: ${JSON.stringify(answer)}`);
  }

  async function calls(lane: number): Promise<void> {
    while (!isDraining && !isOver) {
      const id = `call-${lane}-${++names}`;
      let status: unknown = "queued";
      while (status !== "granted" && !isDraining && !isOver)
        status = (await ask("POST", "/permits", { gate: "llm", id, waitMs: 1000 }))?.json.status;
      if (status !== "granted") return;
      const answer = await ask("POST", `/permits/${id}/settle`, { ok: true });
      if (answer === null) return;
      // 404: the grant went with its leader.
      if (answer.status === 404) continue;
      if (answer.status !== 200) faults.push(`settlement of ${id}: ${JSON.stringify(answer)}`);
      promise({ kind: "settled", permit: id });
      const late = await ask("POST", "/permits", { gate: "llm", id });
      if (late !== null && late.status !== 409) faults.push(`${id} was settled, and is asked for: ${late.status}`);
      await rest(REST_MS);
    }
  }

  /** A worker as a stranger would write it: it names what it runs, and repeats what was not answered. */
  async function works(worker: string): Promise<void> {
    let session: unknown = null;
    let running = new Map<string, { taskId: string; attempt: number }>();
    for (let n = 1; !isOver; n++) {
      if (session === null) {
        session = (await ask("POST", "/workers", { id: worker, slots: 20 }))?.json.session ?? null;
        running = new Map();
        continue;
      }
      const results = [...running.values()].map((one) => ({ ...one, outcome: "done" }));
      const said = { session, n, running: [], results, waitMs: results.length > 0 ? 0 : POLL_MS };
      const answer = await ask("POST", `/workers/${worker}/sync`, said);
      if (answer === null) return;
      if (answer.status !== 200) {
        // Another session, or a number that was heard already: it begins anew.
        session = null;
        continue;
      }
      for (const { taskId: task, attempt, accepted, code } of rowsOf(answer.json.results)) {
        open.delete(String(task));
        if (accepted === true && code === undefined)
          promise({ kind: "result", task: String(task), attempt: Number(attempt), worker });
      }
      running = new Map();
      for (const { taskId, attempt } of rowsOf(answer.json.assignments))
        running.set(`${taskId}/${attempt}`, { taskId: String(taskId), attempt: Number(attempt) });
    }
  }

  const callers = [submits(1), submits(2), calls(1), calls(2)];
  const workers = [works("w1"), works("w2")];

  /** Those that nobody has heard the end of are asked for. */
  async function allEnded(): Promise<void> {
    for (const task of [...open]) {
      while (!isOver) {
        const answer = await ask("GET", `/tasks/${task}`);
        // One that is not there was lost: the checker says so.
        if (answer?.status === 404 || ENDED.has(String(answer?.json.state))) break;
        await rest(REST_MS);
      }
      open.delete(task);
    }
  }

  return {
    promises,
    faults,
    flows(tasks) {
      const wanted = { submitted: tasks, result: tasks } as Record<string, number>;
      let at = promises.length;
      const { promise: done, resolve } = Promise.withResolvers<void>();
      const look = (): void => {
        for (; at < promises.length; at++) {
          const { kind } = promises[at] as Promised;
          if (wanted[kind] !== undefined) wanted[kind]--;
        }
        if (Object.values(wanted).every((left) => left <= 0)) resolve();
      };
      heard.add(look);
      return done.finally(() => heard.delete(look));
    },
    async drain() {
      isDraining = true;
      await Promise.all(callers);
      await allEnded();
    },
    async stop() {
      isDraining = true;
      isOver = true;
      await Promise.all([...callers, ...workers]);
    },
  };
}

const ENDED: ReadonlySet<string> = new Set(["done", "failed", "cancelled", "skipped"]);
const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const rowsOf = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);

/** One try; null if no answer came. */
async function once(url: string, method: string, body: object | undefined): Promise<Answer | null> {
  try {
    const response = await fetch(url, {
      method,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    return { status: response.status, json: (await response.json()) as Json };
  } catch {
    return null;
  }
}
