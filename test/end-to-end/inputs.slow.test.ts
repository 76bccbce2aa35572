/**
 * Results along needs over HTTP: a pull worker, a push worker and a command each see what the one before answered, and
 * a worker that finds nothing to do skips its task.
 */
import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { createExecHandler } from "../../src/worker/exec/handler.ts";
import { startWorker, startWorkerWithOutcomes, TaskSkip } from "../../src/worker/index.ts";
import { temporaryHome } from "../kits/faults/exec-world.ts";
import { answering } from "../kits/loopback.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";

async function ended(at: TestServer, id: string): Promise<unknown> {
  const { json } = await at.ask("wait", { params: { id }, query: { timeoutMs: 30_000 } });
  return [json.state, json.result ?? json.error];
}

test("a pull worker, a push worker and a command hand their results on", { timeout: 60_000 }, async (t) => {
  await using at = await openServer();
  const { url } = at;
  const home = temporaryHome(t);
  type Plan = { readonly plan: { readonly result: { readonly path: string } } };
  await using _pull = await startWorker<object, unknown, Plan>(
    { url, id: "pull", actions: ["plan", "end"] },
    ({ action, inputs }) => (action === "plan" ? { path: "a b.md" } : Object.keys(inputs ?? {})),
  );
  const pushed: unknown[] = [];
  const push = await answering(async (request, response) => {
    if (request.method === "GET") return void response.writeHead(404).end();
    const body = JSON.parse(await text(request)) as { inputs: Plan };
    pushed.push(body.inputs);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ read: body.inputs.plan.result.path }));
  });
  t.after(push.close);
  await at.ask("joinWorker", { body: { id: "push", endpoint: push.url, actions: ["spec"] } });
  const script = `cp "$DROVER_INPUTS_FILE" "$DROVER_RESULT_FILE"`;
  await using exec = createExecHandler({ data: `${home}/data`, cwd: home, command: ["/bin/sh", "-c", script] });
  await using _exec = await startWorkerWithOutcomes({ url, id: "exec", actions: ["code"] }, exec.run);
  const submit = (id: string, action: string, needs: Readonly<Record<string, string>> = {}): Promise<unknown> =>
    at.ask("submit", { body: { id, agentId: "ann", action, needs } });
  await submit("p", "plan");
  await submit("s", "spec", { plan: "p" });
  await submit("c", "code", { spec: "s", plan: "p" });
  await submit("e", "end", { code: "c" });
  const plan = { taskId: "p", state: "done", result: { path: "a b.md" } };
  const spec = { taskId: "s", state: "done", result: { read: "a b.md" } };
  assert.deepEqual(await ended(at, "e"), ["done", ["code"]]);
  assert.deepEqual(pushed, [{ plan }]);
  assert.deepEqual(await ended(at, "c"), ["done", { spec, plan }]);
});

test("a worker that finds nothing to do skips its task, over the wire too", { timeout: 60_000 }, async () => {
  await using at = await openServer();
  await using _worker = await startWorker({ url: at.url, id: "w" }, () => {
    throw new TaskSkip("nothing to do");
  });
  await at.ask("submit", { body: { id: "t", agentId: "ann", action: "x" } });
  await at.ask("submit", { body: { id: "next", agentId: "ann", action: "x", needs: ["t"] } });
  assert.deepEqual(await ended(at, "t"), ["skipped", "nothing to do"]);
  assert.deepEqual(await ended(at, "next"), ["skipped", "its dependency t is skipped"]);
});
