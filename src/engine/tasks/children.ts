/**
 * Children that an attempt submits while it runs: what they have from their parent.
 *
 * Parent, project and agent are those of the task that runs, and a body that says otherwise is refused. Labels are
 * added to its own, which count where both say something. The priority is the parent's unless the child has one
 * (core/lifecycle/admission.ts), and what a child uses counts against the budget of that same project.
 */
import { isRecord, name, type TaskId, taskId, whole } from "../../core/base/index.ts";
import type { State, Task } from "../../core/model/index.ts";
import type { BatchAnswer, Submitted } from "../../protocol/index.ts";
import { accepted, badInput, DroverError, reading, refused } from "../base/drover-error.ts";
import { type BatchInput, lookForArtifact, refusedItem, type SubmitParts, submitAll, submitRead } from "./submit.ts";
import { type ReadTask, readTaskBody, type TaskInput } from "./task-body.ts";

/** What a running task submits: who it is of need not be said. */
export type ChildInput = Omit<TaskInput, "agentId"> & { readonly agentId?: string };
/** The same, many at once. */
type ChildBatch = Omit<BatchInput, "agentId"> & { readonly agentId?: string };

export type ChildApi = {
  /**
   * Submits a task for an attempt that runs: a child of its task, which does not wait for it to end. Parent, project
   * and agent are those of the task; labels and priority too, unless the child has its own.
   */
  submitChild(parent: string, attempt: number, task: ChildInput): Promise<Submitted>;
  /** Submits many children at once for an attempt that runs. */
  submitChildren(parent: string, attempt: number, batch: ChildBatch): Promise<BatchAnswer>;
};

const idOf = (given: unknown): TaskId => taskId(accepted(name()(given, "taskId")));
const numberOf = (given: unknown): number => accepted(whole(1)(given, "attempt"));

export function createChildApi(parts: SubmitParts): ChildApi {
  const { settled } = parts.writer;
  return {
    async submitChild(parent, attempt, body) {
      const [id, ofRunning] = [idOf(parent), numberOf(attempt)];
      const read = reading(body, "", () => readChild(parts, id, ofRunning, body));
      const found = await lookForArtifact(parts, read);
      const answer = submitRead(parts, found, true, { group: null, ofRunning });
      await settled();
      if (answer instanceof DroverError) throw answer;
      return answer;
    },
    async submitChildren(parent, attempt, batch) {
      const [id, ofRunning] = [idOf(parent), numberOf(attempt)];
      const answer = await reading(batch, "", () => submitMany(parts, id, ofRunning, batch));
      await settled();
      return answer;
    },
  };
}

function readChild({ writer }: SubmitParts, parent: TaskId, attempt: number, body: unknown): ReadTask {
  if (!isRecord(body)) return readTaskBody(body);
  return readTaskBody(childOf(liveParent(writer.state, parent, attempt), body));
}

function submitMany(parts: SubmitParts, parent: TaskId, attempt: number, batch: ChildBatch): Promise<BatchAnswer> {
  const task = liveParent(parts.writer.state, parent, attempt);
  if (!isRecord(batch) || !Array.isArray(batch.tasks)) return submitAll(parts, batch as BatchInput);
  const { tasks: items, ...shared } = batch;
  const { agentId, project } = inherited(task, shared, ["agentId", "project"]);
  const tasks = Array.from(items, (item: unknown) => {
    if (!isRecord(item)) return item;
    try {
      return childOf(task, item);
    } catch (error) {
      if (!(error instanceof DroverError)) throw error;
      return refusedItem(item, error.message);
    }
  });
  return submitAll(parts, { ...shared, agentId, project, tasks } as BatchInput, attempt);
}

/** The task whose attempt this is, while it lasts. */
function liveParent({ tasks }: State, id: TaskId, attempt: number): Task {
  const parent = tasks.get(id);
  if (parent === undefined) throw refused({ type: "task-unknown", task: id });
  const { attempt: live } = parent;
  if (live === null || live.number !== attempt || live.state === "stopping")
    throw refused({ type: "attempt-stale", task: id, attempt, current: live?.number ?? null });
  return parent;
}

type Given = Readonly<Record<string, unknown>>;
const OWN = ["parent", "project", "agentId"] as const;

function childOf(parent: Task, body: Given): TaskInput {
  const labels = labelsOf(parent, body.labels);
  const own = inherited(parent, body, OWN);
  return { ...body, ...own, ...(labels === undefined ? {} : { labels }) } as TaskInput;
}

/** What a child has from its parent and may say itself only if it says the same. */
function inherited(parent: Task, given: Given, fields: readonly (typeof OWN)[number][]): Record<string, string> {
  const own = { parent: parent.id, project: parent.project.id, agentId: parent.agent.id };
  return Object.fromEntries(
    fields.map((field) => {
      const [said, right] = [given[field], own[field]];
      if (said !== undefined && said !== right)
        throw badInput(field, said, `absent or ${right}, since ${parent.id}, which runs, submits it`);
      return [field, right];
    }),
  );
}

/** What is no object is left for the reader of the body to refuse. */
function labelsOf({ extra }: Task, own: unknown): unknown {
  const ofParent = extra?.labels ?? [];
  if (ofParent.length === 0 || (own !== undefined && !isRecord(own))) return own;
  const pairs = ofParent.map(({ text }) => {
    const end = text.indexOf("=");
    return [text.slice(0, end), text.slice(end + 1)] as const;
  });
  return { ...Object.fromEntries(pairs), ...own };
}
