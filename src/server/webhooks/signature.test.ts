import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { type SignatureCheck, signatureOf, verifySignature } from "./signature.ts";

const NOW = 1_769_860_800_700;
const SECRET = "s3cret";
const BODY = '{"taskId":"t","note":"größer"}';
const HEADER = signatureOf(SECRET, BODY, NOW);
const HEX = HEADER.slice(HEADER.indexOf("v1=") + 3);

test("the signature is the HMAC of the instant in seconds, a dot and the body", () => {
  const expected = createHmac("sha256", SECRET).update(`1769860800.${BODY}`).digest("hex");
  assert.equal(HEADER, `t=1769860800,v1=${expected}`);
});

const rows: [claim: string, change: Partial<SignatureCheck>, accepted: boolean][] = [
  ["an untouched webhook is accepted", {}, true],
  ["bytes and text are the same body", { body: Buffer.from(BODY) }, true],
  ["one of several signatures is enough", { header: `${HEADER},v1=${"0".repeat(64)}` }, true],
  ["the order of the parts does not count", { header: `v1=${HEX}, t=1769860800` }, true],
  ["unknown parts are passed over", { header: `${HEADER},v2=abc` }, true],
  ["300 seconds late is still good", { now: 1_769_860_800_000 + 300_000 }, true],
  ["more than 300 seconds late is not", { now: 1_769_860_800_000 + 300_001 }, false],
  ["300 seconds early is still good", { now: 1_769_860_800_000 - 300_000 }, true],
  ["more than 300 seconds early is not", { now: 1_769_860_800_000 - 300_001 }, false],
  ["the tolerance can be chosen", { now: 1_769_860_811_000, toleranceSeconds: 10 }, false],
  ["another body is refused", { body: `${BODY} ` }, false],
  ["another secret is refused", { secret: "s3cret2" }, false],
  ["an empty secret proves nothing", { secret: "", header: signatureOf("", BODY, NOW) }, false],
  ["another instant is refused", { header: `t=1769860801,v1=${HEX}` }, false],
  ["two instants are refused", { header: `t=1769860800,t=1769860800,v1=${HEX}` }, false],
  ["no instant is refused", { header: `v1=${HEX}` }, false],
  ["no signature is refused", { header: "t=1769860800" }, false],
  ["a signature cut short is refused", { header: `t=1769860800,v1=${HEX.slice(2)}` }, false],
  ["a signature that is no hex is refused", { header: `t=1769860800,v1=${"g".repeat(64)}` }, false],
  ["an absent header is refused", { header: undefined }, false],
  ["a clock that says nothing refuses", { now: Number.NaN }, false],
];

for (const [claim, change, accepted] of rows)
  test(claim, () =>
    assert.equal(verifySignature({ secret: SECRET, header: HEADER, body: BODY, now: NOW, ...change }), accepted),
  );
