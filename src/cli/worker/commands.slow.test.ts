/**
 * What the tasks of a plan bring, run by the local worker of a server and by `drover worker --commands` over the wire:
 * the same tasks, the same outcomes.
 */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { describe, test } from "node:test";
import { emptyDirectory, type Served, served } from "../../../test/kits/cli/served.ts";
import { type TestTerminal, testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { createRepo, git } from "../../../test/kits/faults/repository.ts";
import { until } from "../../../test/kits/waits.ts";
import { type Client, createClient } from "../../client/index.ts";
import type { TaskBody } from "../../protocol/index.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

const LIMIT = { timeout: 120_000 };
const DROVER = `${process.execPath} ${resolve(import.meta.dirname, "../../../bin/drover.js")}`;

type World = AsyncDisposable & {
  readonly server: Served;
  readonly client: Client;
  /** Of the worker. */
  readonly terminal: TestTerminal;
  /** Submits a task that brings this work, as a plan's task would be; resolves with how it ended. */
  run(task: string, work: object, more?: Partial<TaskBody>): Promise<Ended>;
  submit(task: string, work: object, more?: Partial<TaskBody>): Promise<unknown>;
};
type Ended = Awaited<ReturnType<Client["wait"]>> & { readonly result: { readonly output?: string } };
type Given = { readonly directory?: string; readonly env?: Record<string, string>; readonly config?: string };
const line = (text: string, more: object = {}): object => ({ command: { kind: "line", line: text }, ...more });

async function worldOf(isPull: boolean, { directory = emptyDirectory(), env = {}, config }: Given): Promise<World> {
  const own = emptyDirectory();
  const folder = isPull ? own : directory;
  if (config !== undefined) writeFileSync(join(folder, "drover.yml"), config);
  const server = await served(isPull ? ["--no-worker"] : [], { directory: folder, env });
  const client = createClient({ url: server.url });
  const terminal = isPull
    ? testTerminal({ cwd: directory, env: { ...server.terminalFor().env, ...env } })
    : server.terminal;
  const words = ["worker", "--commands", "--id", "w", "--slots", "4"];
  const ended = isPull ? runCommandLine(words, terminal, VERBS) : Promise.resolve(0);
  if (isPull) await Promise.race([terminal.saw("w has joined"), ended]);
  const submit: World["submit"] = (task, work, { params, ...more } = {}) =>
    client.submit({
      id: task,
      agentId: "ann",
      action: "exec",
      params: { plan: "p", task, work, ...params },
      ...more,
    } as TaskBody);
  return {
    server,
    client,
    terminal,
    submit,
    async run(task, work, more) {
      await submit(task, work, more);
      return (await client.wait(task)) as Ended;
    },
    async [Symbol.asyncDispose]() {
      if (isPull) for (let times = 0; times < 2; times++) terminal.signal("SIGTERM");
      await ended;
      await server[Symbol.asyncDispose]();
    },
  };
}

for (const isPull of [false, true])
  describe(isPull ? "drover worker --commands" : "the local worker of serve", LIMIT, () => {
    const world = (given: Given = {}): Promise<World> => worldOf(isPull, given);

    test("runs lines and words, with their environment, input and directory", async () => {
      const directory = emptyDirectory();
      mkdirSync(join(directory, "sub"));
      await using it = await world({ directory, env: { KEY_A: "a", KEY_B: "b", OTHER: "c", DROVER_X: "x" } });
      const said = 'echo "$MINE $KEY_A $KEY_B.$OTHER.$DROVER_X $(basename "$PWD") $(cat)"';
      const full = { env: { MINE: "m" }, passEnv: ["KEY_*", "DROVER_*"], cwd: "sub", input: "in" };
      const done = await it.run("line", line(said, full));
      assert.deepEqual([done.state, done.result.output], ["done", "m a b.. sub in"]);
      const words = await it.run("words", { command: { kind: "words", words: ["echo", "a  b", "$HOME"] } });
      assert.equal(words.result.output, "a  b $HOME");
      assert.deepEqual((await it.client.task("line")).usage ?? null, null);
      const nothing = await it.run("all", { command: { kind: "nothing" } }, { needs: ["line", "words"] });
      assert.equal(nothing.state, "done");
      const stopped = await it.run("lines", line("false\necho on"), { maxAttempts: 1 });
      assert.equal(stopped.state, "failed");
    });

    test("refuses work that makes no sense, for good and in words", async () => {
      await using it = await world();
      const rows: [work: object, words: RegExp][] = [
        [line("true", { cwdd: "x" }), /params\.work\.cwdd is not a known field \(did you mean cwd\?\)/],
        [line("true", { env: { "A B": "1" } }), /is neither NAME nor NAME=value|must be a name/],
        [line(`echo \${{ needs.a. }}`), /./],
        [line(`echo \${{ needs.a.result.x }}`), /needs\.a/],
        [line("true", { cwd: "gone" }), /the working directory .*gone does not exist/],
      ];
      for (const [index, [work, words]] of rows.entries()) {
        const { state, error, attempt } = await it.run(`t${index}`, work);
        assert.deepEqual([state, attempt], ["failed", 1]);
        assert.match(error ?? "", words);
      }
    });

    test("fills in what its needs left, and is skipped where its condition is false", async () => {
      await using it = await world();
      await it.run("impl", line(`echo '{"path": "a b", "ok": false}'`));
      const needs = { impl: "impl" };
      const said = await it.run("say", line(`printf '%s' \${{ needs.impl.result.path }} | tr ' ' _`), {
        needs,
      } as never);
      assert.equal(said.result.output, "a_b");
      const skipped = await it.run("skip", line("touch ran", { if: "needs.impl.result.ok" }), { needs } as never);
      assert.deepEqual([skipped.state, skipped.error], ["skipped", "if: needs.impl.result.ok"]);
      const wanted = await it.run("want", line("true", { if: "!needs.impl.result.ok" }), { needs } as never);
      assert.equal(wanted.state, "done");
      const missing = await it.run("miss", line(`echo \${{ needs.impl.result.gone }}`), { needs } as never);
      assert.deepEqual([missing.state, missing.attempt], ["failed", 1]);
      assert.match(missing.error ?? "", /needs\.impl\.result\.gone/);
    });

    test("starts an agent with its prompt, model and session, and its usage counts", async () => {
      const directory = emptyDirectory();
      const bin = emptyDirectory();
      const script = `#!/bin/sh
echo "$* / $(cat)" >> ${directory}/calls
printf '%s\\n' '{"type":"system","subtype":"init","session_id":"s-1"}'
printf '%s\\n' '{"type":"result","subtype":"success","result":"fine","session_id":"s-1",
"usage":{"input_tokens":3,"output_tokens":4}}' | tr -d '\\n'; echo
`;
      writeFileSync(join(bin, "claude"), script);
      chmodSync(join(bin, "claude"), 0o755);
      await using it = await world({ directory, env: { PATH: bin + delimiter + process.env.PATH } });
      await it.run("impl", line(`echo '{"what": "the page"}'`));
      const command = {
        kind: "agent",
        preset: "claude",
        prompt: `write \${{ needs.impl.result.what }}`,
        model: "opus-5",
        args: ["--x"],
      };
      const work = { command, until: 'mkdir seen && echo "not yet" && exit 1 || exit 0' };
      const more = { needs: { impl: "impl" }, loop: { max: 3 } } as never;
      const { state, usage, rounds } = (await it.run("agent", work, more)) as Ended & { rounds?: unknown[] };
      assert.equal(state, "done");
      assert.equal(rounds?.length, 2);
      assert.deepEqual([usage?.inputTokens, usage?.outputTokens], [6, 8]);
      const calls = readFileSync(join(directory, "calls"), "utf8");
      const [first = "", ...rest] = calls.split("\n");
      assert.match(first, /--model opus-5 --x \/ write the page$/);
      assert.match(rest.join("\n"), /--resume s-1 --x \/ write the page\n\nThis is round 2 of at most 3.*\n\nnot yet/s);
    });

    test("keeps the files it leaves, and lays them for the next", async () => {
      await using it = await world();
      const done = await it.run("spec", line("mkdir -p out; echo spec > out/a.md"), { outputs: ["out/**"] });
      assert.deepEqual(
        done.files?.map(({ path }) => path),
        ["out/a.md"],
      );
      const read = await it.run("code", line("cat $DROVER_INPUTS_DIR/spec/out/a.md"), {
        needs: { spec: "spec" },
      } as never);
      assert.equal(read.result.output, "spec");
    });

    test("gives tasks worktrees that begin where others left off, on branches by the names of the plan", async (t) => {
      const { repo } = createRepo(t);
      writeFileSync(join(repo, ".git", "info", "exclude"), ".drover\ndrover.yml\n");
      await using it = await world({ directory: repo, env: { HOME: repo } });
      const tree = (more: object = {}): object => ({ worktree: { base: "main", ...more } });
      await it.run("a", line("echo a > fa", tree()));
      await it.run("b", line('[ "$DROVER_ATTEMPT" = 2 ] && echo b > fb || { echo 1 > fb; exit 1; }', tree()), {
        maxAttempts: 2,
      });
      const from = await it.run("c", line("cat fa; echo c > fc", tree({ from: "a" })), { needs: { a: "a" } } as never);
      assert.equal(from.result.output, "a");
      const needs = { b: "b", c: "c" };
      const merged = await it.run("d", line("cat fa fb fc | tr '\\n' ' '", tree({ merge: ["c", "b"] })), {
        needs,
      } as never);
      assert.equal(merged.result.output, "a b c");
      const branches = git(repo, "branch", "--list", "drover/*", "--format=%(refname:short)").split("\n");
      assert.deepEqual(branches, ["drover/p/a", "drover/p/b", "drover/p/b-2", "drover/p/c", "drover/p/d"]);
    });

    test("goes on in the same worktree after each round, and after a person has approved", async (t) => {
      const { repo } = createRepo(t);
      writeFileSync(join(repo, ".git", "info", "exclude"), ".drover\ndrover.yml\n");
      await using it = await world({ directory: repo, env: { HOME: repo } });
      const tree = { worktree: { base: "main" } };
      const round = line('echo "$DROVER_ROUND" >> rounds; pwd', { ...tree, until: '[ "$(wc -l < rounds)" -ge 3 ]' });
      const looped = (await it.run("loop", round, { loop: { max: 5 } })) as Ended & { rounds?: unknown[] };
      assert.deepEqual([looped.state, looped.rounds?.length], ["done", 3]);
      const asks = line('if [ -f asked ]; then cat asked; pwd; else pwd > asked; echo "may I?"; exit 76; fi', tree);
      await it.submit("ask", asks);
      await until("it asks", async () => (await it.client.task("ask")).state === "parked");
      await it.client.approve("ask", { note: "yes" });
      const done = (await it.client.wait("ask")) as Ended;
      assert.equal(done.state, "done");
      const [before, now] = (done.result.output ?? "").split("\n");
      assert.equal(now, before);
      const branches = git(repo, "branch", "--list", "drover/*", "--format=%(refname:short)").split("\n");
      assert.deepEqual(branches, ["drover/p/ask", "drover/p/loop"]);
    });

    test("goes through the gate of its provider, which a 429 shuts; that costs no attempt", async () => {
      await using it = await world({ config: "gates: { api: { maxConcurrent: 1 } }\n" });
      const again = `if mkdir tried; then echo '{"retryAfterMs": 1, "status": 429}'; exit 75; fi`;
      const { state, attempt } = await it.run("call", line(again), { provider: "api", maxAttempts: 1 });
      assert.deepEqual([state, attempt], ["done", 2]);
      const { out } = await it.server.drover(["events", "--json"]);
      const count = (kind: string): number => out.split(`"payload":{"kind":"${kind}"`).length - 1;
      assert.deepEqual([count("permit-granted"), count("permit-settled"), count("attempt-failed")], [2, 2, 0]);
      assert.equal(count("gate-throttled"), 1, "told with the permit, and not once more with the attempt");
      assert.equal((await it.client.gate("api")).stats.rateLimited, 1);
    });

    test("stops what writes nothing for too long", async () => {
      await using it = await world();
      const { state, error } = await it.run("still", line("sleep 60"), {
        maxAttempts: 1,
        params: { idleTimeoutMs: 200 },
      });
      assert.equal(state, "failed");
      assert.match(error ?? "", /200 ms|nothing/);
    });

    test("keeps tasks that want a worktree queued at the limit, names the trees, and runs the others", async (t) => {
      const { repo } = createRepo(t);
      writeFileSync(join(repo, ".git", "info", "exclude"), ".drover\ndrover.yml\n");
      const given = { directory: repo, env: { HOME: repo }, config: "workers: { maxWorktrees: 1 }\n" };
      await using it = await world(given);
      const tree = { worktree: { base: "main" } };
      assert.equal((await it.run("one", line("echo > made", tree))).state, "done");
      await it.terminal.saw("no task with a worktree is taken: 1 worktree exists, and at most 1 may: ");
      await it.submit("two", line("echo > made", tree));
      assert.equal((await it.run("three", line("true"))).state, "done");
      const { state, attempt = 0 } = await it.client.task("two");
      assert.deepEqual([state, attempt], ["queued", 0]);
      const why = (await it.server.drover(["why", "two"])).out;
      assert.match(
        why,
        /without room for a worktree.*1 worktree exists, and at most 1 may: \S+worktrees\/p\.one; merge/s,
      );
      git(repo, "worktree", "remove", "--force", join(repo, ".drover", "worker", "worktrees", "p.one"));
      assert.equal((await it.client.wait("two")).state, "done");
    });

    test("keeps the one tree there may be for the task that is parked in it", async (t) => {
      const { repo } = createRepo(t);
      writeFileSync(join(repo, ".git", "info", "exclude"), ".drover\ndrover.yml\n");
      const placement = isPull ? "placement: { affinityWait: 0 }, " : "";
      const config = `workers: { maxWorktrees: 1 }\nscheduler: { ${placement}retry: { maxRequeues: 1 } }\n`;
      await using it = await world({ directory: repo, env: { HOME: repo }, config });
      const tree = { worktree: { base: "main" } };
      await it.submit("asks", line('[ "$DROVER_ATTEMPT" = 2 ] || exit 76', tree));
      await until("it asks", async () => (await it.client.task("asks")).state === "parked");
      await it.submit("other", line("echo > made", tree));
      assert.equal((await it.run("third", line("true"))).state, "done");
      const { state, attempt = 0 } = await it.client.task("other");
      assert.deepEqual([state, attempt], ["queued", 0]);
      assert.match((await it.server.drover(["why", "other"])).out, /1 worktree exists, and at most 1 may: \S+p\.asks;/);
      await it.client.approve("asks");
      const asked = await it.client.wait("asks");
      assert.deepEqual([asked.state, asked.attempt], ["done", 2], asked.error);
      assert.equal((await it.client.wait("other")).state, "done");
    });

    test("lets a task submit children by drover submit, with the token of its attempt", async () => {
      await using it = await world();
      const submit = `${DROVER} submit --command 'echo grown' --id kid --json > /dev/null && echo sent`;
      const parent = await it.run("mother", line(submit));
      assert.deepEqual([parent.state, parent.result.output], ["done", "sent"], parent.error);
      const kid = (await it.client.wait("kid")) as Ended;
      assert.deepEqual([kid.state, kid.result.output, kid.parent], ["done", "grown", "mother"]);
    });
  });

test("what must not run twice has failed when its worker is lost", LIMIT, async () => {
  await using it = await worldOf(true, {});
  await it.submit("once", line("echo up; sleep 60"), { onLoss: "fail" });
  await until("it runs", async () => (await it.client.task("once")).state === "running");
  await it.client.leaveWorker("w");
  const { state, error, attempt } = await it.client.wait("once");
  assert.deepEqual([state, attempt], ["failed", 1]);
  assert.match(error ?? "", /onLoss is fail/);
});

test("outside a repository tasks that want a worktree stay queued, and why says so", LIMIT, async () => {
  const directory = emptyDirectory();
  await using it = await worldOf(true, { directory });
  await it.submit("tree", line("true", { worktree: { base: "HEAD" } }));
  assert.equal((await it.run("here", line("true"))).state, "done");
  assert.equal((await it.client.task("tree")).state, "queued");
  assert.match((await it.server.drover(["why", "tree"])).out, /worker w: \S+ is not inside a git repository/);
  // Of a repository inside it a task may well have a worktree.
  mkdirSync(join(directory, "inner"));
  git(join(directory, "inner"), "init", "--quiet");
  await it.terminal.saw("there is room for a worktree again");
});

test("what tasks say for themselves is no flag beside --commands", async () => {
  for (const flags of [["--exec", "true"], ["--worktree"], ["--allow-until"], ["--action", "build"]]) {
    const terminal = testTerminal({});
    assert.equal(await runCommandLine(["worker", "--commands", ...flags], terminal, VERBS), 2);
    assert.match(terminal.complained(), new RegExp(`^error: ${flags[0]} means nothing with --commands`));
  }
});

test("drover worker joins the server that owns ./.drover, at whatever port", LIMIT, async () => {
  const directory = emptyDirectory();
  await using server = await served(["--no-worker"], { directory });
  const terminal = testTerminal({ cwd: directory });
  const ended = runCommandLine(["worker", "--commands", "--id", "w"], terminal, VERBS);
  await Promise.race([terminal.saw(`w has joined ${server.url}`), ended]);
  for (let times = 0; times < 2; times++) terminal.signal("SIGTERM");
  await ended;
});
