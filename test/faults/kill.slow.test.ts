/**
 * kill -9, two hundred times: nothing that was acknowledged is lost, and nothing is half done.
 *
 * A child process submits, finishes and cancels in a tight loop and prints each promise once it is acknowledged.
 * It is killed after a number of lines drawn from a seed, also while it opens, recovers or makes a snapshot; the next
 * child checks every promise made so far before it makes its own. DROVER_SEED repeats a run's draws.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";

const KILLS = 200;
/** How often it dies in each directory. One log grows old; the rest stay young, or checking would be most of it. */
const DEATHS: readonly number[] = [40, ...Array.from({ length: 16 }, () => 10)];
const AT_ONCE = 2;
const LINES_MAX = 120;
const CHILD = join(import.meta.dirname, "../kits/faults/kill-writer.ts");
const seed = Number(process.env.DROVER_SEED ?? 20_260_131);

/** Numbers from a seed: the same on every machine. */
function diceFrom(start: number): (sides: number) => number {
  let state = start >>> 0;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

type Life = {
  readonly lines: string[];
  readonly signal: string | null;
  readonly code: number | null;
  readonly error: string;
};

/** Where what is compiled is kept if nobody says: starting two hundred times would take longer than all the rest. */
const cache = await mkdtemp(join(tmpdir(), "drover-compiled-"));
after(() => rm(cache, { recursive: true, force: true }));

/** One life: it ends after so many lines, if it does not end by itself. */
async function live(
  directory: string,
  acknowledged: string,
  round: number | "warm-up",
  linesUntilKill: number,
): Promise<Life> {
  const args = ["--disable-warning=ExperimentalWarning", CHILD, directory, acknowledged, String(round)];
  const env = { NODE_COMPILE_CACHE: cache, ...process.env };
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], env });
  const errors: string[] = [];
  child.stderr.on("data", (chunk: Buffer) => void errors.push(chunk.toString()));
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) =>
    child.once("close", (code, signal) => resolve({ code, signal })),
  );
  const lines: string[] = [];
  // What comes after the kill was printed before it, and so was acknowledged too.
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (lines.length === linesUntilKill) child.kill("SIGKILL");
  }
  return { lines, ...(await ended), error: errors.join("") };
}

async function killOften(dice: (sides: number) => number, kills: number): Promise<{ promises: number }> {
  const home = await mkdtemp(join(tmpdir(), "drover-kill-"));
  const [directory, acknowledged] = [join(home, "data"), join(home, "acknowledged")];
  writeFileSync(acknowledged, "");
  let promises = 0;
  try {
    for (let round = 0; round < kills; round++) {
      // One in eight dies while it opens; the last one is let through its check.
      const lines = dice(8) === 0 && round < kills - 1 ? 1 + dice(2) : 3 + dice(LINES_MAX);
      const life = await live(directory, acknowledged, round, lines);
      assert.equal(life.signal, "SIGKILL", `seed ${seed}, round ${round}: it ended with ${life.code}: ${life.error}`);
      const made = life.lines.filter((line) => /^[SDC] /.test(line));
      promises += made.length;
      if (made.length > 0) appendFileSync(acknowledged, `${made.join("\n")}\n`);
    }
    const last = await live(directory, acknowledged, kills, 2);
    assert.deepEqual([last.signal, last.lines[1]], ["SIGKILL", "V"], last.error);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
  return { promises };
}

async function warmUp(): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "drover-kill-"));
  writeFileSync(join(home, "acknowledged"), "");
  const life = await live(join(home, "data"), join(home, "acknowledged"), "warm-up", Number.POSITIVE_INFINITY);
  await rm(home, { recursive: true });
  assert.equal(life.code, 0, life.error);
}

test(`after ${KILLS} kills nothing acknowledged is lost and nothing is half applied (seed ${seed})`, async () => {
  await warmUp();
  const waiting = [...DEATHS.entries()];
  const sums: { promises: number }[] = [];
  async function lane(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, kills] = next;
      sums.push(await killOften(diceFrom(seed + index), kills));
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  const kills = DEATHS.reduce((sum, count) => sum + count, 0);
  assert.ok(kills >= KILLS, `${kills} kills`);
  const promises = sums.reduce((sum, run) => sum + run.promises, 0);
  assert.ok(promises > KILLS * 10, `${promises} promises were put to the test`);
});
