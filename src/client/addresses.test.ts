import assert from "node:assert/strict";
import { test } from "node:test";
import { type Addresses, createAddresses, type Leads } from "./addresses.ts";
import { ClientError } from "./client-error.ts";

const [A, B, C] = ["http://a:1", "http://b:1", "http://c:1"];
const headers = (given: Readonly<Record<string, string>>) => ({ get: (name: string) => given[name] ?? null });
const leaderIs = (url: string, status = 200) => ({ status, headers: headers({ "x-drover-leader": url }) });
const seqIs = (seq: string, status = 200) => ({ status, headers: headers({ "x-drover-seq": seq }) });
const nobody: Leads = () => assert.fail("nobody is asked");

type Story = Addresses & {
  readonly clock: { now: number };
  names(from: string, leader: string, status?: number): void;
};
function nodes(url: string | readonly string[], leads: Leads = nobody): Story {
  const clock = { now: 0 };
  const addresses = createAddresses({ url, token: "t" }, leads, () => clock.now);
  return Object.assign(Object.create(addresses) as Addresses, {
    clock,
    names: (from: string, leader: string, status = 200) => addresses.answered(from, leaderIs(leader, status), false),
  });
}
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a seq that no server takes back is none", () => {
  const addresses = nodes(A);
  addresses.answered(A, seqIs("999999999999999"), true);
  addresses.answered(A, seqIs("1000000000000000"), true);
  assert.deepEqual(addresses.afterOwnWrites(), { "x-drover-after": "999999999999999" });
});

test("addresses are a text, several with commas, or a list, each once", () => {
  assert.equal(nodes("http://a:1/").text, A);
  assert.equal(nodes(" http://a:1 , http://b:1/ ").text, `${A},${B}`);
  assert.equal(nodes([A, "http://b:1,http://a:1/"]).text, `${A},${B}`);
  assert.equal(nodes("http://a:1/x/,http://a:1").text, "http://a:1/x,http://a:1");
});

const wrong: [given: string | readonly string[], message: RegExp][] = [
  ["ftp://a", /^url is "ftp:\/\/a", and must be an http or https URL$/],
  ["http://a,b:1", /^an address in url is "b:1", and must be/],
  ["http://a,", /^an address in url is "", and must be/],
  [["http://a", "http://"], /^an address in url is "http:\/\/", and must be/],
  ["http://a,http://u:secret@b", /^an address in url must not hold a user or password; give the token as token$/],
  [[], /^url has 0 addresses, and must have 1 to 32$/],
  [Array.from({ length: 33 }, (_, n) => `http://a:${n + 1}`), /^url has 33 addresses/],
];
for (const [given, message] of wrong)
  test(`a wrong address is refused by itself: ${message.source}`, () =>
    assert.throws(
      () => nodes(given),
      (error) => error instanceof ClientError && error.code === "bad_request" && message.test(error.message),
    ));

test("it goes to the leader that a node names, and to the next that was given when that does not answer", () => {
  const addresses = nodes([A, B, C]);
  assert.equal(addresses.next(), A);
  addresses.names(A, `${C}/`);
  assert.equal(addresses.next(), C);
  addresses.failed(C, "silent");
  assert.equal(addresses.next(), A);
  addresses.failed(A, "silent");
  assert.equal(addresses.next(), B);
});

test("what failed for another reason, or for another call, moves nothing", () => {
  const addresses = nodes([A, B]);
  addresses.failed(B, "silent");
  assert.equal(addresses.next(), A);
  addresses.failed(A, "cannot");
  addresses.failed(A, "cannot");
  assert.equal(addresses.next(), B, "two calls that failed together are one move");
});

test("one that did not answer is not the leader for a while, twice as long each time, until it answers", () => {
  const addresses = nodes([A, B]);
  const isFollowed = (): boolean => {
    addresses.names(A, B);
    return addresses.next() === B;
  };
  for (const ms of [2000, 4000, 8000]) {
    addresses.failed(B, "silent");
    addresses.clock.now += ms - 1;
    assert.equal(isFollowed(), false);
    addresses.clock.now += 1;
    assert.equal(isFollowed(), true);
  }
  addresses.names(B, B);
  addresses.failed(B, "silent");
  addresses.clock.now += 2000;
  assert.equal(isFollowed(), true);
});

