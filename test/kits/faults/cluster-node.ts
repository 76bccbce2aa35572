/**
 * A node of a cluster as a process, which makes promises while it leads, and can be killed, stopped and continued.
 *
 *     node cluster-node.ts URL DIRECTORY ID
 *
 * It says, a line each: `follower` and `leader` when a life begins, `S ID EPOCH` for a submit that was acknowledged and
 * `D ID EPOCH` for a task that was seen to be done, with the epoch of the log then. When its standard input ends it
 * hands the lead over, closes, and says `end`.
 */
import { readConfig } from "../../../src/core/config/index.ts";
import { type NodeLife, openNode } from "../../../src/engine/node/index.ts";
import { openJournal, openSharedLog } from "../../../src/log/shared/index.ts";
import { realClock } from "../../../src/std/index.ts";

const LANES = 8;
const [url = "", directory = "", id = ""] = process.argv.slice(2);
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const warn = (line: string): void => void process.stderr.write(`${line}\n`);

const journal = await openJournal(url, { onNotice: warn });
const log = await openSharedLog({ journal, directory, onNotice: warn });
const read = readConfig({});
if (!read.ok) throw new Error("the config of a test is wrong");
let names = 0;
const node = await openNode({
  id,
  log,
  clock: realClock,
  config: () => read.value,
  leaseMs: 3000,
  advertise: () => `http://${id}.test`,
  publicKey: Buffer.from(id).toString("base64"),
  newId: () => `${id}-${process.pid}-${++names}`,
  onWarning: warn,
  artifactExists: async () => false,
});
void node.failed.then((error) => {
  warn(`failed: ${error.message}`);
  process.exit(4);
});
node.onLife((life) => {
  say(life.role);
  if (life.role === "leader") void lead(life);
});
process.stdin.resume();
process.stdin.once("end", async () => {
  await node.close();
  say("end");
  process.exit(0);
});

/** While this life lasts. What it rejects with when it ends is said to be tried again; whoever wants to does. */
async function lead({ drover, signal }: NodeLife): Promise<void> {
  const lane = async (): Promise<void> => {
    while (!signal.aborted) {
      const taskId = `t-${id}-${process.pid}-${++names}`;
      await drover.submit({ id: taskId, agentId: "ann", action: "build" });
      say(`S ${taskId} ${node.applied().epoch}`);
      const { state } = await drover.wait(taskId);
      if (state !== "done") throw new Error(`${taskId} is ${state}`);
      say(`D ${taskId} ${node.applied().epoch}`);
    }
  };
  try {
    await drover.worker({ slots: LANES }, ({ taskId }) => `made ${taskId}`);
    await Promise.all(Array.from({ length: LANES }, lane));
  } catch (error) {
    if (!signal.aborted) warn(`a lane ended: ${error}`);
  }
}
