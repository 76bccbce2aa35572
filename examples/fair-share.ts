/**
 * Two projects share one worker three to one, though a task of one costs five times a task of the other.
 *
 *     node examples/fair-share.ts
 *
 * What is shared is tokens, not starts: both have more to do than there is room for, so at any moment
 * the tokens of each, divided by its weight, differ by at most one task's worth.
 */
import assert from "node:assert/strict";
import { openDrover } from "../src/index.ts";

const PROJECTS = { web: { weight: 3, tokens: 2500 }, docs: { weight: 1, tokens: 500 } };
const STARTS = 160;

const drover = await openDrover({
  config: {
    // Only tokens are charged here, so that the figures below can be checked by hand.
    scheduler: { fairness: { startCost: 0 } },
    projects: { web: { weight: PROJECTS.web.weight }, docs: { weight: PROJECTS.docs.weight } },
  },
});
await drover.pause();
for (const [project, { tokens }] of Object.entries(PROJECTS)) {
  const task = { action: "work", estimatedTokens: tokens };
  for (let batch = 0; batch < 3; batch++)
    await drover.submitBatch({ agentId: "ann", project, tasks: Array.from({ length: 50 }, () => task) });
}

let starts = 0;
const enough = Promise.withResolvers<void>();
await drover.worker({ slots: 1 }, async (task, context) => {
  if (++starts === STARTS) {
    await drover.pause();
    enough.resolve();
  }
  context.usage({ outputTokens: PROJECTS[task.project as keyof typeof PROJECTS].tokens });
});
await drover.resume();
await enough.promise;
// The last task may still be ending: what is reserved is on its way to being charged.
const shares = (await drover.projects()).map(({ id, weight, spent, reserved }) => ({
  id,
  weight,
  used: spent + reserved,
}));
await drover.close();

const total = shares.reduce((sum, { used }) => sum + used, 0);
for (const { id, weight, used } of shares) {
  const share = ((100 * used) / total).toFixed(1);
  console.log(`${id.padEnd(5)} weight ${weight}  tokens ${String(used).padStart(6)}  share ${share} %`);
}
const [web, docs] = shares;
assert.ok(web !== undefined && docs !== undefined);
const apart = Math.abs(web.used / web.weight - docs.used / docs.weight);
console.log(`tokens ÷ weight differ by ${apart.toFixed(0)}`);
assert.ok(apart <= PROJECTS.web.tokens / web.weight + PROJECTS.docs.tokens / docs.weight, `${apart} apart`);
assert.ok(Math.abs(web.used / total - 0.75) < 0.01);
