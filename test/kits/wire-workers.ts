/**
 * People who use a server by plain HTTP and do not mind that it dies: they say the same again to the next one.
 *
 * A submitter repeats a submit under the same id until it is acknowledged. A worker goes on under its session, and
 * reports each result until it hears that it was heard. Both ask where the server is now whenever a call fails.
 */
import type { Assignment, ResultReport, SyncAnswer } from "../../src/protocol/index.ts";
import { clientOf, type Reply } from "./test-server.ts";

/** Where the server is: rejects only when there will be none any more. */
export type Whereabouts = { url(): Promise<string>; isOver(): boolean };

/** The same call until somebody answers it with something else than a refusal that will pass. */
async function insist<Answer>(at: Whereabouts, call: (url: string) => Promise<Reply<Answer>>): Promise<Reply<Answer>> {
  for (;;) {
    const url = await at.url();
    try {
      const reply = await call(url);
      if (reply.status !== 503) return reply;
    } catch {
      // The connection broke: whether the server acted, nobody knows.
    }
  }
}

export async function submitUntilAcknowledged(at: Whereabouts, id: string): Promise<void> {
  const body = { id, agentId: `agent-${id.length % 3}`, action: "x", payload: id };
  const reply = await insist(at, (url) => clientOf(url).ask("submit", { body }));
  if (reply.status !== 202) throw new Error(`${id}: ${reply.status} ${reply.text}`);
}

/** A worker that does what it is given at once; answers how often each result was accepted, and not as a repetition. */
export async function workUntilOver(at: Whereabouts, id: string, slots: number): Promise<Map<string, number>> {
  const accepted = new Map<string, number>();
  const unsaid = new Map<string, ResultReport>();
  let session = await join(at, id, slots);
  for (let n = 1; !at.isOver(); n++) {
    const results = [...unsaid.values()];
    const body = { session, n, running: [], results, waitMs: 500 };
    const reply = await insist(at, (url) => clientOf(url).ask("sync", { params: { id }, body })).catch(() => null);
    if (reply === null) break;
    if (reply.status !== 200) {
      session = await join(at, id, slots);
      continue;
    }
    hear(reply.json, unsaid, accepted);
  }
  return accepted;
}

async function join(at: Whereabouts, id: string, slots: number): Promise<string> {
  const reply = await insist(at, (url) => clientOf(url).ask("joinWorker", { body: { id, slots } }));
  return reply.json.session;
}

function hear(answer: SyncAnswer, unsaid: Map<string, ResultReport>, accepted: Map<string, number>): void {
  for (const { taskId, attempt, accepted: isAccepted, code } of answer.results) {
    unsaid.delete(`${taskId}#${attempt}`);
    if (isAccepted && code === undefined) accepted.set(taskId, (accepted.get(taskId) ?? 0) + 1);
  }
  for (const assignment of answer.assignments)
    unsaid.set(`${assignment.taskId}#${assignment.attempt}`, done(assignment));
}

const done = ({ taskId, attempt, task }: Assignment): ResultReport => ({
  ...{ taskId, attempt, outcome: "done" },
  result: `result of ${String(task.payload)}`,
});
