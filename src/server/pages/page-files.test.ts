/**
 * A server whose page is not built says so, in a page that turns into the real one.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pageFilesIn } from "./page-files.ts";

test("where the page is not built, every place of it says how it is, and the built one follows", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "drover-page-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const place = join(directory, "page");
  const find = pageFilesIn(place);
  for (const path of ["", "tasks/some", "index.html"]) {
    const { status, headers, body, packed } = (await find(path)) ?? {};
    assert.deepEqual([status, packed], [503, undefined]);
    assert.equal(headers?.["content-type"], "text/html; charset=utf-8");
    assert.equal(headers?.["cache-control"], "no-cache");
    assert.match(headers?.["content-security-policy"] ?? "", /^default-src 'none'; /);
    const html = String(body);
    assert.match(html, /^<!doctype html>\n<html lang="en">/);
    assert.match(html, /<title>[^<]+<\/title>/);
    assert.match(html, /<meta http-equiv="refresh" content="5">/);
    assert.match(html, /<pre>npm run build:page<\/pre>/);
    assert.doesNotMatch(html, /<script|<style| style=/, "its policy would not let it run");
  }
  assert.equal(await find("assets/page.js"), null);

  mkdirSync(join(place, "assets"), { recursive: true });
  writeFileSync(join(place, "index.html"), "<!doctype html>built");
  writeFileSync(join(place, "assets/page.js"), "1;");
  const built = await find("tasks/some");
  assert.deepEqual([built?.status, String(built?.body)], [200, "<!doctype html>built"]);
  assert.match((await find("assets/page.js"))?.headers["cache-control"] ?? "", /immutable/);
});
