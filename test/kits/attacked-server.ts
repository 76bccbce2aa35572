/**
 * What an attack costs a server in memory, and what a bystander notices of it.
 *
 * The server is a process of its own, so that nothing but the server is measured. While the attack goes on a bystander
 * asks one thing after the other, and every answer must be the one it would get in peace. Counted is what the server
 * holds, several times on the way, with its garbage collected first: when that happens by itself is V8's affair. The
 * most it ever took from the system and the bystander's times are told, and nothing is asserted of them.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Client, clientOf } from "./test-server.ts";

/** How often the bystander asks at least, and after how many the server's memory is looked at. */
const ROUNDS = 200;
const ROUNDS_PER_LOOK = 40;
const PROGRAM = join(import.meta.dirname, "faults/server-process.ts");

/** What it holds now, and the most it has had so far, in bytes. */
type Memory = { readonly held: number; readonly peak: number };
export type Attacked = AsyncDisposable &
  Client & { readonly url: string; readonly port: number; memory(): Promise<Memory> };

export async function attackedServer(config: object = {}): Promise<Attacked> {
  const directory = mkdtempSync(join(tmpdir(), "drover-attacked-"));
  const child = spawn(process.execPath, ["--expose-gc", PROGRAM, directory, JSON.stringify(config)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next();
    assert.ok(done !== true, "the server process has ended");
    return value;
  };
  child.stdin.write("begin\n");
  const url = await next();
  return {
    ...{ url, port: Number(new URL(url).port), ...clientOf(url) },
    memory: async (): Promise<Memory> => {
      child.stdin.write("memory\n");
      return JSON.parse(await next()) as Memory;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Tells what it cost, and asserts that the server held little more than before and answered every bystander. */
export async function costOf(server: Attacked, heldMax: number, attack: () => Promise<unknown>): Promise<string> {
  const before = await server.memory();
  const calm = await bystander(server, ROUNDS);
  let isOver = false;
  const attacking = attack().finally(() => {
    isOver = true;
  });
  const times: number[] = [];
  let held = 0;
  while (!isOver || times.length < ROUNDS) {
    times.push(...(await bystander(server, ROUNDS_PER_LOOK)));
    held = Math.max(held, (await server.memory()).held - before.held);
  }
  await attacking;
  const after = await server.memory();
  held = Math.max(held, after.held - before.held);
  const memory = `${inMegabytes(held)} held, ${inMegabytes(after.peak - before.peak)} at its peak`;
  const told = `${memory}; bystander p99 ${p99(times)} ms, before ${p99(calm)} ms`;
  assert.ok(held <= heldMax, `it cost ${told}`);
  return told;
}

const inMegabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;

/** What was slower than all but a hundredth, in milliseconds. */
const p99 = (times: readonly number[]): string =>
  (times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? 0).toFixed(1);

/** A bystander that asks `count` times, one after the other; how long each took. */
async function bystander({ ask }: Attacked, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let asked = 0; asked < count; asked++) {
    const startedAt = performance.now();
    assert.equal((await ask("health", {})).status, 200);
    times.push(performance.now() - startedAt);
  }
  return times;
}
