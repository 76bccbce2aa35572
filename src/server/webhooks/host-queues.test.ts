import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createHostQueues } from "./host-queues.ts";

function linesOf(limit: number) {
  const started: string[] = [];
  const knob = { limit };
  const queues = createHostQueues<string>({ limit: () => knob.limit, start: (item) => started.push(item) });
  const add = (host: string, count: number, project = "default"): void => {
    for (let index = 1; index <= count; index++) queues.add(host, project, `${host}${index}`);
  };
  const release = (host: string, answered: boolean, project = "default"): void =>
    queues.release(host, project, answered);
  return { queues, started, knob, add, release };
}

test("within a host the order is that of arrival, and a host has at most a quarter", () => {
  const { queues, started, add, release } = linesOf(8);
  add("a", 5);
  assert.deepEqual(started, ["a1", "a2"]);
  release("a", true);
  assert.deepEqual(started, ["a1", "a2", "a3"]);
  assert.deepEqual([queues.underWay(), queues.waiting()], [2, 2]);
});

test("P23 a host that hangs leaves room for the others, however much waits for it", () => {
  const { queues, started, add } = linesOf(16);
  add("hangs", 1000);
  add("b", 3);
  assert.deepEqual(started.slice(-3), ["b1", "b2", "b3"]);
  assert.equal(queues.underWay(), 7);
});

test("a host that gave no answer has one at a time until it answers", () => {
  const { queues, started, add, release } = linesOf(16);
  add("a", 20);
  assert.equal(started.length, 4);
  for (let count = 0; count < 4; count++) release("a", false);
  assert.deepEqual([started.length, queues.underWay()], [5, 1]);
  release("a", true);
  assert.equal(queues.underWay(), 4);
});

/** Each of these hosts has answered, and nothing waits for it. */
function answering({ add, release }: ReturnType<typeof linesOf>, hosts: readonly string[]): void {
  for (const host of hosts) {
    add(host, 1);
    release(host, true);
  }
}

test("many hosts that hang leave a quarter to those that answer, whatever is due for them", () => {
  const kit = linesOf(16);
  answering(kit, ["good"]);
  for (let number = 0; number < 100; number++) kit.add(`hangs-${number}-`, 10);
  assert.equal(kit.queues.underWay(), 8);
  kit.started.length = 0;
  kit.add("good", 5);
  assert.deepEqual(kit.started, ["good1", "good2", "good3", "good4"]);
});

test("hosts that gave no answer share a quarter, also after a rest, and hold up no new host", () => {
  const kit = linesOf(16);
  const hosts = Array.from({ length: 12 }, (_, number) => `hangs-${number}-`);
  for (const host of hosts) kit.add(host, 1);
  for (const host of hosts) kit.release(host, false);
  assert.deepEqual([kit.queues.underWay(), kit.queues.waiting()], [0, 0]);
  for (const host of hosts) kit.add(host, 3);
  assert.equal(kit.queues.underWay(), 4);
  kit.started.length = 0;
  kit.add("new", 9);
  assert.deepEqual(kit.started, ["new1", "new2", "new3", "new4"]);
  kit.release("hangs-0-", true);
  assert.equal(kit.queues.underWay(), 10, "one that answers again is trusted again");
});

/** So many hosts of one project, which never answer. */
function hanging(kit: ReturnType<typeof linesOf>, project: string, count: number): readonly string[] {
  const hosts = Array.from({ length: count }, (_, number) => `${project}-hangs-${number}-`);
  for (const host of hosts) kit.add(host, 1, project);
  return hosts;
}

test("a project whose hosts hang holds up no new host of another, however many they are", () => {
  const kit = linesOf(16);
  const hosts = hanging(kit, "bad", 300);
  assert.equal(kit.queues.underWay(), 8, "a quarter is kept for hosts that answered, one for other projects");
  kit.started.length = 0;
  kit.add("new", 9, "good");
  assert.deepEqual(kit.started, ["new1", "new2", "new3", "new4"]);
  kit.release("new", true, "good");
  assert.equal(kit.queues.waiting(), 292 + 4);
  for (const host of hosts.slice(0, 8)) kit.release(host, false, "bad");
  assert.equal(kit.queues.waiting(), 284 + 4, "the hosts that hang take each other's places");
});

test("where the places of hosts that did not answer are taken, projects take turns before hosts do", () => {
  const kit = linesOf(16);
  const [first = "", second = "", third = ""] = hanging(kit, "bad", 300);
  hanging(kit, "worse", 300);
  assert.equal(kit.queues.underWay(), 12);
  kit.started.length = 0;
  kit.add("new-a", 1, "a");
  kit.add("new-b", 1, "b");
  for (const host of [first, second]) kit.release(host, false, "bad");
  assert.deepEqual(kit.started, ["new-a1", "new-b1"]);
  kit.release("new-a", true, "a");
  kit.release("new-b", true, "b");
  kit.release(third, false, "bad");
  assert.equal(kit.queues.underWay(), 9, "who has a quarter gets no more while less than a quarter is left");
});

