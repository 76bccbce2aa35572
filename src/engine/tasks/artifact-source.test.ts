/**
 * Input artifacts as files: under a root, and no way to ask about files elsewhere.
 */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { after, before, test } from "node:test";
import type { DroverError } from "../base/drover-error.ts";
import { type Drover, openDrover } from "../drover.ts";

let home = "";
let root = "";
before(async () => {
  home = await mkdtemp(join(tmpdir(), "drover-artifact-"));
  root = join(home, "shared");
  await mkdir(join(root, "sub"), { recursive: true });
  await writeFile(join(root, "sub", "here.md"), "");
  await writeFile(join(home, "secret.txt"), "");
  await symlink(join(home, "secret.txt"), join(root, "to-secret"));
  await symlink(home, join(root, "to-home"));
  await symlink("sub", join(root, "to-sub"));
});
after(() => rm(home, { recursive: true }));

const open = (more: object = {}): Promise<Drover> => openDrover({ config: { artifacts: { root, ...more } } });
let count = 0;
const submit = async (drover: Drover, inputArtifact: string): Promise<string> =>
  drover.submit({ id: `t${++count}`, agentId: "ann", action: "x", inputArtifact }).then(
    ({ state }) => state,
    ({ code, details }: DroverError) => `${code} ${details.field}`,
  );

const rows: readonly (readonly [artifact: () => string, seen: string, anywhere: string])[] = [
  [() => "sub/here.md", "queued", "queued"],
  [() => "./sub/../sub/here.md", "queued", "queued"],
  [() => "to-sub/here.md", "queued", "queued"],
  [() => ".", "queued", "queued"],
  [() => "sub/not-here.md", "waiting", "waiting"],
  [() => "..here", "waiting", "waiting"],
  [() => "../secret.txt", "bad_request inputArtifact", "queued"],
  [() => "../no-secret.txt", "bad_request inputArtifact", "waiting"],
  [() => "sub/../../secret.txt", "bad_request inputArtifact", "queued"],
  [() => "..", "bad_request inputArtifact", "queued"],
  [() => join(home, "secret.txt"), "bad_request inputArtifact", "queued"],
  [() => join(root, "sub", "here.md"), "bad_request inputArtifact", "queued"],
  [() => "to-secret", "waiting", "queued"],
  [() => "to-home/secret.txt", "waiting", "queued"],
  [() => "to-home/no-secret.txt", "waiting", "waiting"],
];
test("an artifact is a file under the root, and nothing is told of files elsewhere unless allowed", async () => {
  await using drover = await open();
  await using lax = await open({ anywhere: true });
  for (const [artifact, seen, anywhere] of rows) {
    const name = relative(home, artifact()) || artifact();
    assert.deepEqual([await submit(drover, artifact()), await submit(lax, artifact())], [seen, anywhere], name);
  }
});

test("without a root it is the working directory", async () => {
  await using drover = await openDrover();
  assert.equal(await submit(drover, "package.json"), "queued");
  assert.equal(await submit(drover, join(process.cwd(), "package.json")), "bad_request inputArtifact");
});

test("one that appears later is found, but not one that leads out", async () => {
  await using drover = await open();
  const batch = ["sub/later.md", "later-link"].map((inputArtifact) => ({
    id: inputArtifact,
    action: "x",
    inputArtifact,
  }));
  await drover.submitBatch({ agentId: "ann", tasks: batch });
  await writeFile(join(root, "sub", "later.md"), "");
  await symlink(join(home, "secret.txt"), join(root, "later-link"));
  await drover.lookForArtifacts();
  const states = await Promise.all(batch.map(async ({ id }) => (await drover.task(id)).state));
  assert.deepEqual(states, ["queued", "waiting"]);
});

test("an item of a batch and the task of a schedule are refused by name as well", async () => {
  await using drover = await open();
  const { tasks } = await drover.submitBatch({
    agentId: "ann",
    tasks: [{ action: "x", inputArtifact: "/etc/passwd" }],
  });
  assert.match(tasks[0]?.error ?? "", /^tasks\[0\]\.inputArtifact is "\/etc\/passwd", and must be a relative path/);
  const task = { agentId: "ann", action: "x", inputArtifact: "../secret.txt" };
  const { details } = await drover.schedules.put("s", { cron: "@daily", task }).then(
    () => assert.fail("it was taken"),
    (error: DroverError) => error,
  );
  assert.equal(details.field, "task.inputArtifact");
});

test("why names the full path, and says of one that is no longer allowed that nobody looks for it", async () => {
  await using drover = await open({ anywhere: true });
  await drover.submit({ id: "in", agentId: "ann", action: "x", inputArtifact: "sub/no.md" });
  await drover.submit({ id: "out", agentId: "ann", action: "x", inputArtifact: join(home, "no.md") });
  await drover.reload({ artifacts: { root } });
  const gateOf = async (id: string) => (await drover.why(id)).conditions.find(({ code }) => code === "artifact");
  const path = join(root, "sub", "no.md");
  assert.equal(
    (await gateOf("in"))?.detail,
    `its input artifact sub/no.md does not exist yet; it is looked for as ${path}`,
  );
  assert.equal((await gateOf("in"))?.numbers.path, path);
  assert.match((await gateOf("out"))?.detail ?? "", /is not looked for: it must be a relative path/);
  await writeFile(join(home, "no.md"), "");
  await drover.lookForArtifacts();
  assert.equal((await drover.task("out")).state, "waiting");
});
