/**
 * How soon somebody who opens the web page sees something: the built page of a server on loopback, in a real Chromium,
 * each visit with an empty cache. It is the first paint with content that the browser itself reports, counted from the
 * beginning of the navigation.
 */
import { chromium, type Page } from "playwright-core";
import { isMissing } from "../test/kits/optional-tool.ts";
import { buildPage, isPageFresh } from "../tools/page.ts";
import { median } from "./peers/workload.ts";
import { progress, type Row } from "./report.ts";
import { serve } from "./serve.ts";

const TARGET_MS = 1000;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

const paintedAt = (page: Page): Promise<number> =>
  page.evaluate(
    `new Promise((resolve) => new PerformanceObserver((list) => {
      for (const { name, startTime } of list.getEntries()) if (name === "first-contentful-paint") resolve(startTime);
    }).observe({ type: "paint", buffered: true }))`,
  );

export async function firstPaintRows(visits: number): Promise<Row[]> {
  const missing = isMissing("chromium", "chromium");
  if (missing !== false) {
    progress(`no first paint: ${missing}`);
    return [];
  }
  progress(`first paint, ${visits} visits with an empty cache`);
  if (!isPageFresh()) await buildPage();
  const served = await serve("drover");
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const times: number[] = [];
    for (let visit = 0; visit < visits; visit++) {
      const page = await browser.newPage();
      await page.goto(`http://127.0.0.1:${served.port}/ui/`);
      times.push(await paintedAt(page));
      await page.close();
    }
    const time = median(times);
    const note = `slowest ${Math.round(Math.max(...times))} ms`;
    const is = { unit: "ms", target: `< ${TARGET_MS}`, met: time < TARGET_MS, note };
    return [{ what: "first paint of the page, empty cache", value: time, ...is }];
  } finally {
    await browser.close();
    await served.stop();
  }
}
