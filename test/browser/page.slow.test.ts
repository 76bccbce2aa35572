/**
 * The web page as people use it, in a real browser against a real server.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import type { Page, Route } from "playwright-core";
import { asInForce } from "../../src/cli/config/differences.ts";
import { loadSettings } from "../../src/cli/config/load.ts";
import { settingViews } from "../../src/cli/config/shown.ts";
import { noBrowser, openTab, seeCount, seeText, seeTexts } from "../kits/browser.ts";
import { serveCluster } from "../kits/cluster-servers.ts";
import { edit } from "../kits/forged-log.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { inbox } from "../kits/waits.ts";

const tokenOf = (name: string): string => `token-of-${name}-0123456789`;
const tokens = [
  { role: "admin", token: tokenOf("admin") },
  { role: "viewer", token: tokenOf("viewer") },
  { role: "agent", token: tokenOf("ann"), agentId: "ann", project: "site" },
];
const home = mkdtempSync(join(tmpdir(), "drover-page-"));
after(() => rmSync(home, { recursive: true, force: true }));

const submit = async (at: TestServer, id: string, more: object = {}): Promise<void> => {
  const { status, text } = await at.ask("submit", {
    body: { id, agentId: "ann", project: "site", action: "x", ...more },
  });
  assert.equal(status, 202, text);
};
/** They come a moment after their number. */
const seeRows = (page: Page, names: readonly string[]): Promise<void> => seeTexts(page.locator(".row a"), names);

/** Texts that hold the mark which turns letters around, and do not stand apart from others. */
const TURNING = `(() => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const { data, parentElement: parent } = walker.currentNode;
    if (data.includes("\u202e") && parent.closest("bdi, pre, option") === null) found.push(parent.outerHTML);
  }
  return found;
})()`;

