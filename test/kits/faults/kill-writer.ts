/**
 * A process that is killed: it checks what its forerunners were promised, then makes promises until it dies.
 *
 *     node kill-writer.ts DIRECTORY ACKNOWLEDGED ROUND
 *
 * ACKNOWLEDGED is a file with one line for each promise made so far: `S id` a submit, `D id` an end, `C id` a cancel.
 * If one was broken it says which on stderr and ends with code 3. Every line is printed once Drover has acknowledged,
 * and is out before the next promise is made.
 */
import { hash } from "node:crypto";
import { readFileSync, writeSync } from "node:fs";
import { checkInvariants } from "../../../src/core/invariants/invariants.ts";
import { canonical } from "../../../src/engine/base/canonical-json.ts";
import { type Drover, openDrover, type TaskBody } from "../../../src/engine/index.ts";

const AT_ONCE = 16;
const READ_BACK = 50;
const [directory = "", acknowledged = "", round = ""] = process.argv.slice(2);

const numberOf = (id: string): number => Number.parseInt(hash("sha256", id, "hex").slice(0, 8), 16);
/** What a task says follows from its id, so that anybody can check it later. */
const bodyOf = (id: string): TaskBody & { payload: string } => ({
  id,
  agentId: `agent${numberOf(id) % 5}`,
  project: `project${numberOf(id) % 3}`,
  action: "build",
  payload: id.repeat(1 + (numberOf(id) % 100)),
});
const resultOf = (id: string): string => `result of ${id}`;
/** A quarter first runs until the process dies, so that there is always work to be taken up again. */
const hangs = (id: string): boolean => numberOf(id) % 4 === 0;

say("B");
const plenty = { maxInFlight: 1000, maxPerAgentInFlight: 1000, resultTtl: "1h" };
const config = { log: { snapshotEvery: 1000 }, scheduler: plenty, projects: { default: { maxConcurrent: 1000 } } };
const drover = await openDrover({ data: directory, config });
await check(drover, readFileSync(acknowledged, "utf8").split("\n").filter(Boolean));
say("V");
if (round === "warm-up") await endInPeace();
await drover.worker({ slots: 1000 }, ({ taskId, attempt }) =>
  hangs(taskId) && attempt === 1 ? new Promise(() => {}) : resultOf(taskId),
);
await Promise.all(Array.from({ length: AT_ONCE }, (_, lane) => promise(lane)));

/** So that Node writes its cache of compiled files: a child that is killed never does. */
async function endInPeace(): Promise<never> {
  await drover.snapshot();
  await drover.close();
  process.exit(0);
}

async function promise(lane: number): Promise<never> {
  for (let count = 0; ; count++) {
    const id = `r${round}-${lane}-${count}`;
    await drover.submit(bodyOf(id));
    say(`S ${id}`);
    if (numberOf(id) % 8 === 0) {
      await drover.cancel(id);
      say(`C ${id}`);
    } else if (!hangs(id)) {
      await drover.wait(id);
      say(`D ${id}`);
    }
  }
}

/** Standard output does not block once Node has opened it: when the reader is behind, the line waits for it. */
function say(line: string): void {
  for (let rest = Buffer.from(`${line}\n`); rest.length > 0; ) rest = rest.subarray(writtenOf(rest));
}

function writtenOf(bytes: Buffer): number {
  try {
    return writeSync(1, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return 0;
    throw error;
  }
}

async function check(opened: Drover, promises: readonly string[]): Promise<void> {
  const { state } = opened;
  const broken = checkInvariants(state);
  const report = await opened.verify();
  if (!report.ok) broken.push(...report.problems.map(({ message }) => message));
  for (const line of promises) {
    const [kind, id = ""] = line.split(" ");
    const found = state.tasks.get(id as never) ?? state.tombstones.get(id as never);
    if (found === undefined) broken.push(`${id} was acknowledged and is gone`);
    else if (found.bodyHash !== hash("sha256", canonical(bodyOf(id), ""), "hex")) broken.push(`${id} has another body`);
    else if (kind === "D" && found.phase !== "done") broken.push(`${id} was done and is ${found.phase}`);
    else if (kind === "C" && found.phase !== "cancelled") broken.push(`${id} was cancelled and is ${found.phase}`);
  }
  for (const line of promises.slice(-READ_BACK)) broken.push(...(await readBack(opened, line)));
  if (broken.length === 0) return;
  process.stderr.write(`${broken.slice(0, 10).join("\n")}\n`);
  process.exit(3);
}

/** The bytes themselves, and not only their hash, of the last promises. */
async function readBack(opened: Drover, line: string): Promise<string[]> {
  const [kind, id = ""] = line.split(" ");
  const view = await opened.task(id);
  const broken = view.payload === bodyOf(id).payload ? [] : [`the payload of ${id} is another`];
  return kind === "D" && view.result !== resultOf(id) ? [...broken, `the result of ${id} is another`] : broken;
}
