/**
 * The pictures in docs/images: every view of the page and a frame of `drover top`, of the demo fleet, by day and night.
 *
 *     npm run pictures                 takes three minutes; look at each before you commit it
 *     npm run pictures -- overview     only these
 *
 * The demo runs in a process of its own until its lanes and charts are full. It draws its chances from a fixed seed,
 * but time is real, so two runs differ in details. The view of a cluster is taken of three nodes over a real etcd;
 * where none is installed, its picture stays as it is.
 */
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as rest } from "node:timers/promises";
import { type Browser, chromium } from "playwright-core";
import { createClient } from "../src/client/index.ts";
import { startNodes } from "../test/kits/cluster-nodes.ts";
import { etcdMissing, startEtcd } from "../test/kits/etcd.ts";
import { terminalPage } from "./terminal-picture.ts";

const ROOT = join(import.meta.dirname, "..");
const PLACE = join(ROOT, "docs/images");
const FILLED_MS = 90_000;
const SETTLED_MS = 2500;
const TASKS_OF_CLUSTER = 40;
const VIEWPORT = { width: 1240, height: 780 };

type Page = { readonly tasks: readonly { readonly taskId: string }[] };

const wanted = process.argv.slice(2);
const isWanted = (name: string): boolean => wanted.length === 0 || wanted.includes(name);

type View = readonly [name: string, address: string];

/** What is shown of the demo, by the name of its picture. */
async function viewsOf(url: string): Promise<readonly View[]> {
  const failed = (await (await fetch(`${url}/tasks?state=failed,done&q=checkout&limit=1`)).json()) as Page;
  const views: readonly View[] = [
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
  return views.map(([name, path]) => [name, `${url}${path}`]);
}

const SCHEMES = ["light", "dark"] as const;

async function take(browser: Browser, views: readonly View[]): Promise<void> {
  for (const colorScheme of SCHEMES) {
    const context = await browser.newContext({ viewport: VIEWPORT, colorScheme, reducedMotion: "reduce" });
    const page = await context.newPage();
    for (const [name, address] of views.filter(([name]) => isWanted(name))) {
      await page.goto(address);
      await rest(SETTLED_MS);
      await page.screenshot({ path: join(PLACE, `${name}-${colorScheme}.png`) });
      console.log(`${name}-${colorScheme}.png`);
    }
    await context.close();
  }
}

async function takeTop(browser: Browser, url: string): Promise<void> {
  const terminal = await browser.newPage({ viewport: VIEWPORT });
  for (const scheme of SCHEMES) {
    await terminal.setContent(await terminalPage(url, scheme));
    await terminal.locator("pre").screenshot({ path: join(PLACE, `top-${scheme}.png`) });
    console.log(`top-${scheme}.png`);
  }
  await terminal.close();
}

async function takeCluster(browser: Browser): Promise<void> {
  if (etcdMissing !== false) return console.log(`no picture of a cluster: ${etcdMissing}`);
  await using etcd = await startEtcd();
  await using cluster = await startNodes({ log: etcd.url("drover"), ids: ["oslo", "paris", "rome"] });
  const client = createClient({ url: (await cluster.leader()).url() });
  const tasks = Array.from({ length: TASKS_OF_CLUSTER }, (_, index) => ({
    id: `t${index}`,
    action: "wait-for-worker",
  }));
  await client.submitBatch({ agentId: "ann", tasks });
  await take(browser, [["cluster", `${cluster.nodes[0]?.url()}/ui/cluster`]]);
}

async function takeDemo(browser: Browser): Promise<void> {
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
    await take(browser, await viewsOf(url));
    if (isWanted("top")) await takeTop(browser, url);
  } finally {
    demo.kill();
  }
}

async function main(): Promise<void> {
  mkdirSync(PLACE, { recursive: true });
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu"],
  });
  if (isWanted("cluster")) await takeCluster(browser);
  if (wanted.some((name) => name !== "cluster") || wanted.length === 0) await takeDemo(browser);
  await browser.close();
}

await main();
