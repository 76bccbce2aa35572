/**
 * The auditor's levels are the core's, at every event, however long nobody was charged.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Command,
  decide,
  emptyState,
  evolve,
  instant,
  projectId,
  readConfig,
  type Submission,
  taskId,
  workerId,
} from "../core/index.ts";
import { shownLevel } from "../core/turn/fairness.ts";
import { newShadow, tick } from "./shadow.ts";
import { note } from "./shadow-events.ts";

const HALF_LIFE = 1000;
const A = projectId("A");

test("levels halve at the same instants after any rest", () => {
  const config = readConfig({ scheduler: { fairness: { halfLife: HALF_LIFE } } });
  assert.ok(config.ok);
  const state = emptyState();
  const shadow = newShadow();
  let now = 0;
  const tell = (command: Command): void => {
    const decided = decide(state, command, instant(now));
    assert.ok(decided.ok);
    for (const event of decided.value.events) {
      evolve(state, event);
      tick(shadow, event.at);
      note(shadow, event);
    }
  };
  const settings = { slots: 20, capabilities: [], cpu: null, memory: null, zone: null, status: "ready" } as const;
  tell({ type: "set-config", config: config.value });
  tell({ type: "join-worker", worker: workerId("w"), kind: "pull", session: "s", settings });
  // Short rests, long ones, and some after which nothing is left of any level.
  for (const [index, rest] of [0.3, 0.9, 511.4, 512.6, 700.2, 1023.7, 1024.4, 0.7, 5000.5, 0.6].entries()) {
    now += rest * HALF_LIFE;
    const id = taskId(`t${index}`);
    tell({ type: "submit-task", submission: { ...PLAIN, id } });
    tell({ type: "pump" });
    for (let look = 0; look < 9; look++) {
      now += 150;
      tick(shadow, now);
      const project = state.projects.get(A);
      assert.ok(project);
      const [seen, own] = [shadow.projects.get(A)?.level ?? -1, shownLevel(state, project, now)];
      assert.ok(Math.abs(seen - own) < 1e-6, `${rest} half lives, then ${(look + 1) * 150} ms: ${seen}, not ${own}`);
    }
  }
});

const PLAIN: Omit<Submission, "id"> = {
  ...{
    project: A,
    agent: "ann" as never,
    bodyHash: "",
    bodySize: 0,
    type: "code",
    capabilities: [],
    cpu: 0,
    memory: 0,
  },
  ...{ provider: null, locks: [], zone: null, tab: null, priority: null, parent: null, needs: [], artifact: null },
  ...{ artifactReady: false, notBefore: null, deadline: null, estimatedTokens: 0, iteration: 1, maxAttempts: null },
  ...{ timeoutMs: null, onDependencyFailure: "skip", onLoss: null, action: "", callback: null },
};
