/**
 * The script of the page at `/`, run against a real server with as much of a browser as it uses.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { openServer } from "../../../test/kits/test-server.ts";
import { STATUS_PAGE } from "./status-page.ts";

type Element = { textContent: string; children: Element[]; tBodies: Element[]; [more: string]: unknown };

function element(): Element {
  const own: Element = {
    ...{ textContent: "", children: [], hidden: false, addEventListener: () => undefined },
    get tBodies(): Element[] {
      return [own];
    },
    replaceChildren: (...all: Element[]) => void own.children.splice(0, Infinity, ...all),
    append: (...all: Element[]) => void own.children.push(...all),
  };
  return own;
}

/** Looks once, and again whenever it is told to; `asked` are the paths of its last look. */
async function openPage(url: string): Promise<{
  ids(): string[];
  /** The cells of a task, or of a plan. */
  row(id: string, table?: string): Element[];
  said(): string;
  asked(): string[];
  look(): Promise<void>;
}> {
  const elements = new Map<string, Element>();
  const byId = (id: string): Element => elements.get(id) ?? elements.set(id, element()).get(id) ?? element();
  let asked: string[] = [];
  let again = Promise.withResolvers<() => void>();
  const [, script = ""] = /<script>([\s\S]*)<\/script>/.exec(STATUS_PAGE) ?? [];
  runInNewContext(script, {
    document: { getElementById: byId, createElement: element },
    sessionStorage: { getItem: () => null },
    fetch: (path: string, init: RequestInit) => {
      asked.push(path);
      // A browser says where a page that writes comes from.
      return fetch(`${url}${path}`, { ...init, headers: { ...init.headers, origin: url } });
    },
    prompt: () => "not today",
    confirm: () => true,
    setTimeout: (next: () => void) => again.resolve(next),
  });
  await again.promise;
  return {
    ids: () => byId("tasks").children.map((row) => row.children[0]?.textContent ?? ""),
    row: (id, table = "tasks") =>
      byId(table).children.find(({ children }) => children[0]?.textContent === id)?.children ?? [],
    said: () => byId("said").textContent,
    asked: () => asked,
    look: async () => {
      const next = await again.promise;
      again = Promise.withResolvers();
      asked = [];
      next();
      await again.promise;
    },
  };
}

function press(button: Element | undefined): Promise<void> {
  assert.ok(typeof button?.onclick === "function");
  return button.onclick();
}

test("what was submitted last is shown, however many pages that takes", async () => {
  await using at = await openServer();
  const ids = Array.from({ length: 12 }, (_, index) => `t${index}`);
  for (const id of ids) await at.drover.submit({ id, agentId: "ann", action: "x", payload: "x".repeat(500_000) });
  const page = await openPage(at.url);
  assert.deepEqual(page.ids(), ids.toReversed());
  assert.equal(page.asked().filter((path) => path.startsWith("/tasks")).length, 7, "and it looks no further back");
  await page.look();
  assert.deepEqual(page.asked(), ["/readyz", "/scheduler/queue", "/workers"], "nothing has happened since");
});

test("it looks back until it has found enough", async () => {
  await using at = await openServer();
  const page = await openPage(at.url);
  assert.deepEqual(page.ids(), ["No task yet."]);
  const ids = Array.from({ length: 30 }, (_, index) => `t${index}`);
  for (const id of ids) await at.drover.submit({ id, agentId: "ann", action: "x" });
  for (let priority = 1; priority <= 200; priority++) await at.drover.patch("t0", { priority });
  await page.look();
  assert.deepEqual(page.ids(), ids.slice(-20).toReversed());
});

test("what asks somebody stays on top, once, however much is submitted after it", async () => {
  await using at = await openServer();
  await at.drover.submit({ id: "ask", agentId: "ann", action: "x", approval: true });
  const page = await openPage(at.url);
  assert.deepEqual(page.ids(), ["ask"]);
  const ids = Array.from({ length: 30 }, (_, index) => `t${index}`);
  for (const id of ids) await at.drover.submit({ id, agentId: "ann", action: "x" });
  await page.look();
  assert.deepEqual(page.ids(), ["ask", ...ids.slice(-20).toReversed()]);
});

