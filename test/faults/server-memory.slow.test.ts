/**
 * Callers that ask and do not read: what they cost a server in memory, and what a bystander notices of them.
 *
 * Before an attack the same is asked for and read: what any caller costs is not what the attack costs. The attack goes
 * on until the server has worked on all of it.
 */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { type Attacked, attackedServer, costOf } from "../kits/attacked-server.ts";

/** Answers that wait to be read are bounded to 16 MiB in all; the rest goes with them, or is just being cut off. */
const COST_BYTES_MAX = 64_000_000;

/** Asks and never reads; resolves once everything has left. */
async function askAndSleep(port: number, text: string): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => {});
  socket.pause();
  await new Promise((resolve) => socket.write(text, resolve));
  return socket;
}

/** `last` is asked for behind all the rest. */
type Attack = { readonly connections: number; readonly text: string; readonly last: string };

async function attack(server: Attacked, { connections, text, last }: Attack): Promise<string> {
  const sockets: Socket[] = [];
  const cost = await costOf(server, COST_BYTES_MAX, async () => {
    sockets.push(...(await Promise.all(Array.from({ length: connections }, () => askAndSleep(server.port, text)))));
    await (await fetch(`${server.url}${last}`)).arrayBuffer();
  });
  for (const socket of sockets) socket.destroy();
  return cost;
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

for (const path of ["/openapi.json", "/docs/js/scalar.js", "/metrics"])
  test(`20 connections that ask for ${path} 1400 times each and never read cost little`, async (context) => {
    await using server = await attackedServer();
    for (let count = 0; count < 100; count++) await (await fetch(`${server.url}${path}`)).arrayBuffer();
    context.diagnostic(await attack(server, { connections: 20, text: get(path).repeat(1400), last: path }));
  });

/** A page ends with its bytes or with its tasks; the second kind of page is the largest there is, in both. */
for (const [batches, length] of [
  [6, 20_000],
  [25, 900],
] as const)
  test(`1200 pages of tasks of ${length} bytes that nobody reads cost little`, async (context) => {
    await using server = await attackedServer({ scheduler: { maxPerAgent: 1000 } });
    const tasks = Array.from({ length: 40 }, () => ({ action: "x", payload: "x".repeat(length) }));
    for (let count = 0; count < batches; count++)
      assert.equal((await server.ask("submitBatch", { body: { agentId: "ann", tasks } })).json.accepted, 40);
    for (let count = 0; count < 300; count++) await server.ask("tasks", { query: { limit: 1000 } });
    const text = get("/tasks?limit=1000").repeat(10);
    context.diagnostic(await attack(server, { connections: 120, text, last: "/tasks?limit=1" }));
  });
