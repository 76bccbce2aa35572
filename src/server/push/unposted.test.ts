/**
 * A click that the log has as running and that was not posted yet: whatever ends the server's word for its worker then,
 * it never left the server, so it is not lost. It is made later, once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Instance, network, type PushWorld, pushWorld } from "../../../test/kits/push-world.ts";
import { type SlowLog, slowLog } from "../../../test/kits/slow-log.ts";

const OFFER = { capabilities: ["tab:a"], slots: 2 };

type Stage = { kit: PushWorld; browser: Instance; slow: SlowLog; next: () => Promise<PushWorld> };

async function stage(nth: number): Promise<Stage> {
  const net = network();
  const browser = net.instance("browser:1");
  const slow = slowLog("attempt-started", nth);
  const kit = await pushWorld({ net, log: slow.log });
  await kit.driver.join({ id: "b", endpoint: browser.endpoint, ...OFFER });
  const next = async (): Promise<PushWorld> => {
    await kit[Symbol.asyncDispose]();
    const opened = await pushWorld({ net, log: slow.log, at: kit.clock.now() + 1000 });
    await opened.driver.resume();
    await opened.settle();
    return opened;
  };
  return { kit, browser, slow, next };
}

/** `slow` is let go once the word is over: what the log says of it comes too late for the post. */
const ENDS: readonly { name: string; end: (stage: Stage) => Promise<PushWorld> }[] = [
  ...[0, 10_000].map((graceMs) => ({
    name: `the server stops (grace ${graceMs} ms)`,
    end: async ({ kit, slow, next }: Stage) => {
      const stopped = kit.driver.stop({ graceMs });
      slow.letGo();
      await stopped;
      return next();
    },
  })),
  {
    name: "its worker registers anew",
    end: async ({ kit, browser, slow }) => {
      const joined = kit.driver.join({ id: "b", endpoint: browser.endpoint, ...OFFER });
      slow.letGo();
      await joined;
      return kit;
    },
  },
  {
    name: "a pull worker takes its name, and then its worker registers anew",
    end: async ({ kit, browser, slow }) => {
      kit.driver.giveBack("b");
      const joined = kit.drover.remote.join({ id: "b" });
      slow.letGo();
      await joined;
      await kit.driver.join({ id: "b", endpoint: browser.endpoint, ...OFFER });
      return kit;
    },
  },
  {
    name: "its worker leaves and comes back",
    end: async ({ kit, browser, slow }) => {
      kit.driver.left("b");
      const left = kit.drover.remote.leave("b");
      slow.letGo();
      await left;
      await kit.driver.join({ id: "b", endpoint: browser.endpoint, ...OFFER });
      return kit;
    },
  },
];

for (const { name, end } of ENDS) {
  test(`what was named and not posted when ${name} is posted later, at no cost`, async () => {
    const at = await stage(1);
    await at.kit.drover.submit({ id: "t", agentId: "ann", action: "click", tabId: "a" });
    await at.kit.settle();
    await at.slow.isWaiting;
    assert.equal(at.browser.posts.length, 0);
    const kit = await end(at);
    await kit.settle();
    assert.deepEqual(
      at.browser.posts.map(({ request }) => request.headers["X-Drover-Attempt"]),
      ["2"],
    );
    at.browser.posts[0]?.answer(200);
    await kit.settle();
    const { state, attempt, error } = await kit.drover.task("t");
    assert.deepEqual([state, attempt, error], ["done", 2, undefined]);
    const task = kit.drover.state.tasks.get("t" as never);
    assert.deepEqual([task?.losses, task?.requeues, task?.ownFailures], [0, 0, 0]);
    await kit[Symbol.asyncDispose]();
  });

  test(`what was answered and not reported when ${name} is done`, async () => {
    const at = await stage(2);
    await at.kit.submit("t", { tabId: "a" });
    await at.kit.submit("u", { tabId: "a" });
    await at.slow.isWaiting;
    at.browser.posts[0]?.answer(200);
    await at.kit.settle();
    assert.equal(at.kit.drover.state.tasks.get("t" as never)?.phase, "running");
    const kit = await end(at);
    await kit.settle();
    at.browser.posts[1]?.answer(200);
    await kit.settle();
    assert.deepEqual([await kit.stateOf("t"), await kit.stateOf("u"), at.browser.posts.length], ["done", "done", 2]);
    await kit[Symbol.asyncDispose]();
  });
}
