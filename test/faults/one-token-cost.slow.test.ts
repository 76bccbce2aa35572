/**
 * One agent's token that asks for as much as it can, from many connections at once: what that costs a server, and what
 * a bystander notices of it. What is refused, and to whom, is in test/end-to-end/one-token.slow.test.ts.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Attacked, attackedServer, costOf } from "../kits/attacked-server.ts";

/**
 * What the bodies under way take. Twenty of half a MiB, each as the bytes that came, as text, as what it says, as text
 * to be stored, in the block of its batch and in one twice as large that it grows into: 7 × 10 MiB, and some room.
 */
const COST_BYTES_MAX = 80_000_000;
const LANES = 20;
const tokenOf = (name: string): { token: string } => ({ token: `token-of-${name}-0123456789` });
const rude = tokenOf("rude");
const calm = tokenOf("calm");
const server = {
  tokens: [
    { role: "agent", ...rude, project: "rude" },
    { role: "agent", ...calm, project: "calm" },
  ],
};

/** So many calls, some at a time; the statuses of their answers. */
async function flood(count: number, call: (n: number) => Promise<{ status: number }>): Promise<number[]> {
  const statuses: number[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) statuses.push((await call(next++)).status);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return statuses;
}

type Case = { readonly name: string; readonly config?: object; readonly attack: (at: Attacked) => Promise<number[]> };
const CASES: readonly Case[] = [
  {
    name: "1,500 new names for gates",
    attack: ({ ask }) => flood(1500, (n) => ask("askPermit", { body: { gate: `g${n}`, id: `of-g${n}` } }, rude)),
  },
  {
    name: "a queue of 20,000 that ten agent names fill in batches",
    config: { scheduler: { maxQueue: 20_000, maxPerAgent: 5000, maxBatch: 100 } },
    attack: ({ ask }) => {
      const tasks = Array.from({ length: 100 }, () => ({ action: "x" }));
      const body = (n: number) => ({ agentId: `name-${n % 10}`, tasks });
      const submit = async (n: number): Promise<{ status: number }> => {
        const { json, status } = await ask("submitBatch", { body: body(n) }, rude);
        return { status: json.rejected > 0 ? 429 : status };
      };
      return flood(300, submit);
    },
  },
  {
    name: "submitting 512 KiB and cancelling it, 200 times",
    config: { projects: { default: { bytesPerMinute: "32MiB" } } },
    attack: ({ ask }) => {
      const params = { text: "x".repeat(512 * 1024) };
      return flood(200, async (n) => {
        const id = `t${n}`;
        const submitted = await ask("submit", { body: { id, agentId: "a", action: "x", params } }, rude);
        if (submitted.status === 202) await ask("cancel", { params: { id }, body: {} }, rude);
        return submitted;
      });
    },
  },
];

for (const { name, config = {}, attack } of CASES)
  test(`${name}: costs little, and everybody else is served`, async (context) => {
    await using at = await attackedServer({ server, ...config });
    let statuses: number[] = [];
    const cost = await costOf(at, COST_BYTES_MAX, async () => {
      statuses = await attack(at);
    });
    assert.ok(statuses.includes(429), `it was never refused anything: ${[...new Set(statuses)]}`);
    assert.equal((await at.ask("submit", { body: { agentId: "b", action: "x" } }, calm)).status, 202);
    context.diagnostic(cost);
  });
