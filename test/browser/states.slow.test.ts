/**
 * What the web page says where there is little to show: nothing yet, nobody here, a server that is away, a part that is
 * not for this token, a name of nothing, a limit that sank.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page, Route } from "playwright-core";
import { noBrowser, openTab, seeText, seeTexts } from "../kits/browser.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { inbox } from "../kits/waits.ts";

/** However many tasks are parked for their children: what asks is listed and counted by itself. */
async function seeQuestions(page: Page, { drover }: TestServer): Promise<void> {
  await drover.submit({ id: "first", agentId: "ann", action: "x", approval: { question: "Go on?" } });
  for (let at = 0; at < 20; at++)
    await drover.submit({ id: `tree-${at}`, agentId: "ann", action: "grow", wait: "children" });
  await page.locator(".stat", { hasText: "Parked" }).getByText("21", { exact: true }).waitFor();
  await seeText(page, "1 for somebody's word");
  await page.locator(".attention").getByText("Go on?").waitFor();
  await seeTexts(page.locator(".tally"), ["1"]);
  for (let at = 0; at < 10; at++)
    await drover.submit({ id: `asks-${at}`, agentId: "ann", action: "x", approval: true });
  await page.getByRole("link", { name: "11 tasks wait" }).click();
  await seeText(page, "11 tasks match");
  await page.getByRole("button", { name: "asks", exact: true }).click();
  await seeText(page, /^\d+ tasks$/);
}

const LOG_PAGE = 1000;
/** Of what that makes, the last four thousand ended after this. */
const CUT_MS = 202_008;
const BUSY_END = Date.parse("2026-01-31T12:00:00.000Z");
/** In the last five minutes one worker ran thousands of short tasks, and another a single long one. */
const BUSY_LOG: readonly object[] = [
  ...[begun(-299_000, "long", "quiet")],
  ...Array.from({ length: 5998 }, (_, index) => index * 48 - 298_000).flatMap((ms) => [
    begun(ms, `t${ms}`, "busy"),
    done(ms + 40, `t${ms}`),
  ]),
  ...[done(-5000, "long"), begun(-4000, "late", "quiet"), done(-3000, "late")],
];
function begun(ms: number, task: string, worker: string): object {
  return logged(ms, task, { kind: "task-assigned", attempt: 1, worker });
}
function done(ms: number, task: string): object {
  return logged(ms, task, { kind: "task-done" });
}
function logged(
  ms: number,
  task: string,
  payload: { readonly kind: string; readonly attempt?: number; readonly worker?: string },
): object {
  return { at: new Date(BUSY_END + ms).toISOString(), task, kind: payload.kind, payload, priorHash: "", postHash: "" };
}
function pageOf(after: number): object {
  const end = after + LOG_PAGE;
  const events = BUSY_LOG.slice(after, end).map((event, index) => ({ ...event, seq: after + index + 1 }));
  return end < BUSY_LOG.length ? { events, nextAfter: end } : { events };
}