test("one that says it cannot is asked again as soon as it is named", () => {
  const addresses = nodes([A, B]);
  addresses.names(A, B);
  addresses.failed(B, "cannot");
  assert.equal(addresses.next(), A);
  addresses.names(A, B);
  assert.equal(addresses.next(), B);
});

test("a leader that was not given is asked first whether it leads, and is one address more", async () => {
  const asked: string[] = [];
  const addresses = nodes(A, async (base) => asked.push(base) > 0);
  assert.deepEqual([addresses.count, addresses.isCluster()], [1, false]);
  addresses.names(A, B);
  assert.deepEqual(asked, [], "not before there is a call that it could serve");
  assert.deepEqual([addresses.next(), addresses.next(), asked], [A, A, [B]]);
  await settled();
  assert.deepEqual([addresses.next(), addresses.count, addresses.isCluster()], [B, 2, true]);
  addresses.failed(B, "silent");
  assert.deepEqual([addresses.next(), addresses.count], [A, 1]);
});

test("one that cannot be reached, or does not lead, leaves those that were given, and is seldom asked", async () => {
  let asked = 0;
  const addresses = nodes(A, async () => {
    asked++;
    if (asked === 1) throw new Error("no connection");
    return false;
  });
  for (let call = 0; call < 5; call++) {
    addresses.names(A, B);
    assert.equal(addresses.next(), A);
    await settled();
  }
  assert.equal(asked, 1);
  addresses.clock.now += 2000;
  addresses.names(A, B);
  addresses.next();
  await settled();
  addresses.names(A, B);
  assert.deepEqual([addresses.next(), asked], [A, 2]);
});

test("what a node says that was only named is not followed: those that were given say who leads now", async () => {
  const addresses = nodes(A, async () => true);
  addresses.names(A, B);
  addresses.next();
  await settled();
  assert.equal(addresses.next(), B);
  addresses.names(B, "http://evil:1");
  assert.equal(addresses.next(), A);
  await settled();
  assert.equal(addresses.next(), A);
});

const unheeded: [claim: string, given: string, name: string, status?: number][] = [
  ["no URL", A, "leader"],
  ["another scheme", A, "ftp://b:1"],
  ["https to http", "https://a", "http://b:1"],
  ["http to https", A, "https://b"],
  ["a password", A, "http://u:p@b:1"],
  ["this machine, said by another", A, "http://127.0.0.1:4747"],
  ["endless", A, `http://b:1/${"x".repeat(3000)}`],
  ["in a refusal", A, B, 401],
  ["in a redirect", A, B, 302],
];
for (const [claim, given, name, status] of unheeded)
  test(`a name is not followed: ${claim}`, async () => {
    const addresses = nodes(given);
    addresses.names(given, name, status);
    addresses.next();
    await settled();
    assert.equal(addresses.next(), given);
  });

test("a name of this machine is followed where the server is on it", async () => {
  const addresses = nodes("http://127.0.0.1:1", async () => true);
  addresses.names("http://127.0.0.1:1", "http://localhost:2");
  addresses.next();
  await settled();
  assert.equal(addresses.next(), "http://localhost:2");
});

test("reads ask for the highest number that a write was told; nonsense and what reads are told is passed over", () => {
  const addresses = nodes([A, B]);
  const after = (least?: number): string | undefined => addresses.afterOwnWrites(least)["x-drover-after"];
  const told = (seq: string, isWrite = true, status = 200): void => addresses.answered(A, seqIs(seq, status), isWrite);
  assert.equal(after(), undefined);
  told("17");
  told("12");
  told("99", false);
  told("98", true, 409);
  for (const nonsense of ["", "-5", "1e9", "0x40", "19 ", "9".repeat(20), "NaN", "18.5"]) told(nonsense);
  assert.equal(after(), "17");
  assert.deepEqual([after(12), after(30), after()], ["17", "30", "17"]);
  addresses.forgetWrites();
  assert.equal(after(), undefined);
});
