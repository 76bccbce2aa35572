import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { sentence } from "../../core/base/refusal.ts";
import { checkCallbackUrl, hostOf, readCallbackUrl, specialRangeOf } from "./address.ts";

const PUBLIC = { allowPrivate: false };

/** Hosts that are refused, and the range they lie in however they are written. */
const refusedHosts: Record<string, readonly string[]> = {
  loopback: [
    ...["127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f.1", "0x7f000001", "0X7F.0.0.1", "017700000001"],
    ...["0177.0.0.1", "127.255.255.254", "127.0.0.1.", "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "１２７.０.０.１"],
    ...["127。0。0。1", "①②⑦.0.0.1", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::FFFF:7F00:1]"],
    ...["[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "localhost", "LOCALHOST", "localhost.", "a.b.localhost"],
    ...["LocalHost.", "ｌｏｃａｌｈｏｓｔ", "%6cocalhost", "x.LOCALHOST."],
  ],
  private: ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "3232235777", "[::ffff:10.0.0.1]", "0xa.1"],
  "link-local": ["169.254.169.254", "2852039166", "0xa9fea9fe", "[::ffff:a9fe:a9fe]", "[fe80::1]", "[FEBF::1]"],
  "unique-local": ["[fc00::1]", "[fd00:ec2::254]"],
  "carrier-grade-nat": ["100.64.0.1", "100.127.255.255"],
  multicast: ["224.0.0.1", "239.255.255.255", "[ff02::1]"],
  broadcast: ["255.255.255.255", "4294967295"],
  unspecified: ["0.0.0.0", "0", "0.0.0.1", "0x0", "[::]", "[::ffff:0.0.0.0]"],
  reserved: [
    ...["240.0.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.9", "192.0.0.1", "[2001:db8::1]"],
    ...["[::127.0.0.1]", "[::7f00:1]", "[4000::1]", "[1::1]", "[e000::1]"],
  ],
  "6to4": ["[2002:7f00:1::]", "[2002:808:808::1]"],
  teredo: ["[2001:0:7f00:1::]"],
  rfc6052: ["[64:ff9b:1::7f00:1]", "[64:ff9b:1::8.8.8.8]"],
  rfc6145: ["[::ffff:0:127.0.0.1]"],
  "deprecated-site-local": ["[fec0::1]"],
  discard: ["[100::1]"],
  "segment-routing": ["[5f00::1]"],
};

for (const [range, hosts] of Object.entries(refusedHosts))
  for (const host of hosts)
    test(`P23 ${host} is refused: ${range}`, () => {
      for (const text of [`http://${host}/hook`, `https://${host}:8443/hook?a=b#c`]) {
        const read = readCallbackUrl(text, PUBLIC);
        assert.deepEqual(
          read.ok ? read.value.href : read.failure,
          `a public address, not a ${range} one (webhooks.allowPrivate allows those)`,
        );
        assert.equal(readCallbackUrl(text, { allowPrivate: true }).ok, true, "and let through where that is allowed");
      }
    });

const goodHosts = [
  ...[
    "example.com",
    "EXAMPLE.com.",
    "8.8.8.8",
    "134744072",
    "[2606:4700::1111]",
    "[::ffff:8.8.8.8]",
    "xn--bcher-kva.de",
  ],
  ...["[64:ff9b::8.8.8.8]", "172.15.0.1", "172.32.0.1", "100.63.255.255", "100.128.0.1", "169.253.0.1", "126.0.0.1"],
  ...["localhost.example.com", "notlocalhost", "10.example.com", "128.0.0.1", "9.255.255.255", "11.0.0.0"],
];

for (const host of goodHosts)
  test(`${host} is let through`, () => assert.equal(readCallbackUrl(`https://${host}/hook`, PUBLIC).ok, true));

const badUrls: [text: unknown, expected: RegExp][] = [
  ["", /^a URL such as/],
  ["hook", /^a URL such as/],
  ["/hook", /^a URL such as/],
  ["http://", /^a URL such as/],
  ["http://[fe80::1%25eth0]/", /^a URL such as/],
  ["http://[fe80::1%eth0]/", /^a URL such as/],
  ["http://1.2.3.4.5/", /^a URL such as/],
  ["http://foo.0x7f/", /^a URL such as/],
  ["http://256.256.256.256/", /^a URL such as/],
  ["http://example.com:65536/", /^a URL such as/],
  ["http://exa mple.com/", /^a URL such as/],
  [`https://example.com/${"a".repeat(2048)}`, /at most 2048 characters/],
  [7, /^a URL such as/],
  [null, /^a URL such as/],
  [{}, /^a URL such as/],
  ["ftp://example.com/", /^an http or https URL/],
  ["file:///etc/passwd", /^an http or https URL/],
  ["javascript:alert(1)", /^an http or https URL/],
  ["data:text/plain,x", /^an http or https URL/],
  ["gopher://example.com/", /^an http or https URL/],
  ["ws://example.com/", /^an http or https URL/],
  ["https://user@example.com/", /without a user name or password/],
  ["https://user:secret@example.com/", /without a user name or password/],
  ["https://:secret@example.com/", /without a user name or password/],
  ["http://example.com:0/", /a port from 1 to 65535/],
];

for (const [text, expected] of badUrls)
  test(`refused, also where private addresses are allowed: ${String(text).slice(0, 60)}`, () => {
    for (const allowPrivate of [false, true]) {
      const read = readCallbackUrl(text, { allowPrivate });
      assert.match(read.ok ? read.value.href : read.failure, expected);
    }
  });

const confusing: [text: string, host: string][] = [
  ["http:\\\\127.0.0.1\\hook", "127.0.0.1"],
  ["http:127.0.0.1", "127.0.0.1"],
  ["http://12\t7.0\n.0.1/", "127.0.0.1"],
  ["http:/\\/127.1/", "127.0.0.1"],
  ["  http://0x7f.1/  ", "127.0.0.1"],
  ["http://127.0.0.1:80\\@example.com/", "127.0.0.1"],
  ["http://127.0.0.1?@example.com/", "127.0.0.1"],
  ["http://127.0.0.1#@example.com/", "127.0.0.1"],
];

for (const [text, host] of confusing)
  test(`what a URL seems to say does not count: ${JSON.stringify(text)}`, () => {
    assert.equal(hostOf(new URL(text)), host);
    assert.equal(readCallbackUrl(text, PUBLIC).ok, false);
  });

test("a refusal names the field and what would be right, and does not repeat a password", () => {
  const read = checkCallbackUrl("https://user:hunter2@example.com/", PUBLIC, "tasks[3].callbackUrl");
  assert.ok(!read.ok && read.failure.type === "bad-field" && read.failure.field === "tasks[3].callbackUrl");
  assert.match(sentence(read.failure), /callbackUrl.*without a user name or password/);
  assert.doesNotMatch(JSON.stringify(read.failure), /hunter2/);
});

test("what comes back is the URL in its one spelling", () => {
  const read = checkCallbackUrl("HTTPS://EXAMPLE.com:443/a/../b", PUBLIC);
  assert.equal(read.ok && read.value.href, "https://example.com/b");
});

test("the zone of an address changes nothing", () => {
  assert.equal(specialRangeOf("fe80::1%eth0"), "link-local");
  assert.equal(specialRangeOf("::1%lo"), "loopback");
});

test("every spelling of an IPv4 address is judged like the address", () => {
  const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255));
  fc.assert(
    fc.property(octets, ([a, b, c, d]) => {
      const number = ((a * 256 + b) * 256 + c) * 256 + d;
      const hex = (part: number): string => part.toString(16);
      const expected = specialRangeOf(`${a}.${b}.${c}.${d}`) === null;
      const spellings = [
        ...[`${number}`, `0x${hex(number)}`, `0${number.toString(8)}`, `${a}.${(b * 256 + c) * 256 + d}`],
        ...[`0x${hex(a)}.0${b.toString(8)}.${c}.0x${hex(d)}`, `${a}.${b}.${c * 256 + d}`, `${a}.${b}.${c}.${d}.`],
        ...[`[::ffff:${hex(a * 256 + b)}:${hex(c * 256 + d)}]`, `[64:ff9b::${a}.${b}.${c}.${d}]`],
      ];
      for (const host of spellings) assert.equal(readCallbackUrl(`http://${host}/`, PUBLIC).ok, expected, host);
    }),
    { numRuns: 2000 },
  );
});
