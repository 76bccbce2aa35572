/**
 * The end of a run: faults cease, limits are lifted, workers that only ever finish join, and time passes. By then every
 * task that was ever acknowledged must have ended, and no call may wait.
 */
import type { Callers } from "./callers.ts";
import type { SimContext } from "./context.ts";
import type { History } from "./history.ts";
import type { LocalFleet } from "./local-fleet.ts";
import type { SimEngine } from "./open-engine.ts";

/** A week: what was put off by a wall clock that was days ahead comes too. */
const CLEAR_UP_ROUNDS = 1000;
const CLEAR_UP_ROUND_MS = 600_000;

type Parts = {
  readonly history: History;
  readonly context: SimContext;
  readonly callers: Callers;
  readonly fleet: LocalFleet;
};

export async function clearUp(parts: Parts): Promise<void> {
  const { history, context, callers } = parts;
  const { expect } = callers;
  context.switches.faults = false;
  context.switches.allArtifacts = true;
  context.storms.clear();
  await context.ensureOpen();
  await context.pass(1000);
  await context.ensureOpen();
  const engine = context.engine();
  if (engine === null) return;
  callers.submitAgain(engine);
  const { remember } = (history.config.scheduler ?? {}) as { remember?: number };
  const scheduler = { ...(remember === undefined ? {} : { remember }), resultTtl: 31_536_000_000 };
  expect(engine.reload({ scheduler }));
  for (const { id, settings } of [...engine.state.projects.values()]) {
    const generous = { maxConcurrent: 1000, budget: { limit: null, window: 1000 } };
    expect(engine.putProject(id, { ...settings, ...generous }));
    expect(engine.resume({ project: id }));
  }
  expect(engine.resume({}));
  for (const task of engine.state.tasks.values()) {
    if (task.paused && task.end === null) expect(engine.resume({ task: task.id }));
  }
  await relieve(parts, engine);
  await finishAll(context, callers);
}

/** All workers leave, and workers that only ever finish take over. */
async function relieve({ context, callers: { expect }, fleet }: Parts, engine: SimEngine): Promise<void> {
  fleet.closeAll();
  context.remoteFleet.dismiss();
  await context.settle();
  const capabilities = ["gpu", "web", "tab:tab-1"];
  if (engine.command !== null) {
    for (const { id } of [...engine.state.fleet.order]) {
      engine.command({ type: "leave-worker", worker: id, lost: false });
    }
    const settings = { slots: 20, capabilities, cpu: null, memory: null, zone: null, status: "ready" } as const;
    engine.command({ type: "join-worker", worker: "sober" as never, kind: "pull", session: "s", settings });
    context.remoteFleet.hire("sober", true);
  } else fleet.join(engine, "sober", { id: "sober", slots: 20, capabilities }, true);
  await context.settle();
  expect(engine.lookForArtifacts());
  await context.settle();
}

async function finishAll(context: SimContext, { unanswered }: Callers): Promise<void> {
  const { auditor } = context;
  const { shadow } = auditor;
  const open = (): string[] => [...shadow.tasks].filter(([, task]) => task.phase !== "ended").map(([id]) => id);
  const calls = (): number => [...shadow.gates.values()].reduce((sum, { waiting }) => sum + waiting.size, 0);
  for (let round = 0; round < CLEAR_UP_ROUNDS && open().length + calls() > 0; round++) {
    await context.pass(CLEAR_UP_ROUND_MS);
    if (auditor.complaints.length > 0) return;
  }
  if (open().length > 0)
    auditor.complain("ends", `with nothing in their way these tasks never end: ${open().join(", ")}`);
  if (calls() > 0) auditor.complain("ends", `${calls()} calls wait at gates for ever`);
  if (unanswered.size > 0) auditor.complain("answers", `never answered: ${[...unanswered.keys()].join(", ")}`);
}
