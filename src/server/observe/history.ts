/**
 * How things stood over the last hours: a sample every ten seconds, kept in a file beside the log.
 *
 * The log could tell all of this again, event by event; charts want it at once. So a sample is taken from the state,
 * and nothing is counted on a hot path but how long tasks waited, in buckets. Each sample is a line that is added to
 * the file; when the file holds twice what is kept it is written anew. A file that cannot be read or written costs the
 * past and nothing else: the server goes on, and says so once.
 */
import { appendFile, readFile, rename, writeFile } from "node:fs/promises";
import { isRecord } from "../../core/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import { projectViews } from "../../engine/views/index.ts";
import type { Applied } from "../../engine/writer/index.ts";
import { type ProjectSample, SAMPLE_EVERY_MS, SAMPLES_KEPT_MS, type Sample } from "../../protocol/index.ts";
import { type Clock, isoTime, ringEvery } from "../../std/index.ts";

/** How many are kept, and of how many projects. */
const KEPT_MAX: number = SAMPLES_KEPT_MS / SAMPLE_EVERY_MS;
const PROJECTS_MAX = 20;
/** The names of projects are nobody else's. */
const OWN = { mode: 0o600 };
/** Waits are counted in buckets, each a quarter wider than the one before: 1 ms to a day. */
const RATIO = 1.25;
const BUCKETS = 84;

/** A sample beside what is sent of it: written once, however often it is asked for. */
export type KeptSample = {
  readonly at: number;
  readonly sample: Sample;
  readonly text: string;
  /** Without its projects. */
  readonly bare: string;
};

export type HistoryStore = {
  onCommitted(batch: readonly Applied[]): void;
  /** All that are kept, the oldest first; another list when there is another sample. */
  samples(): readonly KeptSample[];
  stop(): Promise<void>;
};
type Parts = {
  readonly drover: Drover;
  readonly clock: Clock;
  /** Absent: samples are gone with the process. */
  readonly file: string | undefined;
  readonly onWarning: (message: string) => void;
};

export function createHistory({ drover, clock, file, onWarning }: Parts): HistoryStore {
  let kept: readonly KeptSample[] = [];
  let written = 0;
  let waits = new Uint32Array(BUCKETS);
  let isSaid = false;
  /** One thing at a time is done to the file. */
  let line: Promise<void> = Promise.resolve();

  function toFile(work: (path: string) => Promise<void>): void {
    if (file === undefined) return;
    line = line
      .then(() => work(file))
      .catch((error: unknown) => {
        if (!isSaid) onWarning(`the history of this server is not kept: ${(error as Error).message}`);
        isSaid = true;
      });
  }
  async function read(path: string): Promise<void> {
    const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "";
      throw error;
    });
    const lines = text.split("\n");
    written = lines.length;
    const first = drover.logTime().at - SAMPLES_KEPT_MS;
    const old = lines.flatMap(sampleIn).map(keptOf);
    kept = [...old.filter(({ at }) => at >= first), ...kept].slice(-KEPT_MAX);
  }
  async function add(path: string, text: string): Promise<void> {
    if (written < 2 * KEPT_MAX) {
      written++;
      return appendFile(path, `${text}\n`, OWN);
    }
    // A whole file takes the place of the old one, so that a crash in between leaves one of the two.
    written = kept.length;
    await writeFile(`${path}.new`, kept.map((one) => `${one.text}\n`).join(""), OWN);
    await rename(`${path}.new`, path);
  }
  function take(): void {
    const taken = keptOf(sampleOf(drover, waits));
    waits = new Uint32Array(BUCKETS);
    kept = [...kept, taken].slice(-KEPT_MAX);
    toFile((path) => add(path, taken.text));
  }

  toFile(read);
  const stopTaking = ringEvery(clock, SAMPLE_EVERY_MS, take, { keepAlive: false });
  return {
    onCommitted(batch) {
      for (const { event, task } of batch) {
        if (event.kind !== "task-assigned" || task === null) continue;
        const since = task.runnableAt;
        if (since >= 0 && since <= event.at) waits[bucketOf(event.at - since)]!++;
      }
    },
    samples: () => kept,
    async stop() {
      stopTaking();
      await line;
    },
  };
}

const keptOf = (sample: Sample): KeptSample => ({
  at: Date.parse(sample.at),
  sample,
  text: JSON.stringify(sample),
  bare: JSON.stringify({ ...sample, projects: [] }),
});

/** The sample in a line of the file; none in one that was cut off. */
function sampleIn(text: string): Sample[] {
  if (text === "") return [];
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && typeof value.at === "string" && Array.isArray(value.projects) ? [value as Sample] : [];
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

const bucketOf = (ms: number): number => Math.min(BUCKETS - 1, ms <= 1 ? 0 : Math.ceil(Math.log(ms) / Math.log(RATIO)));

/** The upper end of the bucket in which the part of all waits ends. */
function quantile(waits: Uint32Array, total: number, part: number): number {
  let seen = 0;
  for (const [index, count] of waits.entries()) {
    seen += count;
    if (seen >= total * part) return Math.round(RATIO ** index);
  }
  return 0;
}

function sampleOf({ state, logTime }: Drover, waits: Uint32Array): Sample {
  const { at } = logTime();
  const { totals } = state;
  const total = waits.reduce((sum, count) => sum + count, 0);
  return {
    at: isoTime(at),
    waiting: state.waiting,
    queued: state.queued,
    inFlight: state.inFlight,
    parked: state.parked,
    submitted: totals.submitted,
    done: totals.completed,
    failed: totals.failed,
    starts: totals.starts,
    ...(total === 0 ? {} : { waitP50Ms: quantile(waits, total, 0.5), waitP95Ms: quantile(waits, total, 0.95) }),
    projects: busiest(state, at),
  };
}

function busiest(state: Drover["state"], at: number): ProjectSample[] {
  const rows = projectViews(state, at).map(({ id, queued, inFlight, share, target, spent }) => ({
    id,
    queued,
    inFlight,
    share,
    target,
    spent,
  }));
  if (rows.length <= PROJECTS_MAX) return rows;
  const weight = ({ queued, inFlight, share }: ProjectSample): number => share * 1e6 + inFlight + queued / 1e6;
  return rows.sort((left, right) => weight(right) - weight(left)).slice(0, PROJECTS_MAX);
}
