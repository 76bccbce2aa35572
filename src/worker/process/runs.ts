/**
 * The runs of this machine, written down before they begin.
 *
 * Each has a directory of its own: who it belongs to, the task as the child reads it, the place for the result. It is
 * there before the child is, so whatever a worker that was killed leaves running can be found by its successor: by
 * the run's id, which is the tag in the environment, and where environments cannot be read, by the leader's pid and
 * the instant it began. It goes when the run is over and nothing of it lives.
 */
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { OWN_FILE_MODE } from "../../std/index.ts";
import type { Leader } from "./leftovers.ts";
import type { ProcessTable } from "./table.ts";

export type RunPlace = {
  readonly id: string;
  readonly taskFile: string;
  readonly resultFile: string;
  readonly promptFile: string;
  /** How the tasks ended that its task needs, and what of that is too large to stand in a document. */
  readonly inputsFile: string;
  readonly inputsDirectory: string;
  /** Its own place for temporary files, removed with it. Short, since sockets are put there too. */
  readonly temp: string;
  /** The child has begun. */
  noteLeader(leader: Leader): Promise<void>;
  end(): Promise<void>;
};
export type DeadRun = { readonly id: string; readonly leader: Leader | null; end(): Promise<void> };
export type Runs = {
  begin(run: { readonly taskId: string; readonly attempt: number }): Promise<RunPlace>;
  /** Those whose worker is gone. */
  dead(now: number): Promise<DeadRun[]>;
};

const RECORD = "run.json";
const TEMP_PREFIX = join(tmpdir(), "drover-run-");
/** A directory without a record is one that was being made; after this it has no owner. */
const NAMELESS_MS_MAX = 3_600_000;

export function createRuns(options: {
  readonly directory: string;
  readonly owner: Owner;
  readonly workerId: string | null;
  readonly table: ProcessTable;
}): Runs {
  const { directory, owner, workerId, table } = options;

  async function begin(run: { readonly taskId: string; readonly attempt: number }): Promise<RunPlace> {
    const id = randomUUID();
    const place = join(directory, id);
    await mkdir(place, { recursive: true, mode: 0o700 });
    const temp = await mkdtemp(TEMP_PREFIX);
    const record = { id, owner, workerId, ...run, temp };
    await writeJson(join(place, RECORD), record);
    return {
      id,
      temp,
      taskFile: join(place, "task.json"),
      resultFile: join(place, "result.json"),
      promptFile: join(place, "prompt.txt"),
      inputsFile: join(place, "inputs.json"),
      inputsDirectory: join(place, "inputs"),
      noteLeader: (leader) => writeJson(join(place, RECORD), { ...record, leader }),
      end: () => remove(place, temp),
    };
  }

  async function dead(now: number): Promise<DeadRun[]> {
    const found: DeadRun[] = [];
    for (const id of await readdir(directory).catch(() => [])) {
      const place = join(directory, id);
      const record = await readRecord(place);
      if (record === null ? await isNameless(place, now) : isOver(record))
        found.push({ id, leader: record?.leader ?? null, end: () => remove(place, record?.temp ?? null) });
    }
    return found;
  }

  /** A worker elsewhere that had this worker's name is a predecessor too: a name has one session. */
  function isOver(record: RunRecord): boolean {
    const state = stateOf(record.owner, table);
    return state === "dead" || (state === "elsewhere" && workerId !== null && record.workerId === workerId);
  }

  return { begin, dead };
}

type RunRecord = {
  readonly owner: Owner;
  readonly workerId: string | null;
  readonly temp: string | null;
  readonly leader: Leader | null;
};

/** Whole or not at all. */
export async function writeJson(path: string, record: object): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify(record), { mode: OWN_FILE_MODE });
  await rename(`${path}.new`, path);
}

async function readRecord(place: string): Promise<RunRecord | null> {
  try {
    const value = JSON.parse(await readFile(join(place, RECORD), "utf8")) as Record<string, unknown>;
    const owner = readOwner(value.owner);
    if (owner === null) return null;
    const { workerId, temp, leader } = value;
    return {
      owner,
      workerId: typeof workerId === "string" ? workerId : null,
      temp: typeof temp === "string" && temp.startsWith(TEMP_PREFIX) ? temp : null,
      leader: readLeader(leader),
    };
  } catch {
    return null;
  }
}

function readLeader(value: unknown): Leader | null {
  if (typeof value !== "object" || value === null) return null;
  const { pid, startedAt } = value as Record<string, unknown>;
  return typeof pid === "number" && typeof startedAt === "string" ? { pid, startedAt } : null;
}

async function isNameless(place: string, now: number): Promise<boolean> {
  const found = await stat(place).catch(() => null);
  return found !== null && found.mtimeMs < now - NAMELESS_MS_MAX;
}

async function remove(place: string, temp: string | null): Promise<void> {
  if (temp !== null) await rm(temp, { recursive: true, force: true, maxRetries: 2 });
  await rm(place, { recursive: true, force: true, maxRetries: 2 });
}

/**
 * Who a run belongs to: the machine, its boot, the pid and the instant the process began. A successor may clean up only
 * after a worker that is certainly gone. One that lives is left alone, and so is one on another machine that shares the
 * directory, since nothing can be known about it from here.
 */
export type Owner = {
  readonly host: string;
  readonly place: string;
  readonly pid: number;
  readonly startedAt: string | null;
};
type OwnerState = "alive" | "dead" | "elsewhere";

export function thisOwner(table: ProcessTable): Owner {
  const startedAt = table.read(process.pid)?.startedAt ?? null;
  return { host: hostname(), place: table.place, pid: process.pid, startedAt };
}

export function stateOf(owner: Owner, table: ProcessTable): OwnerState {
  if (owner.host !== hostname()) return "elsewhere";
  // Another boot, or the same container started anew: its processes went with it.
  if (owner.place !== table.place) return "dead";
  const entry = table.read(owner.pid);
  return entry !== null && !entry.isZombie && entry.startedAt === owner.startedAt ? "alive" : "dead";
}

export function readOwner(value: unknown): Owner | null {
  if (typeof value !== "object" || value === null) return null;
  const { host, place, pid, startedAt } = value as Record<string, unknown>;
  if (typeof host !== "string" || typeof place !== "string" || typeof pid !== "number") return null;
  return { host, place, pid, startedAt: typeof startedAt === "string" ? startedAt : null };
}
