/**
 * One task in the web page: every attempt with its end and its output, all that it is tied to, and why it did not run
 * at any moment of its time.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createHandClock } from "../../src/std/hand-clock.ts";
import { noBrowser, openTab, seeCount, seeText, seeTexts } from "../kits/browser.ts";
import { openServer } from "../kits/test-server.ts";

describe("a task in the web page", { skip: noBrowser }, () => {
  test("each attempt has why it ended and what it wrote, and a link to that can be shared", async () => {
    const logsOf = (_: string, attempt = 3) => ({ attempt, text: `attempt ${attempt} wrote this\n`, truncated: false });
    const scheduler = { retry: { base: 1, max: 1 } };
    await using at = await openServer({ settings: { scheduler }, server: { logsOf } });
    const errors = ["2 tests fail in <cart>", "the branch has conflicts"];
    await at.drover.worker({ id: "w" }, ({ attempt }) => {
      const error = errors[attempt - 1];
      if (error !== undefined) throw new Error(error);
      return "fine";
    });
    await at.drover.submit({ id: "t", agentId: "ann", action: "x", maxAttempts: 3 });
    await at.drover.ended("t");
    await using tab = await openTab(at.url, "/ui/tasks/t", { expected: /status of 503/ });
    const { page } = tab;
    const rows = page.locator(".attempts tbody tr:not(.attempt-more)");
    await rows.nth(2).waitFor();
    await seeTexts(page.locator(".attempt-error"), errors);
    await seeTexts(rows.locator(".badge"), ["failed", "failed", "done"]);
    await page.getByRole("link", { name: "Output of attempt 1" }).click();
    await seeText(page, "attempt 1 wrote this");
    await seeText(page, "attempt 1 of 3");
    assert.match(page.url(), /\/ui\/tasks\/t\?attempt=1$/);
    await page.reload();
    await seeText(page, "attempt 1 wrote this");
    await page.getByRole("link", { name: "Output of attempt 2" }).click();
    await seeText(page, "attempt 2 wrote this");
    assert.equal(await page.locator(".attempts [aria-current]").getAttribute("aria-label"), "Output of attempt 2");
    await page.goto(`${at.url}/ui/tasks/t?attempt=99`);
    await seeText(page, "attempt 3 wrote this");
    const json = { error: "nobody leads now", code: "no_leader", retryable: true };
    await page.route(/\/(events|links)\?/, (route) => route.fulfill({ status: 503, json }));
    await page.reload();
    await rows.nth(2).waitFor();
    await page.getByRole("alert").nth(1).waitFor();
    await seeTexts(rows.locator(".badge"), ["…", "…", "…"]);
    assert.equal(await page.getByText("not in the log any more").count(), 0, "the log was not read");
    await page.unroute(/\/(events|links)\?/);
    await rows.getByText("done", { exact: true }).waitFor();
    await page.getByRole("alert").first().waitFor({ state: "detached" });
  });

  test("all that a task is tied to is reached, part by part", async () => {
    await using at = await openServer({ settings: { scheduler: { maxBatch: 200 } } });
    const later = Array.from({ length: 120 }, (_, index) => ({ id: `d${index}`, action: "x", needs: ["a"] }));
    await at.drover.submitBatch({ agentId: "ann", tasks: [{ id: "a", action: "x" }, ...later] });
    await using tab = await openTab(at.url, "/ui/tasks/a");
    const { page } = tab;
    const next = page.getByRole("button", { name: "Waited for by: behind these" });
    await seeText(page, "1–50 of 120");
    await seeText(page, "0 up, 120 down");
    await next.click();
    await page.getByRole("link", { name: "d50", exact: true }).waitFor();
    await next.click();
    await page.getByRole("link", { name: "d119", exact: true }).waitFor();
    await seeText(page, "101–120 of 120");
    assert.ok(await next.isDisabled());
    await page.getByRole("button", { name: "Waited for by: before these" }).click();
    await page.getByRole("link", { name: "d99", exact: true }).waitFor();
    await seeCount(page.locator(".tied li"), 50);
  });

  test("why is told of any moment, also of those between two events of the task", async () => {
    const clock = createHandClock({ at: 1_800_000_000_000 });
    const [token, own] = ["token-of-who-sees-all-0123456789", "token-of-an-agent-0123456789"];
    const tokens = [
      { role: "viewer", token },
      { role: "agent", token: own, agentId: "ann", project: "default" },
    ];
    await using at = await openServer({ open: { clock }, server: { clock }, settings: { server: { tokens } } });
    await at.drover.submit({ id: "t", agentId: "ann", action: "x", capabilities: ["gpu"] });
    await clock.advance(100_000);
    await at.drover.worker({ id: "w", capabilities: ["git"] }, () => null);
    await clock.advance(100_000);
    await at.drover.pause({});
    await clock.advance(100_000);
    await using tab = await openTab(at.url, "/ui/tasks/t", { token, expected: /status of 503/ });
    const { page } = tab;
    const held = page.locator(".why .conditions").first();
    await held.getByText("fleet-paused", { exact: true }).waitFor();
    await seeCount(page.locator(".story li"), 1);
    const slider = page.getByRole("slider", { name: "Moment" });
    await slider.fill("80");
    await held.getByText("no-workers", { exact: true }).waitFor();
    await slider.fill("250");
    await held.getByText("never-fits", { exact: true }).waitFor();
    assert.equal(await held.getByText("fleet-paused", { exact: true }).count(), 0);
    await seeText(page, /, after: submitted by ann/);
    await slider.fill("420");
    await held.getByText("fleet-paused", { exact: true }).waitFor();
    await slider.fill("250");
    await held.getByText("fleet-paused", { exact: true }).waitFor({ state: "detached" });
    await slider.press("Home");
    await held.getByText("no-workers", { exact: true }).waitFor();
    await slider.press("End");
    await page.getByRole("button", { name: "Back to now" }).waitFor({ state: "detached" });
    await held.getByText("fleet-paused", { exact: true }).waitFor();

    await page.route(/\/why\?/, (route) => route.fulfill({ status: 503, json: { error: "no past now" } }));
    await slider.fill("80");
    await seeText(page, "no past now");
    assert.equal(await page.locator(".why").count(), 0, "nothing of now is told of that moment");

    await using other = await openTab(at.url, "/ui/tasks/t", { token: own });
    const seen = other.page.locator(".why .conditions").first();
    await seen.getByText("fleet-paused", { exact: true }).waitFor();
    await other.page.getByRole("slider", { name: "Moment" }).fill("80");
    await seen.getByText("no-workers", { exact: true }).waitFor();
  });
});
