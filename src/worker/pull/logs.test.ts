import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { LogBody, LogStatus } from "../../protocol/index.ts";
import { nextTurn } from "../../std/clock.ts";
import { createHandClock } from "../../std/hand-clock.ts";
import { createLogService, READ_MS, STUCK_MAX, type WorkerLogs, withinBytes } from "./logs.ts";

const wanted = (...ids: string[]) => ({
  ...{ workerId: "ann", session: "s1" },
  logs: ids.map((id) => ({ id, taskId: `task-${id}`, attempt: 1, lines: 10, bytes: 1000 })),
});

/** A service whose server takes what it is given, unless a test says otherwise. */
function kit(read: WorkerLogs["read"], answer: (body: LogBody) => Promise<LogStatus> | LogStatus = taken) {
  const given: [string, LogBody][] = [];
  const warnings: string[] = [];
  const heard = new Set<() => void>();
  const clock = createHandClock({ at: 0 });
  const service = createLogService({
    logs: { place: "here", read },
    clock,
    warn: (message) => warnings.push(message),
    handIn: async (workerId, body) => {
      given.push([workerId, body]);
      for (const ear of heard) ear();
      return answer(body);
    },
  });
  /** Resolves when so many were handed in. */
  const handedIn = (count: number): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (given.length >= count) resolve();
      };
      heard.add(look);
      look();
    });
  return {
    ...service,
    given,
    warnings,
    handedIn,
    settled: nextTurn,
    advance: clock.turn,
    alarms: () => clock.alarms().length,
  };
}
const taken = ({ id }: LogBody): LogStatus => ({ status: "taken", id });
const refusal = (code: string): Error => Object.assign(new Error(`refused: ${code}`), { code });

test("a log that is wanted is read and handed in, in the name of the session that was asked", async () => {
  const at = kit(({ taskId, attempt, lines, bytes }) => ({
    text: `${taskId} ${attempt} ${lines} ${bytes}\n`,
    truncated: true,
  }));
  at.want(wanted("a"));
  await at.handedIn(1);
  const body = { session: "s1", id: "a", text: "task-a 1 10 1000\n", truncated: true };
  assert.deepEqual(at.given, [["ann", body]]);
});

test("one that is not there is said to be none, and one that cannot be read has its reason", async () => {
  const at = kit(({ taskId }) => {
    if (taskId === "task-a") return null;
    throw new Error(`EACCES ${"x".repeat(2000)}\ud800`);
  });
  at.want(wanted("a", "b"));
  await at.handedIn(2);
  const [a, b] = at.given.map(([, body]) => body).toSorted((one, other) => (one.id < other.id ? -1 : 1));
  assert.deepEqual(a, { session: "s1", id: "a", text: null });
  assert.deepEqual([b?.text, b?.error?.length, b?.error?.slice(0, 8)], [null, 972, "EACCES x"]);
});

test("a reason fits into what the server takes, however it is written", async () => {
  const at = kit(() => {
    throw new Error(`EACCES ${"\u0001".repeat(500)}`);
  });
  const { logs, ...asked } = wanted("a");
  at.want({ ...asked, logs: logs.map((one) => ({ ...one, bytes: 512 })) });
  await at.handedIn(1);
  const error = at.given[0]?.[1].error ?? "";
  assert.ok(error.startsWith("EACCES \u0001") && bytesOf(error) <= 512 && bytesOf(error) > 450, error);
});

test("reads that never end are given up, who waited as long is dropped, and the next ones are read", async () => {
  let reads = 0;
  const at = kit(({ taskId }) => {
    reads++;
    return taskId.startsWith("task-stuck") ? new Promise<never>(() => {}) : null;
  });
  at.want(wanted("stuck1", "stuck2", "stuck3", "stuck4", "waits"));
  at.advance(READ_MS - 1);
  at.want(wanted("later", "waits"));
  await at.settled();
  assert.deepEqual([reads, at.given.length], [4, 0]);
  at.advance(1);
  await at.handedIn(5);
  await at.settled();
  const errors = at.given.map(([, { id, error }]) => [id, error]);
  const late = "reading it has taken more than 5000 ms";
  assert.deepEqual(errors, [...[1, 2, 3, 4].map((number) => [`stuck${number}`, late]), ["later", undefined]]);
  assert.deepEqual([reads, at.alarms()], [5, 0], "who waited since the beginning has gone");
});