describe("the web page", { skip: noBrowser }, () => {
  test("somebody submits a task, sees it wait and why, sees it run, and cancels it", async () => {
    await using at = await openServer();
    await using tab = await openTab(at.url, "/", { expected: /status of 400/ });
    const { page } = tab;
    assert.match(page.url(), /\/ui\/$/, "the root leads to the page");
    await page.getByRole("link", { name: "Tasks" }).click();
    await page.getByRole("button", { name: "Submit a task" }).click();
    await seeText(page, "Who submits: the unit of fairness inside a project.");
    const help = await page.getByRole("dialog").innerText();
    assert.match(help, /exec runs the command in params\.command/);
    assert.doesNotMatch(help, /`/, "what the schema marks as code is shown as code");
    await page.locator("input[name=agentId]").fill("ann");
    await page.locator("input[name=action]").fill("think");
    await page.locator("input[name=id]").fill("first");
    await page.locator("textarea[name=more]").fill('{"capabilities": "git"}');
    await page.getByRole("button", { name: "Submit", exact: true }).click();
    await seeText(page, /capabilities .*must be a list/);
    await page.locator("textarea[name=more]").fill('{"capabilities": ["git"]}');
    const held = inbox<Route>("the submit");
    let submits = 0;
    await page.route(/\/tasks$/, (route) => {
      submits++;
      held.put(route);
    });
    for (let press = 0; press < 2; press++) await page.locator("input[name=id]").press("Enter");
    await (await held.next()).continue();
    await page.getByRole("heading", { name: "first" }).waitFor();
    assert.equal(submits, 1, "Enter twice submits once");
    await page.unroute(/\/tasks$/);
    await seeText(page, /no worker is known; start one/);
    await page.getByRole("slider", { name: "Moment" }).waitFor();
    const started = inbox<AbortSignal>("the start of the task");
    await at.drover.worker({ id: "w", capabilities: ["git"] }, (_, { signal }) => {
      started.put(signal);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    const signal = await started.next();
    await seeText(page, "The task is running already, attempt 1 on worker w");
    await page.locator(".story").getByText("attempt 1 has begun").waitFor();
    await page.getByRole("slider", { name: "Moment" }).fill("0");
    await page.locator(".why").getByText("no-workers").waitFor();
    await page.getByRole("button", { name: "Back to now" }).click();
    await seeText(page, "The task is running already, attempt 1 on worker w");
    await page
      .locator(".story")
      .getByRole("button", { name: /^submitted by ann/ })
      .click();
    await page.locator(".why").getByText("no-workers").waitFor();
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByRole("textbox").fill("enough");
    await page.getByRole("button", { name: "Cancel it" }).click();
    await page.locator(".badge.is-cancelled").first().waitFor();
    await page.getByRole("button", { name: "Back to now" }).click();
    await page.locator(".why").getByText("enough").waitFor();
    assert.equal(await page.locator(".failure").count(), 0, "the reason is said where it is asked for");
    assert.ok(signal.aborted, "what ran was stopped");
    await page.getByRole("button", { name: "Retry" }).click();
    await page.locator(".view-head .badge.is-running").waitFor();
  });

  test("filters stand in the address, and many are cancelled and run again at once", async () => {
    await using at = await openServer();
    for (const id of ["a1", "a2", "a3"]) await submit(at, id, { labels: { team: "red" } });
    await submit(at, "b1", { project: "shop", agentId: "ben" });
    await submit(at, "c1", { needs: ["a1"] });
    await using tab = await openTab(at.url, "/ui/tasks?state=queued");
    const { page } = tab;
    await seeText(page, "4 tasks match");
    await seeRows(page, ["b1", "a3", "a2", "a1"]);
    await page.getByLabel("Search").fill("RED");
    await seeText(page, "3 tasks match");
    assert.match(page.url(), /state=queued&q=RED$/);
    await page.getByRole("link", { name: "Clear" }).click();
    await page.getByLabel("Project").selectOption("shop");
    await seeText(page, "1 task match");
    await page.goBack();
    await page.goto(`${at.url}/ui/tasks?state=queued&label=team%3Dred`);
    await seeText(page, "3 tasks match");
    for (const id of ["a1", "a2"]) await page.getByLabel(`Select ${id}`).check();
    await page.getByRole("button", { name: "Cancel 2" }).click();
    await page.getByRole("button", { name: "Cancel them" }).click();
    await seeText(page, "2 tasks are cancelled.");
    assert.deepEqual(
      ["a1", "a2", "a3", "c1"].map((id) => at.drover.state.tasks.get(id as never)?.phase),
      ["cancelled", "cancelled", "queued", "skipped"],
    );
    await page.goto(`${at.url}/ui/tasks?state=cancelled`);
    await seeText(page, "2 tasks match");
    for (const id of ["a1", "a2"]) await page.getByLabel(`Select ${id}`).check();
    await page.getByRole("button", { name: "Retry 2" }).click();
    await seeText(page, "2 tasks are queued again.");
    assert.equal(at.drover.state.queued, 4);
  });

  test("a plan is drawn with its longest chain, paused and resumed; what it asks is answered", async () => {
    await using at = await openServer();
    const tasks = {
      spec: { action: "x" },
      code: { action: "x", needs: "spec" },
      docs: { action: "x", needs: "spec" },
      ship: { action: "x", needs: ["code", "docs"], approval: { question: "Ship it?" } },
    };
    await at.drover.plans.put("day", { tasks });
    await using tab = await openTab(at.url, "/ui/plans");
    const { page } = tab;
    await page.getByRole("button", { name: "Pause" }).click();
    await seeText(page, "day is paused: what runs may end.");
    await page.getByRole("link", { name: "day" }).click();
    await page.locator(".view-head .badge.is-paused").waitFor();
    await seeCount(page.locator(".node"), 4);
    await seeCount(page.locator(".edge"), 4);
    await seeCount(page.locator(".edge.is-critical"), 2);
    await at.drover.worker({}, () => null);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.locator(".node.is-parked").waitFor();
    await seeCount(page.locator(".node.is-done"), 3);
    await page.evaluate("document.body.dataset.isSame = 'true'");
    await page.locator(".node.is-parked").click();
    await page.waitForURL(/\/ui\/tasks\//);
    assert.equal(await page.locator("body").getAttribute("data-is-same"), "true", "the page is not loaded anew");
    await page.getByRole("link", { name: "Overview" }).click();
    await seeText(page, "Ship it?");
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("textbox").fill("go");
    await page.getByRole("button", { name: "Approve" }).last().click();
    await seeText(page, /is approved\./);
    await seeText(page, "Nothing does: no question is open");
    const { tasks: rows } = await at.drover.plans.get("day");
    const ship = rows.find(({ name }) => name === "ship");
    await at.drover.ended(ship?.taskId ?? "");
    assert.equal((await at.drover.task(ship?.taskId ?? "")).approval?.note, "go");
  });

  test("a weight is changed with a preview of what it does to all", async () => {
    await using at = await openServer({ settings: { projects: { site: { weight: 1 }, shop: { weight: 1 } } } });
    await submit(at, "a");
    await submit(at, "b", { project: "shop" });
    await using tab = await openTab(at.url, "/ui/projects");
    const { page } = tab;
    await page.getByRole("button", { name: "Weight" }).first().click();
    await page.locator("input[name=weight]").fill("3");
    await seeTexts(page.locator(".preview .meter-text"), ["75 %", "25 %"]);
    await page.getByRole("button", { name: "Change it" }).click();
    await seeText(page, "site has weight 3.");
    assert.equal((await at.drover.projects()).find(({ id }) => id === "site")?.weight, 3);
  });

  test("the config is told with who set each knob, found by a word, and patched and taken back", async () => {
    const sets = ["scheduler.resultTtl=1h"];
    const { effective } = loadSettings({ env: {}, cwd: home, home, sets });
    const own = settingViews(effective);
    const difference = { path: ["scheduler", "maxQueue"], own: 100_000, inForce: 5 };
    const inForce = asInForce(own, { leader: "n1", all: [difference] });
    await using at = await openServer({ server: { settingViews: () => inForce } });
    await at.drover.patchConfig({ maxInFlight: 7 });
    await using tab = await openTab(at.url, "/ui/config");
    const { page } = tab;
    const cells = (path: string): Promise<string[]> =>
      page.getByRole("row", { name: path }).getByRole("cell").allTextContents();
    await seeText(page, "scheduler.resultTtl");
    assert.deepEqual((await cells("scheduler.resultTtl")).slice(1, 4), ["1h", "flag--set scheduler.resultTtl", "5m"]);
    const patched = (await cells("scheduler.maxInFlight")).slice(1, 4);
    assert.deepEqual(patched, ["7", "patchedPATCH /scheduler/config", "50"]);
    const [, overruled, by] = await cells("scheduler.maxQueue");
    assert.match(`${overruled} | ${by}`, /^5here 100\s000, default \| leadernode n1$/);
    await seeText(page, /^One knob has another value in the config of this node/);
    await page.getByRole("button", { name: "What somebody set" }).click();
    await seeCount(page.locator("tbody tr"), 3);
    await page.getByRole("button", { name: "Take patches back" }).click();
    await page.getByRole("button", { name: "Take back", exact: true }).click();
    await seeText(page, "The files hold again.");
    await page.getByRole("row", { name: "scheduler.maxInFlight" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Every knob" }).click();
    await page.getByLabel("Find a knob").fill("starvation");
    await seeText(page, "scheduler.priority.starvationAfter");
    await seeCount(page.locator("tbody tr"), 1);
  });

  test("the log is verified, and the page says up to where it is right", async () => {
    const data = join(home, "verify");
    await using at = await openServer({ open: { data } });
    for (const id of ["a", "b", "c"]) await submit(at, id);
    await using tab = await openTab(at.url, "/ui/events?task=b");
    const { page } = tab;
    await page.getByRole("link", { name: "b", exact: true }).first().waitFor();
    const { seq } = at.drover.state;
    await page.getByRole("button", { name: "Verify the log" }).click();
    await seeText(page, `All ${seq} events are as they were written, up to ${seq}.`);
    edit(data, `UPDATE batch SET bytes = CAST(replace(bytes, X'61', X'62') AS BLOB) WHERE last_seq >= ${seq - 1}`);
    await page.getByRole("button", { name: "Verify the log" }).click();
    await seeText(page, new RegExp(`^Right up to event \\d+ of ${seq}: then `));
    await page.getByRole("button", { name: "Hold" }).click();
    await page.getByRole("button", { name: "Workers" }).click();
    await seeText(page, "No such event lately.");
    await page.getByRole("button", { name: "Hold" }).waitFor();
  });

  test("a cluster shows nodes, roles and journal, and an alarm where histories differ", async (context) => {
    const { leading, following, clock } = await serveCluster(context, ["ada", "ben"]);
    const [follower] = following();
    assert.ok(follower);
    await using tab = await openTab(follower.url, "/ui/");
    const { page } = tab;
    await page.getByRole("link", { name: "Cluster" }).click();
    const row = (id: string) => page.getByRole("row", { name: id });
    await row(leading().node.id).getByText("leader").waitFor();
    await row(follower.node.id).getByText("follower").waitFor();
    await seeText(page, "The log they share");
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.route("**/cluster", async (route) => {
      if (route.request().resourceType() === "document") return route.continue();
      const response = await route.fetch();
      const view = (await response.json()) as { nodes: object[] };
      await route.fulfill({ response, json: { ...view, nodes: view.nodes.map((one) => ({ ...one, differs: true })) } });
    });
    await seeText(page, /^The history of ada, ben differs/);
    await page.unroute("**/cluster");
    follower.node.journal.fault({ cut: "both" });
    await clock.advance(4000);
    await seeText(page, "The log they share, as last known");
    await row(leading().node.id).getByText("leader, last known").waitFor();
    await seeText(page, /^The journal has been out of reach for 2 s: /);
    const cells = (id: string): Promise<string[]> => row(id).getByRole("cell").allTextContents();
    assert.deepEqual((await cells(leading().node.id)).slice(2, 4), ["?", "4 s ago"]);
    assert.deepEqual((await cells(follower.node.id)).slice(1, 4), ["follower", "4.0 s", "now"], "itself it knows");
    await page.setViewportSize({ width: 400, height: 800 });
    const [edge, ...seen] = await Promise.all(
      [page.getByRole("region", { name: "Nodes" }), ...(await row(follower.node.id).getByRole("cell").all())].map(
        (one) => one.boundingBox(),
      ),
    );
    assert.ok(edge !== null && edge !== undefined && seen.length > 5);
    for (const cell of seen) assert.ok(cell !== null && cell.x + cell.width <= edge.x + edge.width, "it is cut off");
    assert.ok(edge.height < 300, `${edge.height} px for two nodes`);
    await page.setViewportSize({ width: 1280, height: 800 });
    follower.node.journal.fault({ cut: "none" });
    await clock.advance(4000);
    await row(leading().node.id).getByText("leader", { exact: true }).waitFor();
    await using alone = await openServer();
    await using other = await openTab(alone.url, "/ui/cluster");
    await seeText(other.page, "This server is alone: it has a log of its own.");
    assert.equal(await other.page.getByRole("link", { name: "Cluster" }).count(), 0);
  });

  test("opened while the journal is away, the page says so and of when it is, and goes on", async (context) => {
    const { leading, following, clock } = await serveCluster(context, ["ada", "ben"]);
    const [follower] = following();
    assert.ok(follower);
    follower.node.journal.fault({ cut: "both" });
    await clock.advance(8000);
    await using tab = await openTab(follower.url, "/ui/cluster");
    const { page } = tab;
    const row = page.getByRole("row", { name: leading().node.id });
    await row.getByText("leader, last known").waitFor();
    await seeText(page, /^This node does not reach the journal\. What you see is of \d\d:\d\d:\d\d\./);
    const wayHere = page.getByRole("link", { name: "See the cluster" });
    assert.equal(await wayHere.count(), 0, "it is the page that shows it");
    await page.getByRole("link", { name: "Overview" }).click();
    await wayHere.waitFor();
    await page.locator(".attention").getByText("journal", { exact: true }).waitFor();
    follower.node.journal.fault({ cut: "none" });
    await clock.advance(4000);
    await page.getByText("This node does not reach the journal.").waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Cluster" }).click();
    await row.getByText("leader", { exact: true }).waitFor();
  });

  test("a node that is down needs a person, until it is back", async (context) => {
    const { leading, following, clock } = await serveCluster(context, ["ada", "ben"]);
    const [follower] = following();
    assert.ok(follower);
    await using tab = await openTab(leading().url, "/ui/");
    const { page } = tab;
    await seeText(page, "Needs a person");
    follower.node.journal.fault({ cut: "both" });
    await clock.advance(12_000);
    const row = page.locator(".attention").getByText(`Node ${follower.node.id} is down: nothing was heard of it since`);
    await row.waitFor();
    follower.node.journal.fault({ cut: "none" });
    await clock.advance(4000);
    await row.waitFor({ state: "detached" });
  });

  test("a leader that the page has lost is the last known one, and none that leads", async (context) => {
    const { leading } = await serveCluster(context, ["ada", "ben"]);
    const lost = leading();
    await using tab = await openTab(lost.url, "/ui/cluster", { expected: /Failed to load resource|ERR_/ });
    const { page } = tab;
    const row = page.getByRole("row", { name: lost.node.id });
    await row.getByText("leader", { exact: true }).waitFor();
    await lost.close();
    await row.getByText("leader, last known").waitFor();
    await seeText(page, "Leader, last known");
    assert.equal(await page.getByText("leader", { exact: true }).count(), 0);
  });

  test("a server that goes away is said to be away, and the page goes on when it is back", async () => {
    const open = { data: join(home, "restart") };
    const first = await openServer({ open });
    const { port } = first.server;
    await submit(first, "before");
    await using tab = await openTab(first.url, "/ui/tasks", { expected: /Failed to load resource|ERR_/ });
    const { page } = tab;
    await seeText(page, "1 task");
    await first.server.close();
    await seeText(page, "The connection to the server is lost.");
    await page.getByRole("link", { name: "Gates" }).click();
    await seeText(page, "This could not be loaded");
    await using second = await openServer({ open, settings: { server: { port } } });
    await page.getByText("The connection to the server is lost.").waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Gates" }).waitFor();
    await page.getByRole("link", { name: "Tasks" }).click();
    await submit(second, "after");
    await page.getByRole("link", { name: "after" }).waitFor();
    for (let more = 0; more < 9; more++) await submit(second, `more-${more}`);
    await page.getByRole("link", { name: "Events" }).click();
    await page.getByRole("link", { name: "more-8" }).first().waitFor();
    await second.server.close();
    await seeText(page, "The connection to the server is lost.");
    await using third = await openServer({ settings: { server: { port } } });
    await page.getByText("The connection to the server is lost.").waitFor({ state: "detached" });
    await submit(third, "of-a-new-log");
    await page.getByRole("link", { name: "of-a-new-log" }).first().waitFor();
    assert.equal(await page.getByRole("link", { name: "more-8" }).count(), 0, "the log is another one");
  });

  test("a token is asked for; a wrong one is refused; a viewer sees no buttons; an agent sees its own", async () => {
    await using at = await openServer({ settings: { server: { tokens } } });
    const admin = { token: tokenOf("admin") };
    for (const [id, agentId] of [
      ["mine", "ann"],
      ["theirs", "ben"],
    ] as const)
      await at.ask("submit", { body: { id, agentId, project: "site", action: "x" } }, admin);
    await using tab = await openTab(at.url, "/ui/tasks", { expected: /status of 40[14]/ });
    const { page } = tab;
    await page.getByLabel("Token").fill("wrong-token-0123456789");
    await page.getByRole("button", { name: "Log in" }).click();
    await seeText(page, "this server does not know that token");
    await page.getByLabel("Token").fill(tokenOf("viewer"));
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("link", { name: "theirs" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Submit a task" }).count(), 0);
    assert.equal(await page.getByRole("checkbox").count(), 0);
    await page.getByRole("link", { name: "theirs" }).click();
    await page.getByRole("heading", { name: "theirs" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Cancel" }).count(), 0);
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("Token").fill(tokenOf("ann"));
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("link", { name: "Tasks", exact: true }).click();
    await page.getByRole("link", { name: "mine" }).waitFor();
    await seeRows(page, ["mine"]);
    await page.getByRole("link", { name: "mine" }).click();
    await page.locator(".story").getByText("submitted by ann").waitFor();
    assert.equal(await page.getByRole("link", { name: "Config" }).count(), 0, "the config is the whole fleet's");
  });

  test("names with markup and right-to-left letters are text, everywhere", async () => {
    await using at = await openServer();
    const evil = '<img/src=x/onerror="alert(1)">';
    const hebrew = "שלום-עולם";
    await submit(at, evil, { action: "<b>bold</b>", project: hebrew, labels: { team: "<i>x</i>" } });
    await submit(at, hebrew, { approval: { question: "<script>alert(1)</script>?" } });
    await using tab = await openTab(at.url, "/ui/tasks");
    const { page } = tab;
    let hasAsked = false;
    page.on("dialog", (dialog) => {
      hasAsked = true;
      void dialog.dismiss();
    });
    await page.getByRole("link", { name: evil }).click();
    await page.getByRole("heading", { name: evil }).waitFor();
    await seeText(page, "<b>bold</b>");
    await page.goto(`${at.url}/ui/`);
    await seeText(page, "<script>alert(1)</script>?");
    assert.equal(await page.locator("main img, main b:not(.meter-bar b)").count(), 0);
    assert.equal(hasAsked, false);

    const turned = "\u202eturned";
    const wants = { capabilities: [turned], labels: { [turned]: turned } };
    await submit(at, turned, { ...wants, action: turned, project: turned, agentId: turned });
    await at.drover.worker({ id: turned, capabilities: [turned], zone: turned }, () =>
      Promise.reject(new Error(turned)),
    );
    await at.drover.ended(turned);
    const name = encodeURIComponent(turned);
    for (const [path, ready] of [
      [`tasks/${name}`, ".tag bdi"],
      ["tasks", ".row"],
      ["workers", ".tag bdi"],
      [`graph/tree/${name}`, ".node"],
      ["timeline", ".bar"],
      ["events", ".table bdi"],
    ] as const) {
      await page.goto(`${at.url}/ui/${path}`);
      await page.locator(ready).first().waitFor();
      assert.deepEqual(await page.evaluate(TURNING), [], `${path}: text that turns what stands behind it around`);
    }
    await at.ask("joinWorker", { body: { id: `${turned}-outside` } });
    await page.goto(`${at.url}/ui/workers`);
    await page.getByRole("button", { name: "Drain" }).click();
    await page.getByRole("dialog").getByText("turned-outside finishes what it runs", { exact: false }).waitFor();
    assert.doesNotMatch(await page.getByRole("dialog").innerText(), /\u202e/);
  });
});
