/**
 * An address of etcd is read, or refused with a sentence that has no password in it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { failsWith } from "../contract/vocabulary.ts";
import { LogFailure } from "../log.ts";
import { type AddressOptions, readAddress } from "./address.ts";

test("hosts, ports, prefix, user and password are read out of one URL", () => {
  const { endpoints, prefix, credentials, tls, shown } = readAddress("etcd://ann:p%40s%2Fs@h1:1,h2,[::1]:3/a/b/");
  assert.deepEqual(
    endpoints.map(({ host, port }) => [host, port]),
    [
      ["h1", 1],
      ["h2", 2379],
      ["::1", 3],
    ],
  );
  assert.deepEqual([prefix, credentials, tls], ["/a/b/", { user: "ann", password: "p@s/s" }, null]);
  assert.equal(shown, "etcd://h1:1,h2:2379,[::1]:3/a/b");
});

test("without a path the prefix is drover; what is given beside the URL counts more", () => {
  const { prefix, credentials, tls } = readAddress("etcd://ann:one@h1?tls=false", { password: "two", tls: true });
  assert.deepEqual([prefix, credentials, tls], ["/drover/", { user: "ann", password: "two" }, {}]);
  assert.ok(readAddress("etcd://h1", { ca: import.meta.filename }).tls?.ca?.includes("no password"));
});

const SECRET = "hunter2";
const wrong: readonly { readonly url: string; readonly says: RegExp; readonly options?: AddressOptions }[] = [
  { url: `postgres://ann:${SECRET}@h1/x`, says: /begins with etcd:\/\// },
  { url: `http://ann:${SECRET}@h1:2379`, says: /begins with etcd:\/\// },
  { url: "etcd://", says: /host "" .* is not HOST:PORT/ },
  { url: "etcd://h1:0", says: /host "h1:…"/ },
  { url: "etcd://h1:65536", says: /host "h1:…"/ },
  { url: "etcd://[::1]:x", says: /host "\[::1\]:…"/ },
  { url: `etcd://ann:${SECRET}`, says: /host "ann:…" .* is not HOST:PORT, as in etcd:/ },
  { url: `etcd://ann:x:${SECRET}/x`, says: /host "ann:…"/ },
  { url: "etcd://h1,,h2", says: /host ""/ },
  { url: `etcd://${"h,".repeat(16)}h`, says: /names 17 hosts; at most 16/ },
  { url: `etcd://ann:${SECRET}/x@h1`, says: /percent-encoded/ },
  { url: `etcd://ann:x?${SECRET}@h1`, says: /percent-encoded/ },
  { url: `etcd://ann:${SECRET}%@h1`, says: /two hex digits/ },
  { url: "etcd://ann@h1", says: /user for etcd, "ann", and no password/ },
  { url: `etcd://:${SECRET}@h1`, says: /password for etcd and no user/ },
  { url: "etcd://h1/a b", says: /prefix "\/a b"/ },
  { url: "etcd://h1//", says: /prefix "\/\/?"/ },
  { url: "etcd://h1?ttl=3", says: /option "ttl"; there are tls, ca, cert, key/ },
  { url: "etcd://h1?tls=yes", says: /tls .* is "yes", not true or false/ },
  { url: "etcd://h1?tls=false&ca=x", says: /tls is false and ca is given/ },
  { url: "etcd://h1?cert=x", says: /cert and key of etcd belong together/ },
  { url: "etcd://h1", options: { ca: "/nowhere/ca.pem" }, says: /file for ca of etcd cannot be read: ENOENT/ },
];
for (const { url, says, options } of wrong)
  test(`${url.replace(SECRET, "…")} is refused: ${says.source}`, () => {
    assert.throws(() => readAddress(url, options), failsWith("refused"));
    assert.throws(
      () => readAddress(url, options),
      (error) => error instanceof LogFailure && says.test(error.message) && !error.message.includes(SECRET),
    );
  });
