/**
 * A node of a cluster as the benchmark opens it, in this process or in one of its own (bench/cluster-part.ts).
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "../src/core/config/index.ts";
import { type DroverNode, openNode } from "../src/engine/node/index.ts";
import { openJournal, openSharedLog } from "../src/log/shared/index.ts";
import { realClock } from "../src/std/index.ts";
import { until } from "./peers/workload.ts";

/** As `drover serve` has it. */
const LEASE_MS = 3000;
const SECRET = "of all nodes of this benchmark";

export type BenchNode = { readonly id: string; readonly url: string; readonly config: object; readonly data?: string };

/** Resolves when it follows. Its data goes with it when it is closed; one that was killed comes back to its own. */
export async function openBenchNode({ id, url, config, data = newDirectory() }: BenchNode): Promise<DroverNode> {
  const read = readConfig(config);
  if (!read.ok) throw new Error(JSON.stringify(read.failure));
  mkdirSync(data, { recursive: true });
  const journal = await openJournal(url);
  const node = await openNode({
    ...{ id, data, clock: realClock, newId: randomUUID, leaseMs: LEASE_MS, attemptSecret: SECRET },
    log: await openSharedLog({ journal, directory: data }),
    config: () => read.value,
    advertise: () => `http://${id}.test`,
    publicKey: Buffer.from(id).toString("base64"),
    onWarning: (message) => process.stderr.write(`${id}: ${message}\n`),
  });
  const close = async (): Promise<void> => {
    await node.close();
    rmSync(data, { recursive: true, force: true });
  };
  return { ...node, close, [Symbol.asyncDispose]: close };
}

export const newDirectory = (): string => mkdtempSync(join(tmpdir(), "drover-bench-node-"));

export const leads = (node: DroverNode): Promise<void> => until(() => node.life().leads());
