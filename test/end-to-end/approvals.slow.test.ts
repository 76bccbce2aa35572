/**
 * Approvals over HTTP: who may answer, what is answered, and who is called.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { answerOf } from "../../src/worker/exec/answer.ts";
import { createExecHandler } from "../../src/worker/exec/handler.ts";
import { startWorker } from "../../src/worker/index.ts";
import { temporaryHome } from "../kits/faults/exec-world.ts";
import { openServer } from "../kits/test-server.ts";
import { until, within } from "../kits/waits.ts";

const tokenOf = (name: string): string => `token-of-${name}-0123456789`;
const tokens = [
  { role: "admin", token: tokenOf("admin") },
  { role: "agent", token: tokenOf("ann"), agentId: "ann" },
  { role: "agent", token: tokenOf("site"), project: "site" },
  { role: "viewer", token: tokenOf("viewer") },
];

test("an admin and a project may approve, an agent may not, and the callback tells what is asked", async () => {
  const heard: { event: unknown; body: Record<string, unknown> }[] = [];
  const called = Promise.withResolvers<void>();
  const hook = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      heard.push({ event: request.headers["x-drover-event"], body: JSON.parse(Buffer.concat(chunks).toString()) });
      response.end();
      called.resolve();
    });
  });
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
  const callbackUrl = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`;
  await using at = await openServer({ settings: { server: { tokens }, webhooks: { allowPrivate: true } } });
  const as = (name: string): { token: string } => ({ token: tokenOf(name) });
  const submit = (id: string, more: object = {}) =>
    at.ask(
      "submit",
      { body: { id, agentId: "ann", action: "ship", approval: { question: "ship it?" }, ...more } },
      as("admin"),
    );
  assert.equal((await submit("a", { callbackUrl })).json.state, "parked");
  await submit("b", { project: "site" });
  const approve = (id: string, name: string, body = {}) => at.ask("approve", { params: { id }, body }, as(name));
  assert.match((await approve("a", "ann")).text, /agent ann, which may not approve/);
  assert.deepEqual([(await approve("a", "viewer")).status, (await approve("a", "site")).status], [403, 404]);
  assert.equal((await approve("b", "site", { note: "yes" })).json.state, "queued");
  await called.promise;
  assert.equal(heard[0]?.event, "task.approval");
  assert.match(JSON.stringify(heard[0]?.body), /"state":"parked".*ship it\?|ship it\?.*"state":"parked"/);
  assert.equal((await approve("a", "admin", { deny: true, note: "no" })).status, 202);
  const again = await approve("a", "admin");
  assert.equal(again.status, 409);
  assert.match(again.text, /first answer counts/);
  assert.equal((await at.ask("task", { params: { id: "a" } }, as("admin"))).json.error, "denied: no");
  assert.equal((await approve("nobody-knows-it", "admin")).status, 404);
  assert.equal((await approve("b", "admin", { note: "x".repeat(1 << 20) })).status, 413);
  assert.equal((await approve("b", "admin", { note: "x".repeat(4097) })).status, 400);
  hook.close();
});

test("a command that asked goes on in its worktree and its session when it is approved, by its worker", {
  timeout: 120_000,
}, async (t) => {
  const home = temporaryHome(t);
  const [repo, data] = [join(home, "repo"), join(home, "data")];
  const git = (...words: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { encoding: "utf8" });
  git("init", "-q", repo);
  git("-C", repo, "commit", "-q", "--allow-empty", "-m", "first");
  const command = `echo "$DROVER_ATTEMPT $PWD $DROVER_SESSION_ID" >> seen.txt
if [ "$DROVER_ATTEMPT" = 1 ]; then
  echo '{"type":"system","session_id":"s-1"}'
  echo '{"question":"ship it?"}' > "$DROVER_RESULT_FILE"; exit 76
fi
cp "$DROVER_TASK_FILE" ${join(home, "task.json")}; cp seen.txt ${join(home, "seen.txt")}`;
  await using at = await openServer();
  const given = { command, shell: true, data, workerId: "p", url: at.url, cwd: repo };
  const exec = createExecHandler({ ...given, isolation: "worktree" });
  const worker = await startWorker({ url: at.url, id: "p" }, async (task, context) =>
    answerOf(await exec.run(task, context)),
  );
  await using _ = {
    async [Symbol.asyncDispose]() {
      await worker.close();
      await exec.close();
    },
  };
  await at.drover.submit({ id: "t", agentId: "ann", action: "x" });
  await until("it asks", async () => (await at.drover.task("t")).state === "parked");
  assert.equal(at.drover.state.fleet.byId.get("p" as never)?.attempts.size, 0, "its slot is free");
  assert.equal(git("-C", repo, "worktree", "list").trim().split("\n").length, 2, "its tree waits for it");
  await at.drover.approve("t", { note: "yes" });
  const { state, error, attempt } = await within("its end", at.drover.wait("t"));
  assert.deepEqual([state, attempt], ["done", 2], error);
  const [first = "", second = ""] = readFileSync(join(home, "seen.txt"), "utf8").split("\n");
  const [, tree = ""] = first.split(" ");
  assert.deepEqual([first, second], [`1 ${tree} `, `2 ${tree} s-1`]);
  const { approval } = JSON.parse(readFileSync(join(home, "task.json"), "utf8"));
  assert.deepEqual([approval.question, approval.note], ["ship it?", "yes"]);
});