describe("the web page with little to show", { skip: noBrowser }, () => {
  test("tasks that are queued with no worker there need a person; with one they do not", async () => {
    await using at = await openServer();
    await using tab = await openTab(at.url, "/ui/");
    const { page } = tab;
    await seeText(page, "Nothing does: no question is open");
    assert.equal(await page.getByText("95 % within").count(), 0, "nothing has waited yet");
    await at.drover.submit({ id: "t", agentId: "ann", action: "x" });
    await page.locator(".attention").getByText("no worker", { exact: true }).waitFor();
    await at.drover.worker({ id: "w" }, async ({ taskId, action }, { submit }) => {
      if (action === "grow") await submit({ id: `below-${taskId}`, action: "x", capabilities: ["gpu"] });
    });
    await seeText(page, "Nothing does: no question is open");
    await seeQuestions(page, at);
  });

  test("while the server is away, no view says that there is nothing", async () => {
    const at = await openServer();
    await using tab = await openTab(at.url, "/ui/projects", { expected: /Failed to load resource|ERR_/ });
    const { page } = tab;
    const go = (name: string): Promise<void> => page.getByRole("link", { name, exact: true }).click();
    const goTo = (path: string): Promise<void> =>
      page.evaluate(`history.pushState(null, "", "${path}"); dispatchEvent(new PopStateEvent("popstate"))`);
    await seeText(page, "No project yet.");
    for (const name of ["Events", "Timeline"]) {
      await go(name);
      await page.getByRole("heading", { name, exact: true }).waitFor();
    }
    await goTo("/ui/graph/plan/day");
    await seeText(page, /no plan is called day/);
    await go("Workers");
    await seeText(page, "No worker is here");
    await at.server.close();
    await seeText(page, "The connection to the server is lost.");
    for (const [name, panels] of [
      ["Projects", 3],
      ["Events", 1],
      ["Timeline", 1],
      ["Overview", 7],
    ] as const) {
      await go(name);
      await page
        .getByText("Not known until the server answers.")
        .nth(panels - 1)
        .waitFor();
      assert.equal(await page.locator(".empty").count(), 0, `${name} says that there is nothing`);
    }
    for (const path of ["/ui/graph/plan/day", "/ui/graph/day"]) {
      await goTo(path);
      await page.getByRole("heading", { name: path.endsWith("plan/day") ? "Plan day" : "Graph of day" }).waitFor();
      await seeText(page, "Not known until the server answers.");
    }
  });

  test("what the server cannot answer for now is asked for again, in every view, though nothing happens", async () => {
    await using at = await openServer();
    await using tab = await openTab(at.url, "/ui/events", { expected: /status of 503/ });
    const { page } = tab;
    await page.getByRole("heading", { name: "Events" }).waitFor();
    const isData = ({ pathname }: URL): boolean => !/^\/(ui|pulse)/.test(pathname);
    const json = { error: "nobody leads now", code: "no_leader", retryable: true };
    const person = page.locator(".panel", { hasText: "Needs a person" });
    for (const name of ["Overview", "Tasks", "Plans", "Timeline", "Projects", "Workers", "Gates", "Usage", "Config"]) {
      await page.route(isData, (route) => route.fulfill({ status: 503, json }));
      await page.getByRole("link", { name, exact: true }).click();
      await (name === "Overview" ? person.getByText("nobody leads now").waitFor() : seeText(page, "nobody leads now"));
      await page.unroute(isData);
      await page.getByText("nobody leads now").first().waitFor({ state: "detached" });
      await page.getByText("nobody leads now").waitFor({ state: "detached" });
    }
  });

  test("what is not for a token is said calmly, and what there is not has a heading and a way back", async () => {
    const token = "token-of-an-agent-0123456789";
    const tokens = [{ role: "agent", token, agentId: "ann", project: "site" }];
    await using at = await openServer({ settings: { server: { tokens } } });
    await at.drover.submit({ id: "theirs", agentId: "ben", project: "shop", action: "x", approval: true });
    await using tab = await openTab(at.url, "/ui/config", { token, expected: /status of 40[34]/ });
    const { page } = tab;
    await seeText(page, "Your token does not show this.");
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.goto(`${at.url}/ui/`);
    await seeText(page, "1 for somebody's word");
    await seeText(page, "Numbers and charts are of the whole fleet.");
    await seeText(page, "Nothing does: no question is open");
    assert.equal(await page.locator(".tally").count(), 0, "what others ask is not for this token to answer");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.locator("main:focus").waitFor();
    await page.goto(`${at.url}/ui/gates/nobody`);
    await page.getByRole("heading", { name: "nobody" }).waitFor();
    await page.getByRole("link", { name: "All gates" }).click();
    await page.getByRole("heading", { name: "Gates" }).waitFor();
  });

  test("of calls that went out before a limit sank it is said that they are more than may be out now", async () => {
    await using at = await openServer({ settings: { gates: { llm: { maxConcurrent: 9 } } } });
    for (let call = 0; call < 9; call++)
      await at.drover.permits.ask({ gate: "llm", id: `call-${call}`, project: "site" });
    await using tab = await openTab(at.url, "/ui/gates/llm");
    const { page } = tab;
    await seeText(page, "9 of 9");
    await at.drover.reload({ gates: { llm: { maxConcurrent: 1 } } });
    await seeText(page, "9, limit 1");
    await seeText(page, "8 calls went out before the limit sank: the next goes when 9 have come back.");
    await page.getByRole("link", { name: "Overview" }).click();
    await seeText(page, "9, limit 1");
    assert.equal(await page.getByText("9 of 1").count(), 0);
  });

  test("a list that is not shown to its end says so", async () => {
    const budget = { limit: 1000 };
    const projects = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`p${index}`, { budget }]));
    await using at = await openServer({ settings: { projects, gates: { llm: { maxConcurrent: 1 } } } });
    for (let index = 0; index < 201; index++) {
      await at.drover.permits.ask({ gate: "llm", id: `call-${index}`, project: "p1" });
      await at.drover.plans.put(`plan-${index}`, { tasks: { a: { action: "x" } } });
    }
    await using tab = await openTab(at.url, "/ui/gates/llm");
    const { page } = tab;
    await seeText(page, "… 1 more");
    await page.goto(`${at.url}/ui/projects`);
    await page.locator(".panel", { hasText: "Budget left" }).getByText("… 1 more").waitFor();
    await page.goto(`${at.url}/ui/plans`);
    await seeText(page, "There are more: these are the 200 that were put last.");
    await page.goto(`${at.url}/ui/timeline`);
    await page.locator("option", { hasText: "… more, put earlier" }).waitFor({ state: "attached" });
  });

  test("a long timeline is drawn when all is read; what is left out is so in all lanes, and said above", async () => {
    await using at = await openServer();
    await using tab = await openTab(at.url, "/ui/events");
    const { page } = tab;
    const last = inbox<Route>("the last page of the log");
    await page.route(/\/events\?.*kind=task-assigned/, (route) => {
      const after = Number(new URL(route.request().url()).searchParams.get("after"));
      return after + LOG_PAGE < BUSY_LOG.length ? route.fulfill({ json: pageOf(after) }) : last.put(route);
    });
    await page.goto(`${at.url}/ui/timeline?minutes=5&until=${BUSY_END}`);
    const held = await last.next();
    await seeText(page, /The log is read up to/);
    assert.equal(await page.locator(".bar").count(), 0, "how what runs there goes on is not known yet");
    assert.equal(await page.getByText("Nothing ran here").count(), 0);
    await held.fulfill({ json: pageOf(BUSY_LOG.length - LOG_PAGE) });
    const note = page.getByText(/So much happened that all before \d+:\d+:\d+.* is left out/);
    await note.waitFor();
    assert.equal(await page.getByText(/The log is read up to/).count(), 0);
    const boxOf = async (selector: string) => await page.locator(selector).first().boundingBox();
    const [lanes, told] = [await boxOf(".gantt"), await note.boundingBox()];
    assert.ok(lanes !== null && told !== null && told.y + told.height <= lanes.y, "it stands above the lanes");
    const startOf = async (name: string): Promise<number> => {
      const first = page.locator(".lane", { hasText: name }).locator(".bar").first();
      return (await first.boundingBox())?.x ?? Number.NaN;
    };
    const [busy, quiet] = [await startOf("busy"), await startOf("quiet")];
    const before = new URL(
      (await page.getByRole("link", { name: "Show what was before" }).getAttribute("href")) ?? "",
      at.url,
    );
    assert.equal(Number(before.searchParams.get("until")), BUSY_END - CUT_MS, "the last four thousand are there");
    assert.ok(Math.abs(busy - quiet) <= 2, `the lanes begin at ${busy} and ${quiet}`);
  });

  test("the timeline is narrowed to a plan, also by a link; of a plan that there is not that is said", async () => {
    await using at = await openServer();
    await at.drover.worker({ id: "w", slots: 3 }, () => new Promise(() => {}));
    await at.drover.submit({ id: "other", agentId: "ann", action: "x" });
    await at.drover.plans.put("day", { tasks: { one: { action: "x" }, two: { action: "x" } } });
    const { tasks } = await at.drover.plans.get("day");
    await using tab = await openTab(at.url, "/ui/timeline", { expected: /status of 404/ });
    const { page } = tab;
    const bars = page.locator(".bar");
    await bars.nth(2).waitFor();
    await page.getByLabel("Plan").selectOption("day");
    await page.getByRole("link", { name: "other: running" }).waitFor({ state: "detached" });
    assert.match(page.url(), /\?plan=day$/);
    await page.reload();
    await bars.nth(1).waitFor();
    const shown = (await bars.locator("span").allTextContents()).sort();
    assert.deepEqual(shown, tasks.map(({ taskId }) => taskId).sort());
    await page.getByLabel("Project").selectOption("default");
    await page.getByRole("link", { name: "other: running" }).waitFor();
    assert.match(page.url(), /\?project=default$/);
    await page.goto(`${at.url}/ui/timeline?plan=nobody`);
    await page
      .getByRole("alert")
      .getByText(/no plan is called nobody/)
      .waitFor();
    assert.equal(await bars.count(), 0);
    assert.equal(await page.getByText("Nothing ran here").count(), 0, "what was not found out");
  });
});
