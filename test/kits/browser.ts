/**
 * A real browser on a page of a real server: the system's Chromium, driven by playwright-core.
 *
 * The page is built first, once for all files that ask at the same time. Whatever the page writes to its console as an
 * error, whatever it throws and whatever its policy turns away is gathered, and a test that ends asks for it.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";
import { buildPage, isPageFresh } from "../../tools/page.ts";
import { isMissing } from "./optional-tool.ts";
import { until } from "./waits.ts";

const ARGS = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];
export const PHONE = { width: 390, height: 780 };
export const DESKTOP = { width: 1280, height: 800 };
/** Far above what any machine needs. */
const WAIT_MS = 60_000;

/** False if there is a browser to test with; else why not. */
export const noBrowser: string | false = isMissing("chromium", "chromium");

let opened: Promise<Browser> | null = null;
after(async () => (await opened)?.close());

async function openBrowser(): Promise<Browser> {
  if (!isPageFresh()) await buildPage();
  const path = spawnSync("which", ["chromium"], { encoding: "utf8" }).stdout.trim();
  return chromium.launch({ executablePath: path, args: ARGS });
}

export type Opened = AsyncDisposable & {
  readonly page: Page;
  /** What has gone wrong in the page so far. */
  readonly complaints: string[];
};
export type OpenOptions = BrowserContextOptions & {
  readonly token?: string;
  /** Errors that a test provokes, such as a server that is away. */
  readonly expected?: RegExp;
};

/** A tab of its own, at a path of the server. */
export async function openTab(url: string, path: string, options: OpenOptions = {}): Promise<Opened> {
  const { token, expected, ...given } = options;
  opened ??= openBrowser();
  const context = await (await opened).newContext({ viewport: DESKTOP, reducedMotion: "reduce", ...given });
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  const complain = (text: string): void => {
    if (expected?.test(text) !== true) complaints.push(text);
  };
  page.on("console", (message) => {
    if (message.type() === "error") complain(`${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => complain(error.stack ?? error.message));
  if (token !== undefined) await page.addInitScript((given) => sessionStorage.setItem("drover-token", given), token);
  await page.goto(`${url}${path}`);
  return {
    page,
    complaints,
    async [Symbol.asyncDispose]() {
      await context.close();
      assert.deepEqual(complaints, [], "the page has nothing to complain of");
    },
  };
}

export const seeText = (page: Page, text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor();

/** Until there are so many: the parts of a page come when each has been read, in any order. */
export const seeCount = (what: Locator, count: number): Promise<void> =>
  until(`${count} of ${what}`, async () => (await what.count()) === count);

/** Until they read so, one after the other. */
export const seeTexts = (what: Locator, texts: readonly string[]): Promise<void> =>
  until(`${texts.join(", ")} in ${what}`, async () => {
    const seen = await what.allTextContents();
    return isDeepStrictEqual(
      seen.map((text) => text.trim()),
      texts,
    );
  });

/** By how many pixels a page is wider than its window. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
