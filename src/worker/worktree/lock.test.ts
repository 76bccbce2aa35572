import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { nextTurn } from "../../std/clock.ts";
import { withRepositoryLock } from "./lock.ts";

const home = mkdtempSync(join(tmpdir(), "drover-lock-"));
after(() => rmSync(home, { recursive: true, force: true }));

test("one at a time, in order, and one that fails holds up nobody", async () => {
  const seen: string[] = [];
  const enter = (name: string) =>
    withRepositoryLock(home, async () => {
      seen.push(`${name} in`);
      for (let count = 0; count < 5; count++) await nextTurn();
      seen.push(`${name} out`);
      if (name === "b") throw new Error("b fails");
      return name;
    });
  const all = await Promise.allSettled(["a", "b", "c"].map(enter));
  assert.deepEqual(
    all.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled"],
  );
  assert.deepEqual(seen, ["a in", "a out", "b in", "b out", "c in", "c out"]);
});

test("another process is waited for, and one that is killed leaves no lock", async (t) => {
  const program = `import { withRepositoryLock } from "${join(import.meta.dirname, "lock.ts")}";
    const hold = () => new Promise(() => { console.log("held"); setInterval(() => {}, 1000); });
    await withRepositoryLock(${JSON.stringify(home)}, hold);`;
  const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", program];
  const holder = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => holder.kill("SIGKILL"));
  await once(holder.stdout, "data");
  const seen: string[] = [];
  const entered = withRepositoryLock(home, async () => {
    seen.push("entered");
  });
  for (let count = 0; count < 50; count++) await nextTurn();
  seen.push("killed");
  holder.kill("SIGKILL");
  await entered;
  assert.deepEqual(seen, ["killed", "entered"]);
});