test("there are only so many reads that do not end", async () => {
  let reads = 0;
  const at = kit(() => {
    reads++;
    return new Promise<never>(() => {});
  });
  for (let round = 0; round < STUCK_MAX; round++) {
    at.want(wanted(...[1, 2, 3, 4].map((number) => `${round}-${number}`)));
    await at.settled();
    at.advance(READ_MS);
    await at.settled();
  }
  assert.deepEqual([reads, at.given.length], [STUCK_MAX + 4, STUCK_MAX * 4]);
  assert.match(at.given.at(-1)?.[1].error ?? "", /^36 reads of other logs have not ended$/);
});

test("what is under way or was handed in is not read again; what was not taken is, when wanted again", async () => {
  let isAway = true;
  let reads = 0;
  const open = Promise.withResolvers<null>();
  const at = kit(
    () => {
      reads++;
      return open.promise;
    },
    (body) => {
      if (isAway) throw refusal("network");
      return taken(body);
    },
  );
  for (let times = 0; times < 3; times++) at.want(wanted("a"));
  assert.equal(reads, 1);
  open.resolve(null);
  await at.handedIn(1);
  await at.settled();
  isAway = false;
  at.want(wanted("a"));
  await at.handedIn(2);
  await at.settled();
  at.want(wanted("a"));
  await at.settled();
  assert.deepEqual([reads, at.given.length, at.warnings], [2, 2, []]);
});

test("few are read at a time, and of more than can wait some are left for the next time", async () => {
  let [running, most] = [0, 0];
  const gate = Promise.withResolvers<null>();
  const at = kit(async () => {
    most = Math.max(most, ++running);
    await gate.promise;
    running--;
    return null;
  });
  const all = Array.from({ length: 200 }, (_, index) => `l${index}`);
  at.want(wanted(...all));
  gate.resolve(null);
  await at.handedIn(64);
  await at.settled();
  assert.deepEqual([most, at.given.length <= 68], [4, true]);
  at.want(wanted(...all));
  await at.handedIn(128);
  assert.equal(new Set(at.given.map(([, { id }]) => id)).size, at.given.length, "none twice");
});

for (const [code, isTold] of [
  ["bad_request", true],
  ["too_large", true],
  ["not_found", false],
  ["session_lost", false],
] as const)
  test(`a refusal with ${code} is ${isTold ? "told" : "of no interest"}`, async () => {
    const at = kit(
      () => null,
      () => Promise.reject(refusal(code)),
    );
    at.want(wanted("a"));
    await at.handedIn(1);
    await at.settled();
    const told = `the log of task task-a, attempt 1, was not taken: refused: ${code}`;
    assert.deepEqual(at.warnings, isTold ? [told] : []);
  });

const bytesOf = (text: string): number => Buffer.byteLength(JSON.stringify(text));
const piece = fc.oneof(
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom("\n", "\u001b[31m", "\u0000", '"\\', "😀", "\ud800", "é", "line\n"),
);

test("an end that begins with a line by itself keeps that line", () => {
  const cut = withinBytes({ text: "first\nsecond\nthird", truncated: false }, '"second\\nthird"'.length);
  assert.deepEqual(cut, { text: "second\nthird", truncated: true });
});

test("however a log is written, its end fits, is well-formed, and is as long as it can be", () =>
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), fc.integer({ min: 10, max: 400 }), (pieces, bytesMax) => {
      const text = pieces.join("");
      const { text: end, truncated } = withinBytes({ text, truncated: false }, bytesMax);
      const whole = text.toWellFormed();
      assert.ok(bytesOf(end) <= bytesMax);
      assert.ok(whole.endsWith(end) && end.isWellFormed());
      assert.equal(truncated, end.length < whole.length);
      if (!truncated) return;
      // It begins a line, or there is not even room for the last one.
      const before = whole.slice(0, whole.length - end.length);
      const lastLine = whole.slice(whole.slice(0, -1).lastIndexOf("\n") + 1);
      assert.ok(before.endsWith("\n") || (end.length <= lastLine.length && bytesOf(lastLine) > bytesMax));
      const next = whole.slice(before.slice(0, -1).lastIndexOf("\n") + 1);
      assert.ok(bytesOf(next) > bytesMax, "one line more would not have fitted");
    }),
  ));
