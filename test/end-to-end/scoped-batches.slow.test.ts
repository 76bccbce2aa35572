/**
 * One item of a batch that is not its caller's own is turned away alone, and tells no more than one that is nowhere.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openServer } from "../kits/test-server.ts";

const tokens = [
  { role: "admin", token: "token-of-admin-0123456789" },
  { role: "agent", token: "token-of-site-0123456789", project: "site" },
];

test("an item that needs another's task is answered like one that needs a task that is nowhere", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  const secret = { id: "secret", agentId: "other", project: "other", action: "x" };
  await at.ask("submit", { body: secret }, { token: "token-of-admin-0123456789" });
  const tasks = [
    { id: "fine", action: "x" },
    { id: "ties", action: "x", needs: ["secret"] },
    { id: "nowhere", action: "x", needs: ["absent"] },
    { id: "child", action: "x", parent: "secret" },
    { id: "elsewhere", action: "x", project: "other" },
    { id: "after", action: "x", needs: ["ties"] },
    { id: "by-name", action: "x", needs: { by: "secret" } },
  ];
  const body = { agentId: "ann", tasks };
  const reply = await at.ask("submitBatch", { body }, { token: "token-of-site-0123456789" });
  assert.ok(reply.status < 300, reply.text);
  const errors = reply.json.tasks.map(({ error }) => error);
  assert.deepEqual([reply.json.accepted, errors[0]], [1, undefined]);
  const nowhere = errors[2] ?? "";
  assert.equal(errors[1], nowhere.replace("tasks[2]", "tasks[1]").replace("absent", "secret"));
  assert.equal(errors[3], nowhere.replace("tasks[2].needs", "tasks[3].parent").replace("absent", "secret"));
  assert.match(errors[4] ?? "", /tasks\[4\]\.project is other, and this token speaks for site only/);
  assert.match(errors[5] ?? "", /ties/);
  assert.equal(errors[6], nowhere.replace("tasks[2]", "tasks[6]").replace("absent", "secret"));
});

test("what another submits while an item is looked at is as good as nowhere", async () => {
  const artifactExists = async (): Promise<boolean> => {
    await at.drover.submit({ id: "secret", agentId: "other", project: "other", action: "x" });
    return true;
  };
  await using at = await openServer({ settings: { server: { tokens } }, open: { artifactExists } });
  const spy = { id: "spy", action: "x", needs: { by: "secret" }, inputArtifact: "there" };
  const more = { token: "token-of-site-0123456789" };
  const one = await at.ask("submit", { body: { agentId: "ann", ...spy } }, more);
  assert.match(one.problem.error, /^needs names secret, which no task has/);
  const all = await at.ask(
    "submitBatch",
    { body: { agentId: "ann", tasks: [spy, { id: "fine", action: "x" }] } },
    more,
  );
  assert.match(all.json.tasks[0]?.error ?? "", /^tasks\[0\]\.needs names secret, which no task has/);
  assert.equal(all.json.accepted, 1);
});

test("a task that comes with what it needs, or comes again when that is forgotten, is let in", async () => {
  await using at = await openServer({ settings: { server: { tokens } } });
  const more = { token: "token-of-site-0123456789" };
  const tasks = [
    { id: "second", action: "x", needs: { by: "first" } },
    { id: "first", action: "x" },
  ];
  const batch = { body: { agentId: "ann", tasks } };
  // A bad id spoils its own item alone.
  tasks.push({ id: 7 as never, action: "x", needs: { by: "first" } });
  for (const _ of [1, 2]) assert.equal((await at.ask("submitBatch", batch, more)).json.accepted, 2);
});
