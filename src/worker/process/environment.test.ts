import assert from "node:assert/strict";
import { test } from "node:test";
import { readAddition } from "../../plan/work/index.ts";
import { childEnvironment } from "./environment.ts";

const facts = {
  ...{ runId: "run-1", taskId: "t1", attempt: 2, taskFile: "/r/task.json", resultFile: "/r/result.json" },
  ...{ workspace: "/w", temp: "/tmp/drover-x" },
};
const inherited = {
  ...{
    PATH: "/bin",
    HOME: "/home/a",
    LC_ALL: "C",
    LC_TIME: "de",
    TZ: "UTC",
    HTTPS_PROXY: "http://p",
    SHELL: "/bin/sh",
  },
  ...{ ANTHROPIC_API_KEY: "sk-ant-1", OPENAI_API_KEY: "sk-2", DROVER_TOKEN: "admin", AWS_SECRET_ACCESS_KEY: "x" },
  ...{
    LD_PRELOAD: "/evil.so",
    NODE_OPTIONS: "--require evil",
    GIT_DIR: "/elsewhere",
    TMPDIR: "/var/tmp",
    TERM: "xterm",
  },
  ...{ SSL_CERT_FILE: "/ca.pem", NODE_EXTRA_CA_CERTS: "/ca2.pem", LC_: "no", DROVER_RUN_ID: "outer" },
};

test("a child gets what it needs, what tells it that nobody is there, and its task", () => {
  assert.deepEqual(childEnvironment(inherited, [], facts), {
    ...{ PATH: "/bin", HOME: "/home/a", LC_ALL: "C", LC_TIME: "de", TZ: "UTC", HTTPS_PROXY: "http://p" },
    ...{ SHELL: "/bin/sh", SSL_CERT_FILE: "/ca.pem", NODE_EXTRA_CA_CERTS: "/ca2.pem", TMPDIR: "/tmp/drover-x" },
    ...{ CI: "1", TERM: "dumb", GIT_TERMINAL_PROMPT: "0", CLAUDE_CODE_RETRY_WATCHDOG: "1" },
    ...{ DROVER_TASK_ID: "t1", DROVER_ATTEMPT: "2", DROVER_RUN_ID: "run-1", DROVER_RUN_PATH: "run-1" },
    ...{ DROVER_TASK_FILE: "/r/task.json", DROVER_RESULT_FILE: "/r/result.json", DROVER_WORKSPACE: "/w" },
  });
});

test("more comes in by name, or with a value, and may replace what stands there", () => {
  const additions = ["ANTHROPIC_API_KEY", "ABSENT", "TERM=xterm-256color", "A=b=c", "EMPTY=", "TMPDIR"].map(
    readAddition,
  );
  const env = childEnvironment(inherited, additions, facts);
  assert.equal(env.ANTHROPIC_API_KEY, "sk-ant-1");
  assert.equal(env.OPENAI_API_KEY, undefined);
  assert.equal(env.ABSENT, undefined);
  assert.deepEqual([env.TERM, env.A, env.EMPTY, env.TMPDIR], ["xterm-256color", "b=c", "", "/var/tmp"]);
});

test("what is known only sometimes is there only then", () => {
  const more = { url: "http://127.0.0.1:4747", runToken: "rt", sessionId: "s1", branch: "drover/t1-2", base: "abc" };
  const env = childEnvironment({ DROVER_RUN_PATH: "a/b" }, [], { ...facts, ...more });
  const { DROVER_URL, DROVER_RUN_TOKEN, DROVER_SESSION_ID, DROVER_BRANCH, DROVER_BASE, DROVER_RUN_PATH } = env;
  assert.deepEqual(
    [DROVER_URL, DROVER_RUN_TOKEN, DROVER_SESSION_ID, DROVER_BRANCH, DROVER_BASE, DROVER_RUN_PATH],
    [more.url, "rt", "s1", "drover/t1-2", "abc", "a/b/run-1"],
  );
});

for (const text of ["", "=x", "A B", "1A", "A-B", "DROVER_RUN_ID=mine", "DROVER_TASK_ID", "A=\0"])
  test(`an addition that cannot be is refused: ${JSON.stringify(text)}`, () => {
    assert.throws(() => readAddition(text), /^Error: env: /);
  });
