/**
 * Work that flows, asked for wrongly: refused by name in every form there is. A call of the engine, HTTP, a command
 * that submits a child by its own token, and a plan.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { answerOf } from "../../src/worker/exec/answer.ts";
import { createExecHandler } from "../../src/worker/exec/handler.ts";
import { startWorker } from "../../src/worker/index.ts";
import { planDirectory } from "../kits/cli/plan-directory.ts";
import { openServer, type TestServer } from "../kits/test-server.ts";
import { within } from "../kits/waits.ts";

const LIMIT = { timeout: 120_000 };
let at: TestServer;
before(async () => {
  at = await openServer();
});
after(() => at.server.close());

const many = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));

type Row = {
  readonly name: string;
  readonly fields: object;
  readonly field: RegExp;
  /** The same in a plan, where a plan has it; and what its refusal says, with the line. */
  readonly plan?: readonly [text: string, says: RegExp];
};
const rows: readonly Row[] = [
  { name: "labels by the thousand", fields: { labels: many(1000) }, field: /^labels/ },
  { name: "a label too many", fields: { labels: many(33) }, field: /^labels/ },
  {
    name: "a loop without end",
    fields: { loop: { until: "npm test" } },
    field: /^loop\.max$/,
    plan: ["{ run: a, loop: { until: npm test } }", /plan\.yml:2:\d+.*max/s],
  },
  {
    name: "a loop of more rounds than any",
    fields: { loop: { max: 1001 } },
    field: /^loop\.max$/,
    plan: ["{ run: a, loop: { max: 1001 } }", /plan\.yml:2:\d+.*max/s],
  },
  {
    name: "an output outside its directory",
    fields: { outputs: ["ok.md", "../secret"] },
    field: /^outputs\[1\]$/,
    plan: ["{ run: a, outputs: [ok.md, ../secret] }", /plan\.yml:2:\d+.*outputs/s],
  },
  {
    name: "an output of the whole machine",
    fields: { outputs: ["/etc/**"] },
    field: /^outputs\[0\]$/,
    plan: ["{ run: a, outputs: /etc/** }", /plan\.yml:2:\d+.*outputs/s],
  },
  {
    name: "outputs by the hundred",
    fields: { outputs: Array(65).fill("a") },
    field: /^outputs/,
    plan: [`{ run: a, outputs: [${Array(65).fill("a")}] }`, /plan\.yml:2:\d+.*outputs/s],
  },
  {
    name: "an approval without time",
    fields: { approval: { timeoutMs: 0 } },
    field: /^approval/,
    plan: ["{ run: a, approval: { timeout: 0s } }", /plan\.yml:2:\d+.*timeout/s],
  },
  {
    name: "a need that is none",
    fields: { needs: { impl: "no-such-task" } },
    field: /^needs/,
    plan: [`{ run: "echo \${{ needs.impl.state }}" }`, /plan\.yml:2:\d+.*impl is not among its needs/s],
  },
];

for (const { name, fields, field } of rows)
  test(`${name} is refused by the engine and over HTTP, by its field`, async () => {
    const body = { agentId: "ann", action: "exec", ...fields };
    const before = at.drover.state.seq;
    await assert.rejects(at.drover.submit(body), ({ details }: { details: { field?: string } }) =>
      field.test(details.field ?? ""),
    );
    const batch = await at.drover.submitBatch({ agentId: "ann", tasks: [{ action: "exec", ...fields }] }).then(
      ({ rejected }) => rejected,
      () => 1,
    );
    assert.equal(batch, 1);
    const { status, problem } = await at.call("POST", "/tasks", { body });
    assert.deepEqual([status, field.test(String(problem.details?.field))], [400, true], JSON.stringify(problem));
    assert.equal(at.drover.state.seq, before, "nothing of it is in the log");
  });

for (const { name, plan } of rows)
  if (plan !== undefined)
    test(`${name} in a plan is refused with its line, and nothing runs`, LIMIT, async () => {
      using place = planDirectory(`tasks:\n  t: ${plan[0]}\n  other: echo x >> ran`);
      const { code, err } = await place.run();
      assert.equal(code, 2, err);
      assert.match(err, plan[1]);
      assert.deepEqual(place.ran(), []);
    });

test("a command that submits such children by its own token is refused each, and goes on", LIMIT, async () => {
  const data = mkdtempSync(join(tmpdir(), "drover-bad-"));
  const bodies = rows.map(({ fields }) => JSON.stringify({ action: "leaf", ...fields }));
  for (const [index, body] of bodies.entries()) writeFileSync(join(data, `${index}.json`), body);
  const command =
    `for body in ${bodies.map((_, index) => `${index}.json`).join(" ")}; do ` +
    'curl -s -o answer -w "%{http_code} " -H "authorization: Bearer $DROVER_TOKEN" ' +
    '-H "content-type: application/json" --data-binary "@$body" "$DROVER_URL/tasks" >> codes; done';
  const exec = createExecHandler({ command, shell: true, data, workerId: "p", url: at.url, cwd: data });
  const worker = await startWorker({ url: at.url, id: "p" }, async (task, context) =>
    answerOf(await exec.run(task, context)),
  );
  try {
    await at.drover.submit({ id: "parent", agentId: "ann", action: "exec" });
    const { state, error } = await within("its end", at.drover.wait("parent"));
    assert.equal(state, "done", error);
    assert.equal(readFileSync(join(data, "codes"), "utf8").trim(), rows.map(() => "400").join(" "));
    assert.equal([...at.drover.state.tasks.values()].filter(({ links }) => links?.parent === "parent").length, 0);
  } finally {
    await worker.close();
    await exec.close();
    rmSync(data, { recursive: true, force: true });
  }
});
