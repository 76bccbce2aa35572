/**
 * Two workers with one id, each on a terminal of its own: one of them gives up and says why, the other works on.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { served } from "../../../test/kits/cli/served.ts";
import type { TestTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";

test("of two workers with the same id one gives up and says what to do", { timeout: 90_000 }, async () => {
  await using server = await served(["--log", "memory:"]);
  using stops = new DisposableStack();
  const start = async (): Promise<{ terminal: TestTerminal; ended: Promise<number> }> => {
    const terminal = server.terminalFor();
    const ended = runCommandLine(["worker", "--id", "twin", "--shell", "--exec", "echo 1"], terminal, VERBS);
    await Promise.race([terminal.saw("twin has joined"), ended]);
    stops.defer(() => {
      for (let times = 0; times < 3; times++) terminal.signal("SIGTERM");
    });
    return { terminal, ended };
  };
  const both = [await start(), await start()];
  const loser = await Promise.race(both.map(async (one) => ({ ...one, code: await one.ended })));
  assert.equal(loser.code, 4);
  assert.match(
    loser.terminal.complained(),
    /warning: another worker has joined as twin: give each its own id; joining/,
  );
  assert.match(
    loser.terminal.complained(),
    /error: another worker has joined as twin, and this one has stopped\nhint: {2}give each its own --id\n$/,
  );
  const winner = both.find(({ terminal }) => terminal !== loser.terminal);
  const { code, err } = await server.drover(["submit", "x", "--wait"]);
  winner?.terminal.signal("SIGTERM");
  assert.equal(await winner?.ended, 0);
  assert.deepEqual([code, /on twin/.test(err)], [0, true], err);
});