test("projects take turns also at hosts that gave no answer", () => {
  const kit = linesOf(16);
  for (const [project, count] of [
    ["bad", 40],
    ["good", 1],
  ] as const) {
    const hosts = Array.from({ length: count }, (_, number) => `${project}${number}-`);
    for (const host of hosts) {
      kit.add(host, 1, project);
      kit.release(host, false, project);
    }
  }
  kit.started.length = 0;
  for (let number = 0; number < 40; number++) kit.add(`bad${number}-`, 1, "bad");
  kit.add("good0-", 1, "good");
  assert.deepEqual(kit.started, ["bad0-1", "bad1-1", "bad2-1", "bad3-1"]);
  kit.release("bad0-", false, "bad");
  kit.release("bad1-", false, "bad");
  assert.ok(kit.started.includes("good0-1"), "it is served among the next two, not after forty");
});

test("a host that another project named first, behind its hanging ones, has its turn with whoever waits for it", () => {
  const kit = linesOf(16);
  hanging(kit, "bad", 300);
  kit.add("shared", 1, "bad");
  kit.started.length = 0;
  kit.queues.add("shared", "good", "the good one");
  assert.deepEqual(kit.started, ["shared1", "the good one"]);
  kit.release("shared", true, "bad");
  kit.release("shared", true, "good");
  assert.equal(kit.queues.underWay(), 8);
});

test("where all wait, hosts take turns", () => {
  const { started, add, release } = linesOf(1);
  add("a", 3);
  add("b", 3);
  add("c", 1);
  for (const host of ["a", "b", "c", "a", "b", "a"]) release(host, true);
  assert.deepEqual(started, ["a1", "b1", "c1", "a2", "b2", "a3", "b3"]);
});

test("hosts take turns also where each may have several", () => {
  const { queues, started, knob, add } = linesOf(0);
  for (const host of ["a", "b", "c"]) add(host, 3);
  knob.limit = 12;
  queues.serve();
  assert.deepEqual(started, ["a1", "b1", "c1", "a2", "b2", "c2"]);
});

test("a raised limit is used at once, a lowered one lets what is under way end", () => {
  const kit = linesOf(4);
  const { queues, started, knob, add, release } = kit;
  answering(kit, ["a", "b", "c", "d", "e", "f"]);
  started.length = 0;
  for (const host of ["a", "b", "c", "d", "e", "f"]) add(host, 2);
  assert.equal(started.length, 4);
  knob.limit = 8;
  queues.serve();
  assert.equal(queues.underWay(), 8);
  knob.limit = 1;
  queues.serve();
  for (const host of ["a", "b", "c", "d"]) release(host, true);
  assert.deepEqual([queues.underWay(), started.length], [4, 8]);
});

test("closed queues start nothing", () => {
  const { queues, started, add, release } = linesOf(1);
  add("a", 2);
  queues.close();
  release("a", true);
  add("b", 1);
  assert.deepEqual([started, queues.waiting()], [["a1"], 2]);
});

test("whatever comes and goes: the limits hold, nobody waits without cause, nothing is lost or doubled", () => {
  const step = fc.record({
    host: fc.constantFrom("a", "b", "c"),
    project: fc.constantFrom("p", "q"),
    end: fc.boolean(),
    answered: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 9 }), (steps, limit) => {
      const share = Math.max(1, Math.floor(limit / 4));
      const open = new Map<string, number>();
      /** Whose those are that are under way, per host. */
      const owners = new Map<string, string[]>();
      const started: string[] = [];
      const queues = createHostQueues<string>({
        limit: () => limit,
        start: (item) => {
          started.push(item);
          const host = item.charAt(0);
          open.set(host, (open.get(host) ?? 0) + 1);
          owners.set(host, [...(owners.get(host) ?? []), item.charAt(1)]);
        },
      });
      let added = 0;
      for (const { host, project, end, answered } of steps) {
        const count = open.get(host) ?? 0;
        if (!end) queues.add(host, project, `${host}${project}${++added}`);
        else if (count > 0) {
          open.set(host, count - 1);
          queues.release(host, owners.get(host)?.shift() ?? "", answered);
        }
        const total = [...open.values()].reduce((sum, each) => sum + each, 0);
        assert.ok(total <= limit && Math.max(0, ...open.values()) <= share);
        assert.equal(total, queues.underWay());
        assert.equal(started.length + queues.waiting(), added);
        assert.ok(queues.waiting() === 0 || total > 0, "something waits and nothing is under way");
      }
      assert.equal(new Set(started).size, started.length);
    }),
    { numRuns: 500 },
  );
});
