/**
 * Callers that ask and do not read: what they cost a server in memory, and what a bystander notices of them.
 *
 * The server is a process of its own, so that nothing but the server is measured. Before an attack the same is asked
 * for and read: what any caller costs is not what the attack costs. The attack goes on until the server has worked on
 * all of it, while a bystander asks one thing after the other. Counted is what the server holds, several times on the
 * way, with its garbage collected first: when that happens by itself is V8's affair. The most it ever took from the
 * system and the bystander's times are printed, and nothing is asserted of them.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { clientOf } from "../kits/server-kit.ts";

/** Answers that wait to be read are bounded to 16 MiB in all; the rest is what goes with them. */
const COST_BYTES_MAX = 32_000_000;
/** How often the bystander asks, and in how many parts: the server's memory is looked at after each. */
const ROUNDS = 200;
const PARTS = 5;
const PROGRAM = join(import.meta.dirname, "server-process.ts");

async function startServer() {
  const directory = mkdtempSync(join(tmpdir(), "drover-memory-"));
  const child = spawn(process.execPath, ["--expose-gc", PROGRAM, directory], { stdio: ["pipe", "pipe", "inherit"] });
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
/** What it holds now, and the most it has had so far, in bytes. */
type Memory = { readonly held: number; readonly peak: number };
type Started = Awaited<ReturnType<typeof startServer>>;

/** Asks and never reads; resolves once everything has left. */
async function askAndSleep(port: number, text: string): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => {});
  socket.pause();
  await new Promise((resolve) => socket.write(text, resolve));
  return socket;
}

const inMegabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;

/** What was slower than all but a hundredth, in milliseconds. */
const p99 = (times: readonly number[]): string =>
  (times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? 0).toFixed(1);

/** A bystander that asks `count` times, one after the other; how long each took. */
async function bystander({ ask }: Started, count: number): Promise<number[]> {
  const times: number[] = [];
  for (let asked = 0; asked < count; asked++) {
    const startedAt = performance.now();
    assert.equal((await ask("health", {})).status, 200);
    times.push(performance.now() - startedAt);
  }
  return times;
}

/** Tells what it cost, and asserts that it was little. `last` is asked for behind all the rest. */
async function attack(server: Started, { connections, text, last }: Attack): Promise<string> {
  const before = await server.memory();
  const calm = await bystander(server, ROUNDS);
  const sockets = await Promise.all(Array.from({ length: connections }, () => askAndSleep(server.port, text)));
  const times: number[] = [];
  let held = 0;
  const look = async (): Promise<number> => Math.max(held, (await server.memory()).held - before.held);
  for (let part = 0; part < PARTS; part++) {
    times.push(...(await bystander(server, ROUNDS / PARTS)));
    held = await look();
  }
  assert.equal((await fetch(`${server.url}${last}`)).status, 200);
  held = await look();
  const peak = (await server.memory()).peak - before.peak;
  for (const socket of sockets) socket.destroy();
  const bystanders = `bystander p99 ${p99(times)} ms, before ${p99(calm)} ms`;
  const told = `${inMegabytes(held)} held, ${inMegabytes(peak)} at its peak; ${bystanders}`;
  assert.ok(held <= COST_BYTES_MAX, `it cost ${told}`);
  return told;
}
type Attack = { readonly connections: number; readonly text: string; readonly last: string };

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

for (const path of ["/openapi.json", "/docs/js/scalar.js", "/metrics"])
  test(`20 connections that ask for ${path} 1400 times each and never read cost little`, async (context) => {
    await using server = await startServer();
    for (let count = 0; count < 100; count++) await (await fetch(`${server.url}${path}`)).arrayBuffer();
    context.diagnostic(await attack(server, { connections: 20, text: get(path).repeat(1400), last: path }));
  });

test("1200 pages of tasks that nobody reads cost little", async (context) => {
  await using server = await startServer();
  const item = { action: "x", payload: "x".repeat(20_000) };
  for (let count = 0; count < 6; count++)
    await server.ask("submitBatch", { body: { agentId: "ann", tasks: Array.from({ length: 40 }, () => item) } });
  for (let count = 0; count < 300; count++) await server.ask("tasks", { query: { limit: 1000 } });
  const text = get("/tasks?limit=1000").repeat(10);
  context.diagnostic(await attack(server, { connections: 120, text, last: "/tasks?limit=1" }));
});
