/**
 * Random plans, woven into a history: put, edited and put again, begun anew, paused, cancelled, run again, removed.
 *
 * Chance of its own draws them, and only where the seed is even: the other seeds keep the histories they had. What a
 * task of a plan does is in its name, word by word for each attempt, because its id is not known before it is put.
 * Where the seed is a multiple of four many agents put small plans besides, and one of them more than the others.
 */

import { createRandom, type Random } from "./chance/random.ts";
import type { Act, PlanPutStep, PlanVerb, Step } from "./history.ts";

const PLANS = ["p1", "p2", "p3"];
const TASKS = ["a-ok", "b-slow", "c-fail-ok", "d-bad-ok", "e-ok-tree", "f-slow-tree", "g-ask-ok", "h-none"];
const VERBS: readonly PlanVerb[] = ["pause", "pause", "resume", "resume", "cancel", "retry", "retry", "remove"];
const ACTS: Readonly<Record<string, Act>> = {
  ok: { does: "finish", ms: 200 },
  slow: { does: "finish", ms: 20_000 },
  fail: { does: "fail", ms: 50 },
  bad: { does: "give-up", ms: 300 },
  ask: { does: "ask", ms: 10 },
  none: { does: "skip", ms: 10 },
};
/** Some agents of a crowd, of which one wants more than the others. */
const CROWD = ["eve", "eve", "eve", "eve", "ann", "bob", "cat", "dan"];
const isCrowded = (seed: number): boolean => seed % 4 === 0;
/** How many plans there may be: of ten one is kept for agents that have none. */
export const plansMaxOf = (seed: number): number => (isCrowded(seed) ? 10 : 2);
/** Where the first plan may be put: workers have joined by then. */
const FIRST = 5;

/** What the task of a plan with this id does, one act for each attempt. */
export const actsInName = (id: string): readonly Act[] =>
  (/^[pc]\d+\.(?:\d+\.)?([\w-]+)\./.exec(id)?.[1] ?? "").split("-").flatMap((word) => ACTS[word] ?? []);

/** A plan as it was last written: how often each task was edited, in what it does and in its rules. */
type Draft = { readonly edits: Map<string, { work: number; rules: number }> };

export function withPlans(seed: number, steps: readonly Step[]): Step[] {
  if (seed % 2 > 0) return [...steps];
  const random = createRandom(seed + 1);
  const drafts = new Map(PLANS.map((plan) => [plan, newDraft(random)]));
  return steps.flatMap((step, index) => {
    if (index < FIRST || !random.percent(25)) return [step];
    if (isCrowded(seed) && random.percent(30)) return [step, ...crowdSteps(random)];
    const more = random.percent(20) ? treeStep(index) : planStep(random, drafts);
    return [step, random.percent(30) ? { ...more, together: true } : more];
  });
}

/** Several small plans at once. */
const crowdSteps = (random: Random): Step[] =>
  Array.from({ length: random.between(3, 7) }, () => {
    const defaults = { agent: random.pick(CROWD), project: "blue" };
    const tasks = { [random.pick(["a-ok", "a-ok", "b-slow"])]: { run: "make", attempts: 2 } };
    const plan = `c${random.below(16)}`;
    return {
      do: "plan-put",
      plan,
      document: { defaults, tasks },
      options: {},
      twice: random.percent(20),
      together: true,
    };
  });

const newDraft = (random: Random): Draft => ({
  edits: new Map(TASKS.filter(() => random.percent(60)).map((name) => [name, { work: 0, rules: 0 }])),
});

/** A task of no plan that wants a worktree. */
const treeStep = (index: number): Step => ({
  do: "submit",
  body: {
    id: `tree-${index}`,
    agentId: "ann",
    project: "red",
    action: "exec",
    params: { command: "make", worktree: true, acts: [{ does: "finish", ms: 5000 }] },
  },
});

function planStep(random: Random, drafts: ReadonlyMap<string, Draft>): Step {
  const plan = random.pick(PLANS);
  if (random.percent(60)) return { do: "plan", plan, verb: random.pick(VERBS) };
  const draft = drafts.get(plan) as Draft;
  if (random.percent(50)) edit(random, draft);
  return putStep(random, plan, draft);
}

function edit(random: Random, { edits }: Draft): void {
  const name = random.pick(TASKS);
  const task = edits.get(name);
  if (task === undefined) edits.set(name, { work: 0, rules: 0 });
  else if (edits.size > 1 && random.percent(15)) edits.delete(name);
  else task[random.percent(60) ? "work" : "rules"]++;
}

function putStep(random: Random, plan: string, { edits }: Draft): PlanPutStep {
  const names = [...edits.keys()].sort();
  const tasks = names.map((name, index) => {
    const { work, rules } = edits.get(name) ?? { work: 0, rules: 0 };
    const needs = names.slice(0, index).filter((_, other) => (index + other) % 3 === 0);
    const body = { run: `make ${name} ${work}`, needs, timeout: `${60 + rules}s`, attempts: 2 };
    return [name, { ...body, ...(name.endsWith("-tree") ? { worktree: true } : {}) }] as const;
  });
  const options = {
    ...(random.percent(12) ? { fresh: true } : {}),
    ...(random.percent(35) ? { failFast: true } : {}),
    ...(random.percent(15) ? { retryFailed: false } : {}),
    ...(random.percent(15) && names.length > 0 ? { only: [random.pick(names)] } : {}),
  };
  const defaults = { agent: "bob", project: plan === "p1" ? "red" : "green" };
  return {
    do: "plan-put",
    plan,
    document: { defaults, tasks: Object.fromEntries(tasks) },
    options,
    twice: random.percent(30),
  };
}
