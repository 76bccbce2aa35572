/**
 * The web page in the hands of somebody who is new to it: a fleet that is quiet, many tasks at once, a server that is
 * away, a token that sees nothing, a small screen.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page, Route } from "playwright-core";
import type { Drover } from "../../src/engine/index.ts";
import { createHandClock } from "../../src/std/hand-clock.ts";
import { noBrowser, openTab, PHONE, seeText, seeTexts } from "../kits/browser.ts";
import { openServer } from "../kits/test-server.ts";
import { inbox } from "../kits/waits.ts";

const tasks = (length: number): { id: string; action: string }[] =>
  Array.from({ length }, (_, index) => ({ id: `t${String(index).padStart(3, "0")}`, action: "x" }));

/** The task `runs`, on the server's own worker `w`, which has begun it and goes on. */
async function runTask(drover: Drover): Promise<void> {
  const started = inbox("the start of the task");
  await drover.worker({ id: "w" }, (_, { signal }) => {
    started.put(null);
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  await drover.submit({ id: "runs", agentId: "ann", action: "x" });
  await started.next();
}

const scrollRows = (page: Page, to: "top" | "bottom"): Promise<void> =>
  page.evaluate(`document.querySelector(".rows").scrollTo({ top: ${to === "top" ? 0 : 1_000_000} })`);

/** What is read for a selection comes when another filter holds already: a text and a state, chosen in a moment. */
async function selectTooLate(page: Page): Promise<void> {
  const read = inbox<Route>("the rows behind the first page");
  await page.route(/\/tasks\?.*cursor=/, (route) => read.put(route), { times: 1 });
  await page.getByLabel("Select all").click();
  const late = await read.next();
  await page.getByLabel("Search").fill("t2");
  await page.getByRole("button", { name: "done", exact: true }).click();
  await page.waitForURL(/\?state=done&project=site&q=t2$/);
  await seeText(page, "0 tasks match");
  const answered = page.waitForResponse(/\/tasks\?.*cursor=/);
  await late.continue();
  await (await answered).finished();
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  assert.equal(await page.getByText("selected").count(), 0, "what the filter before showed is not selected");
  await page.getByLabel("Search").fill("");
  await page.getByRole("button", { name: "done", exact: true }).click();
  await seeText(page, "205 tasks match");
}

describe("the web page, used", { skip: noBrowser }, () => {
  test("what changes without an event is asked for again: gates, and what a running task writes", async () => {
    await using at = await openServer();
    await runTask(at.drover);
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

  test("a log that nobody keeps is asked for a few times, and then no more", async () => {
    await using at = await openServer();
    await runTask(at.drover);
    await using tab = await openTab(at.url, "/ui/gates", { expected: /status of 404/ });
    const { page } = tab;
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await page.clock.install();
    await page.goto(`${at.url}/ui/tasks/runs`);
    const first = page.waitForResponse(/\/tasks\/runs\/logs/);
    await page.getByRole("button", { name: "Show what it wrote" }).click();
    await first;
    for (let look = 1; look < 5; look++) {
      const next = page.waitForResponse(/\/tasks\/runs\/logs/);
      await page.clock.runFor(2000);
      await next;
    }
    await seeText(page, /keeps no logs/);
    for (let look = 0; look < 5; look++) {
      // What else is asked for goes on: the task itself, as something happens.
      await at.drover.submit({ id: `next-${look}`, agentId: "ann", action: "x" });
      const next = page.waitForResponse(/\/tasks\/runs$/);
      await page.clock.runFor(2000);
      await next;
    }
    assert.equal(asked.filter((path) => path === "/tasks/runs/logs").length, 5);
  });

  test("the budget of the fleet needs a person from three quarters on; one project's token is not told", async () => {
    const [token, own] = ["token-of-who-sees-all-0123456789", "token-of-one-project-0123456789"];
    const tokens = [
      { role: "viewer", token },
      { role: "viewer", token: own, project: "site" },
    ];
    await using at = await openServer({ settings: { budget: { limit: 1000, window: "1h" }, server: { tokens } } });
    const uses = [740, 20, 210];
    await at.drover.worker({ id: "w" }, (_, { usage }) => {
      usage({ inputTokens: uses.shift() ?? 0, outputTokens: 0 });
    });
    const run = async (id: string): Promise<void> => {
      await at.drover.submit({ id, agentId: "ann", project: "site", action: "x", estimatedTokens: 1 });
      await at.drover.ended(id);
    };
    await run("first");
    await using tab = await openTab(at.url, "/ui/", { token });
    const { page } = tab;
    await seeText(page, /Nothing does: .* no budget runs out/);
    await run("second");
    await seeText(page, /have used 76 % of 1\.0k tokens/);
    await page.locator(".attention .what.warn").waitFor();
    await run("third");
    await seeText(page, /have used 97 % of 1\.0k tokens/);
    await page.locator(".attention .what.bad").waitFor();
    assert.equal((await at.ask("projects", {}, { token: own })).json.fleet, undefined);
  });

  test("a chart of projects has the share of each and its target", async () => {
    const clock = createHandClock({ at: 1_800_000_000_000 });
    const projects = { site: { weight: 3 }, shop: { weight: 1 } };
    await using at = await openServer({ settings: { projects }, open: { clock }, server: { clock } });
    await at.drover.worker({ id: "w" }, () => null);
    for (const project of ["site", "shop"]) {
      await at.drover.submit({ id: project, agentId: "ann", project, action: "x" });
      await at.drover.ended(project);
    }
    for (let sample = 0; sample < 12; sample++) await clock.advance(10_000);
    await using tab = await openTab(at.url, "/ui/projects");
    const { page } = tab;
    const chart = page.getByRole("img", { name: "Share of each project against its target" });
    await chart.hover();
    await seeText(page, /: shop 50 %, site 50 %, target of shop 25 %, target of site 75 %$/);
    await seeTexts(page.locator("figure", { has: chart }).locator(".key"), ["shop", "site"]);
  });

  test("the name of a project leads to its tasks", async () => {
    await using at = await openServer();
    await at.drover.plans.put("day", { tasks: { a: { action: "x" } } });
    await at.drover.permits.ask({ gate: "llm", id: "p", project: "default" });
    for (const path of ["/ui/", "/ui/plans", "/ui/gates/llm"]) {
      await using tab = await openTab(at.url, path);
      await tab.page.getByRole("link", { name: "default", exact: true }).click();
      await tab.page.waitForURL(/\/ui\/tasks\?project=default$/);
    }
  });

  test("a list may be somebody else's of a second ago, but what a pulse or an act told of is in it", async () => {
    // The server's clock stands, so an answer that is kept stays young; a pulse comes when the clock is moved.
    const clock = createHandClock({ at: 1_800_000_000_000 });
    await using at = await openServer({ server: { clock } });
    const lookOn = (): Promise<Response> => fetch(`${at.url}/projects`, { headers: { "cache-control": "max-age=1" } });
    await at.drover.submit({ id: "one", agentId: "ann", project: "shop", action: "x" });
    const expected = /status of 503/;
    await using tab = await openTab(at.url, "/ui/projects", { expected });
    const { page } = tab;
    await page.getByRole("button", { name: "Weight" }).waitFor();
    await lookOn();
    await at.drover.submit({ id: "two", agentId: "ann", project: "quiet-again", action: "x" });
    assert.doesNotMatch(await (await lookOn()).text(), /quiet-again/, "what is kept");
    const asked = page.waitForRequest(/\/projects$/);
    await clock.advance(1000);
    await seeText(page, "quiet-again");
    assert.equal((await asked).headers()["cache-control"], "max-age=1");

    await page.getByRole("button", { name: "Weight" }).first().click();
    await page.locator("input[name=weight]").fill("7");
    await page.getByRole("button", { name: "Change it" }).click();
    await page.getByRole("cell", { name: "7", exact: true }).waitFor();

    let refused = 0;
    await page.route(/\/projects$/, async (route) => {
      if (route.request().headers()["x-drover-after"] === undefined) return route.continue();
      refused += 1;
      await route.fulfill({ status: 503, json: { error: "behind", code: "behind", retryable: true } });
    });
    await at.drover.submit({ id: "three", agentId: "ann", project: "anew", action: "x" });
    await clock.advance(1001);
    await seeText(page, "anew");
    assert.equal(refused, 1);
  });

  test("a row with Shift takes all between; all that match are taken at once; what is kept stays so", async () => {
    // The server's clock stands: after what is done here no pulse makes the page look again.
    const clock = createHandClock({ at: 1_800_000_000_000 });
    await using at = await openServer({ settings: { scheduler: { maxBatch: 205 } }, server: { clock } });
    await at.drover.submitBatch({ agentId: "ann", project: "site", tasks: tasks(205) });
    await at.drover.submit({ id: "other", agentId: "ben", project: "shop", action: "x" });
    await using tab = await openTab(at.url, "/ui/tasks?project=site", { expected: /status of 503/ });
    const { page } = tab;
    await selectTooLate(page);
    await page.getByLabel("Select t204").click();
    await page.getByLabel("Select t200").click({ modifiers: ["Shift"] });
    await seeText(page, "5 tasks selected");
    await page.getByLabel("Select t204").click();
    await page.getByLabel("Select t203").click({ modifiers: ["Shift"] });
    await seeText(page, "3 tasks selected");
    await page.getByLabel("Select all").click();
    await seeText(page, "205 tasks selected");
    const cancel = page.getByRole("button", { name: "Cancel 205" });
    await cancel.click();
    await page.getByRole("button", { name: "Keep as it is" }).click();
    await seeText(page, "205 tasks selected");
    await seeTexts(page.locator(":focus"), ["Cancel 205"]);
    const json = { error: "nobody leads now", code: "no_leader", retryable: true };
    await page.route("**/bulk", (route) => route.fulfill({ status: 503, json }), { times: 1 });
    await cancel.click();
    await page.getByRole("button", { name: "Cancel them" }).click();
    await seeText(page, "205 tasks stayed as they were: the first because nobody leads now");
    await seeText(page, "205 tasks selected");
    const last = page.locator(".row", { hasText: "t000" });
    await scrollRows(page, "bottom");
    await last.locator(".is-queued").waitFor();
    await scrollRows(page, "top");
    await cancel.click();
    await page.getByRole("button", { name: "Cancel them" }).click();
    await seeText(page, "205 tasks are cancelled.");
    assert.equal(at.drover.state.queued, 1, "what did not match stays");
    await page.locator(".row", { hasText: "t204" }).locator(".is-cancelled").waitFor();
    await scrollRows(page, "bottom");
    await last.locator(".is-cancelled").waitFor();
    await last.getByRole("link").click();
    await page.locator("h1:focus", { hasText: "t000" }).waitFor();
  });

  test("what a bulk could not do is told with the reason of the server", async () => {
    await using at = await openServer();
    await at.drover.submit({ id: "first", agentId: "ann", action: "x" });
    for (const id of ["a", "b"]) await at.drover.submit({ id, agentId: "ann", action: "x", needs: ["first"] });
    await at.drover.cancel("first");
    await using tab = await openTab(at.url, "/ui/tasks?state=skipped", { expected: /status of 409/ });
    const { page } = tab;
    await page.getByLabel("Select all").click();
    await page.getByRole("button", { name: "Retry 2" }).click();
    await seeText(page, /2 tasks stayed as they were: the first because .*first/);
    await seeText(page, "2 tasks selected");
    assert.equal(await page.getByText("moved on").count(), 0);
  });

  test("the timeline is narrowed to a project, and goes back in time by an arrow or a drag", async () => {
    await using at = await openServer();
    await at.drover.worker({ id: "w", slots: 2 }, () => new Promise(() => {}));
    await at.drover.submit({ id: "a", agentId: "ann", project: "site", action: "x" });
    await at.drover.submit({ id: "b", agentId: "ann", project: "shop", action: "x" });
    await using tab = await openTab(at.url, "/ui/timeline?minutes=5");
    const { page } = tab;
    const barOf = (id: string) => page.getByRole("link", { name: `${id}: running` });
    await barOf("a").waitFor();
    await page.getByLabel("Project").selectOption("shop");
    await barOf("a").waitFor({ state: "detached" });
    await barOf("b").waitFor();
    const box = await page.locator(".gantt").boundingBox();
    const [x, y] = [(box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + 8];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + 40, y, { steps: 4 });
    await page.mouse.up();
    await page.waitForURL(/project=shop&until=\d+$/);
    await page.getByRole("button", { name: "Earlier" }).click();
    await seeText(page, /Nothing ran here in these 5 m/);
    await page.getByRole("button", { name: "Now", exact: true }).click();
    await barOf("b").waitFor();
    assert.match(page.url(), /minutes=5&project=shop$/);
    const bar = await barOf("b").boundingBox();
    const [left, top] = [(bar?.x ?? 0) + (bar?.width ?? 0) / 2, (bar?.y ?? 0) + 8];
    await page.mouse.move(left, top);
    await page.mouse.down();
    await page.mouse.move(left - 40, top, { steps: 4 });
    await page.mouse.up();
    assert.equal(await page.evaluate("location.pathname"), "/ui/timeline", "who drags a bar does not open it");
    await barOf("b").click();
    await page.waitForURL(/\/ui\/tasks\/b$/);
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

  test("a graph is found by its id alone, whatever it is of; what there is not is said", async () => {
    await using at = await openServer();
    await at.drover.submit({ id: "root", agentId: "ann", action: "x" });
    const { groupId: group = "" } = await at.drover.submitBatch({ agentId: "ann", tasks: tasks(2) });
    await at.drover.plans.put("release", { tasks: { spec: { action: "x" } } });
    await using tab = await openTab(at.url, "/ui/graph/root", { expected: /status of 404/ });
    const { page } = tab;
    for (const [id, title] of [
      ["root", "Tree root"],
      [group, `Batch ${group}`],
      ["release", "Plan release"],
    ] as const) {
      await page.goto(`${at.url}/ui/graph/${id}`);
      await page.getByRole("heading", { name: title }).waitFor();
      await page.locator(".node-name").first().waitFor();
    }
    await page.goto(`${at.url}/ui/graph/nobody`);
    await seeText(page, "No plan, batch or tree of this name is known.");
    await page.goto(`${at.url}/ui/graph/foo/x`);
    await seeText(page, "There is no graph of the kind foo.");
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
