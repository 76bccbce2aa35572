/**
 * A worker that speaks the protocol of pull workers to an embedded engine, for what only such a worker can get wrong:
 * its files. It puts them once, or twice, or only after it has reported them, or never. A report that lists what was
 * not put is refused, and the attempt is lost; the next one does it otherwise.
 */
import { hash } from "node:crypto";
import { DroverError } from "../engine/base/index.ts";
import type { Drover } from "../engine/index.ts";
import type { Surroundings } from "./workers.ts";

type Sync = Drover["remote"]["sync"];
type Assignment = Awaited<ReturnType<Sync>>["assignments"][number];
type ResultReport = NonNullable<Parameters<Sync>[1]["results"]>[number];

const POLL_MS = 3000;
/** Without anything to do for so many polls it goes, so that time can pass. */
const IDLE_POLLS_MAX = 40;
const REPORTS_MAX = 2;
const UPLOADS = ["once", "twice", "late", "lost", "once"] as const;

/** Works until the engine is gone, or there is nothing to do. */
export async function runWireWorker(drover: Drover, where: Surroundings, id: string): Promise<void> {
  try {
    await work(drover, where, id);
  } catch (error) {
    // An engine that has stopped, or a session that is over: the next one joins anew.
    if (!(error instanceof DroverError)) throw error;
  }
}

async function work({ remote, files }: Drover, where: Surroundings, id: string): Promise<void> {
  const { session } = await remote.join({ id, slots: 2 });
  /** How often each attempt was reported; one that is refused again is given up. */
  const reported = new Map<string, number>();
  let reports: ResultReport[] = [];
  for (let n = 1, idle = 0; idle < IDLE_POLLS_MAX; n++) {
    const said = { session, n, running: [], results: reports, waitMs: POLL_MS };
    const { assignments, results } = await remote.sync(id, said);
    for (const { code } of results) if (code === "files_missing") where.noteRefused();
    const due = assignments.filter((one) => (reported.get(keyOf(one)) ?? 0) < REPORTS_MAX);
    for (const one of due) reported.set(keyOf(one), (reported.get(keyOf(one)) ?? 0) + 1);
    idle = due.length === 0 ? idle + 1 : 0;
    reports = await Promise.all(due.map((assignment) => reportOf(files, where, assignment)));
  }
  await remote.leave(id, { session });
}

const keyOf = ({ taskId, attempt, taskSeq }: Assignment): string => `${taskId}#${attempt} ${taskSeq}`;

async function reportOf(files: Drover["files"], where: Surroundings, given: Assignment): Promise<ResultReport> {
  const { taskId, attempt, task, taskSeq = 0 } = given;
  where.sawInputs(taskId, attempt, task.inputs);
  const text = `${taskId} of attempt ${attempt % 2}`;
  const file = { path: "made", hash: hash("sha256", text, "hex"), size: text.length };
  const how = UPLOADS[(taskId.length + attempt) % UPLOADS.length];
  const put = (): Promise<unknown> => files.put(text, { hash: file.hash, task: taskId, attempt }).catch(unlessRefused);
  if (how === "once" || how === "twice") await put();
  if (how === "twice") await put();
  if (how === "late") void Promise.resolve().then(put);
  return { taskId, attempt, taskSeq, outcome: "done", result: { attempt }, files: [file] };
}

/** No room, or a disk that failed: then the report is refused. */
function unlessRefused(error: unknown): void {
  if (!(error instanceof Error)) throw error;
}
