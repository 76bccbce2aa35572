/**
 * What each role is offered by the web page: whoever may look on and no more finds no button that changes anything, in
 * any view.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { noBrowser, openTab } from "../kits/browser.ts";
import { openServer } from "../kits/test-server.ts";

const tokenOf = (name: string): string => `token-of-${name}-0123456789`;
const VIEWS: readonly (readonly [path: string, ready: string])[] = [
  ["/ui/", ".attention li"],
  ["/ui/tasks", ".row"],
  ["/ui/tasks/mine", ".story li"],
  ["/ui/plans", ".table"],
  ["/ui/graph/plan/day", ".node"],
  ["/ui/projects", ".table"],
  ["/ui/workers", ".card"],
  ["/ui/gates/llm", ".gate-windows"],
  ["/ui/config", "h1"],
];
const ACTS =
  /^(Submit a task|Cancel|Retry|Approve|Deny|Weight|Pause|Resume|Drain|Open it now|Read the files|Take patches)/;

describe("the buttons of the web page", { skip: noBrowser }, () => {
  test("an admin has them in every view; a viewer has none", async () => {
    const roles = ["admin", "viewer"] as const;
    const tokens = roles.map((role) => ({ role, token: tokenOf(role) }));
    await using at = await openServer({ settings: { server: { tokens }, gates: { llm: { requests: 5 } } } });
    for (const [id, more] of [
      ["mine", { capabilities: ["gpu"] }],
      ["asks", { approval: { question: "Go on?" } }],
    ] as const)
      await at.drover.submit({ id, agentId: "ann", action: "x", ...more });
    await at.drover.plans.put("day", { tasks: { a: { action: "x", capabilities: "gpu" } } });
    await at.drover.permits.ask({ gate: "llm", id: "p" });
    await at.drover.permits.settle("p", { rateLimited: { retryAfterMs: 3_600_000 } });
    const { session } = await at.drover.remote.join({ id: "w" });
    assert.ok(session);
    for (const role of roles) {
      await using tab = await openTab(at.url, "/ui/", { token: tokenOf(role) });
      for (const [path, ready] of VIEWS) {
        await tab.page.goto(`${at.url}${path}`);
        await tab.page.locator(ready).first().waitFor();
        const acts = tab.page.getByRole("button", { name: ACTS });
        if (role === "admin") await acts.first().waitFor();
        else await tab.page.getByText("viewer").first().waitFor();
        if (role === "viewer") assert.deepEqual(await acts.allTextContents(), [], path);
      }
    }
  });
});