test("why a task failed is shown, numbers have thousands, and what parked tasks ask is answered", async () => {
  await using at = await openServer();
  const worker = await at.drover.worker({}, (_, { usage }) => {
    usage({ inputTokens: 1_234_567, outputTokens: 1 });
    throw Object.assign(new Error("<b>no such file</b>"), { permanent: true });
  });
  await at.drover.submit({ id: "bad", agentId: "ann", action: "x" });
  await at.drover.wait("bad");
  await worker.close();
  for (const id of ["yes", "no/t"])
    await at.drover.submit({ id, agentId: "ann", action: "x", approval: { question: "Ship it?" } });
  const page = await openPage(at.url);
  const texts = (id: string): string[] => page.row(id).map(({ textContent }) => textContent);
  assert.deepEqual(texts("bad").slice(3, 7), ["failed", "<b>no such file</b>", "", "1\u202f234\u202f568"]);
  const buttons = (id: string): Element[] => page.row(id)[4]?.children ?? [];
  assert.deepEqual(
    [texts("yes")[4], buttons("yes").map(({ textContent }) => textContent)],
    ["Ship it?", ["Approve", "Deny"]],
  );
  assert.deepEqual(buttons("bad"), []);
  await press(buttons("yes")[0]);
  assert.equal(page.said(), "yes is approved.");
  await press(buttons("no/t")[1]);
  assert.equal(page.said(), "no/t is denied.");
  const denied = await at.drover.task("no/t");
  assert.deepEqual([denied.state, denied.error], ["failed", "denied: not today"]);
  assert.equal((await at.drover.task("yes")).state, "queued");
  assert.deepEqual([texts("yes")[3], texts("no/t")[3], texts("no/t")[4]], ["queued", "failed", "denied: not today"]);
});

test("a task that waits for its children asks nobody", async () => {
  await using at = await openServer();
  const worker = await at.drover.worker({ actions: ["x"] }, (_, { submit }) => submit({ action: "y" }));
  await at.drover.submit({ id: "parent", agentId: "ann", action: "x", wait: "children" });
  for await (const _ of at.drover.events({ follow: true, task: "parent", kind: "attempt-done" })) break;
  const page = await openPage(at.url);
  const [, , , state, note] = page.row("parent");
  assert.deepEqual(
    [state?.textContent, note?.textContent, note?.children],
    ["parked", "Its children have not ended.", []],
  );
  await worker.close();
});

test("plans show how far they are, and are paused, resumed and cancelled", async () => {
  await using at = await openServer();
  const worker = await at.drover.worker({}, (_, { usage }) =>
    usage({ inputTokens: 900, outputTokens: 100, cost: 0.3 }),
  );
  const name = "day";
  await at.drover.plans.put(name, {
    tasks: { a: "true", b: { run: "true", approval: true }, c: { run: "x", needs: "b" } },
  });
  await at.drover.wait((await at.drover.plans.get(name)).tasks[0]?.taskId ?? "");
  const page = await openPage(at.url);
  assert.equal(page.asked().filter((path) => path.startsWith("/plans")).length, 1, "one call, of a bounded page");
  const texts = (): string[] => page.row(name, "plans").map(({ textContent }) => textContent);
  const buttons = (): Element[] => page.row(name, "plans").at(-1)?.children ?? [];
  const words = (): string[] => buttons().map(({ textContent }) => textContent);
  assert.deepEqual(texts(), [name, "running", "1 of 3", "", "", "1", "1\u202f000", "0.3", ""]);
  assert.deepEqual(words(), ["Pause", "Cancel"]);
  await press(buttons()[0]);
  assert.deepEqual(
    [page.said(), texts()[1], words()[0]],
    [`${name} is paused: what runs may end.`, "paused", "Resume"],
  );
  await press(buttons()[0]);
  assert.deepEqual([page.said(), texts()[1], words()[0]], [`${name} goes on.`, "running", "Pause"]);
  await press(buttons()[1]);
  assert.deepEqual([page.said(), texts()[1], words()], [`${name} is cancelled.`, "cancelled", []]);
  assert.equal((await at.drover.plans.get(name)).state, "cancelled");
  await worker.close();
});
