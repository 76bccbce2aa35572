/**
 * The web page in the hands of somebody who is new to it: a fleet that is quiet, many tasks at once, a server that is
 * away, a token that sees nothing, a small screen.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "playwright-core";
import { noBrowser, openTab, PHONE } from "../kits/browser.ts";
import { openServer } from "../kits/test-server.ts";
import { inbox } from "../kits/waits.ts";

const seeText = (page: Page, text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor();
const tasks = (length: number): { id: string; action: string }[] =>
  Array.from({ length }, (_, index) => ({ id: `t${String(index).padStart(3, "0")}`, action: "x" }));

describe("the web page, used", { skip: noBrowser }, () => {
  test("what changes without an event is asked for again: gates, and what a running task writes", async () => {
    await using at = await openServer();
    const started = inbox("the start of the task");
    await at.drover.worker({ id: "w" }, (_, { signal }) => {
      started.put(null);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    await at.drover.submit({ id: "runs", agentId: "ann", action: "x" });
    await started.next();
    await using tab = await openTab(at.url, "/ui/gates", { expected: /status of 404/ });
    const { page } = tab;
    await page.getByRole("heading", { name: "Gates" }).waitFor();
    const { seq } = at.drover.state;
    await page.waitForResponse(/\/gates$/);
    await page.goto(`${at.url}/ui/tasks/runs`);
    await page.getByRole("button", { name: "Show what it wrote" }).click();
    for (let look = 0; look < 3; look++) await page.waitForResponse(/\/tasks\/runs\/logs/);
    assert.equal(at.drover.state.seq, seq, "nothing has happened meanwhile");
  });

  test("a row with Shift takes all between; all that are listed, and all that match, are taken at once", async () => {
    await using at = await openServer({ settings: { scheduler: { maxBatch: 205 } } });
    await at.drover.submitBatch({ agentId: "ann", project: "site", tasks: tasks(205) });
    await at.drover.submit({ id: "other", agentId: "ben", project: "shop", action: "x" });
    await using tab = await openTab(at.url, "/ui/tasks?project=site");
    const { page } = tab;
    await page.getByLabel("Select t204").click();
    await page.getByLabel("Select t200").click({ modifiers: ["Shift"] });
    await seeText(page, "5 tasks selected");
    await page.getByLabel("Select t204").click();
    await page.getByLabel("Select t203").click({ modifiers: ["Shift"] });
    await seeText(page, "3 tasks selected");
    await page.getByLabel("Select all that are listed").click();
    await seeText(page, "200 tasks selected");
    await page.getByRole("button", { name: "Select all that match" }).click();
    await seeText(page, "205 tasks selected");
    await page.getByRole("button", { name: "Cancel 205" }).click();
    await page.getByRole("button", { name: "Cancel it" }).click();
    await seeText(page, "205 tasks are cancelled.");
    assert.equal(at.drover.state.queued, 1, "what did not match stays");
  });

  test("while the server is away, what is not known is not said to be nothing", async () => {
    const at = await openServer();
    await using tab = await openTab(at.url, "/ui/tasks", { expected: /Failed to load resource|ERR_/ });
    const { page } = tab;
    await seeText(page, "No task yet.");
    await at.server.close();
    await seeText(page, "The connection to the server is lost.");
    await page.getByRole("button", { name: "queued" }).click();
    await seeText(page, "What tasks there are is not known until the server answers.");
    assert.equal(await page.getByText("No task").count(), 0);
    await page.getByRole("link", { name: "Overview" }).click();
    await page.locator(".view-head").getByText("Overview").waitFor();
    await seeText(page, "Not known until the server answers.");
    assert.equal(await page.getByText("Nothing does").count(), 0);
  });

  test("a worker's token is told that there is nothing to see for it", async () => {
    const token = "token-of-a-worker-0123456789";
    await using at = await openServer({ settings: { server: { tokens: [{ role: "worker", token }] } } });
    await using tab = await openTab(at.url, "/ui/", { expected: /status of 40[13]/ });
    const { page } = tab;
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Log in" }).click();
    await seeText(page, /This page has nothing to show to that token: .*worker/);
    assert.equal(await page.getByText("The connection to the server is lost.").count(), 0);
  });

  test("a worker that is part of the server cannot be drained here; another can", async () => {
    await using at = await openServer();
    await at.drover.worker({ id: "inside" }, () => null);
    const { status } = await at.ask("joinWorker", { body: { id: "outside" } });
    assert.equal(status, 201);
    await using tab = await openTab(at.url, "/ui/workers");
    const { page } = tab;
    await seeText(page, /part of the server, and leaves with it/);
    await page.getByRole("button", { name: "Drain" }).click();
    await page.getByRole("button", { name: "Drain it" }).click();
    await seeText(page, "outside drains.");
    await page.locator(".badge.is-draining").waitFor();
  });

  test("the tasks of a tree are told apart by the ends of their ids", async () => {
    await using at = await openServer();
    const root = "feature-with-a-rather-long-name";
    const parts = ["api", "tests"].map((part) => ({ id: `${root}-${part}`, action: "implement", parent: root }));
    await at.drover.submitBatch({ agentId: "ann", tasks: [{ id: root, action: "implement" }, ...parts] });
    await using tab = await openTab(at.url, `/ui/graph/tree/${root}`, { viewport: PHONE });
    const names = tab.page.locator(".node-name");
    await names.first().waitFor();
    const shown = await names.allTextContents();
    assert.deepEqual(
      shown.map((name) => name.slice(-6)),
      ["g-name", "me-api", "-tests"],
    );
  });

  test("on a phone no button of a row is beyond the edge, and the place that is shown stands in sight", async () => {
    await using at = await openServer({ settings: { projects: { "a-project-with-a-long-name": { weight: 2 } } } });
    await at.drover.plans.put("a-plan-with-a-long-name", { tasks: { spec: { action: "x" } } });
    await using tab = await openTab(at.url, "/ui/projects", { viewport: PHONE });
    const { page } = tab;
    for (const [place, button] of [
      ["Projects", "Weight"],
      ["Plans", "Cancel"],
    ] as const) {
      await page.goto(`${at.url}/ui/${place.toLowerCase()}`);
      await page.getByRole("button", { name: button }).first().waitFor();
      assert.equal(await page.title(), `${place} · Drover`);
      for (const seen of [page.getByRole("button", { name: button }), page.getByRole("link", { name: place })]) {
        const { x = 0, width = 0 } = (await seen.first().boundingBox()) ?? {};
        assert.ok(x >= 0 && x + width <= PHONE.width, `${place}: from ${x}, ${width} wide`);
      }
    }
  });
});
