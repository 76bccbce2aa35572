/**
 * The pictures in docs/images: every view of the page and a frame of `drover top`, of the demo fleet, by day and night.
 *
 *     npm run pictures                 takes three minutes; look at each before you commit it
 *     npm run pictures -- overview     only these
 *
 * The demo runs in a process of its own until its lanes and charts are full. It draws its chances from a fixed seed,
 * but time is real, so two runs differ in details.
 */
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as rest } from "node:timers/promises";
import { type Browser, chromium } from "playwright-core";
import { terminalPage } from "./terminal-picture.ts";

const ROOT = join(import.meta.dirname, "..");
const PLACE = join(ROOT, "docs/images");
const FILLED_MS = 90_000;
const SETTLED_MS = 2500;
const VIEWPORT = { width: 1240, height: 780 };

type Page = { readonly tasks: readonly { readonly taskId: string }[] };

/** What is shown, by the name of its picture. */
async function viewsOf(url: string): Promise<readonly (readonly [name: string, path: string])[]> {
  const failed = (await (await fetch(`${url}/tasks?state=failed,done&q=checkout&limit=1`)).json()) as Page;
  return [
    ["overview", "/ui/"],
    ["tasks", "/ui/tasks"],
    ["task", `/ui/tasks/${failed.tasks[0]?.taskId ?? "train-ranker"}`],
    ["why", "/ui/tasks/train-ranker"],
    ["plans", "/ui/plans"],
    ["graph", "/ui/graph/plan/release-2.4"],
    ["timeline", "/ui/timeline?minutes=1"],
    ["projects", "/ui/projects"],
    ["workers", "/ui/workers"],
    ["gates", "/ui/gates"],
    ["gate", "/ui/gates/anthropic%2Fdefault"],
    ["usage", "/ui/usage"],
    ["events", "/ui/events"],
    ["config", "/ui/config"],
  ];
}

async function take(browser: Browser, url: string, colorScheme: "light" | "dark"): Promise<void> {
  const context = await browser.newContext({ viewport: VIEWPORT, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  const wanted = process.argv.slice(2);
  for (const [name, path] of await viewsOf(url)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    await page.goto(`${url}${path}`);
    await rest(SETTLED_MS);
    await page.screenshot({ path: join(PLACE, `${name}-${colorScheme}.png`) });
    console.log(`${name}-${colorScheme}.png`);
  }
  if (wanted.length === 0 || wanted.includes("top")) {
    // A page of its own: the policy of the other lets no style stand in a document.
    const terminal = await context.newPage();
    await terminal.setContent(await terminalPage(url, colorScheme));
    await terminal.locator("pre").screenshot({ path: join(PLACE, `top-${colorScheme}.png`) });
    console.log(`top-${colorScheme}.png`);
  }
  await context.close();
}

async function main(): Promise<void> {
  mkdirSync(PLACE, { recursive: true });
  const demo = spawn(process.execPath, ["src/cli/demo.ts", "--port", "0"], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    let url = "";
    for await (const line of createInterface(demo.stdout)) {
      url = /(http:\/\/\S+)\/ui\//.exec(line)?.[1] ?? "";
      if (url !== "") break;
    }
    console.log(`the demo fills up at ${url}`);
    await rest(FILLED_MS);
    const browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--headless", "--no-sandbox", "--disable-gpu"],
    });
    for (const colorScheme of ["light", "dark"] as const) await take(browser, url, colorScheme);
    await browser.close();
  } finally {
    demo.kill();
  }
}

await main();
