import assert from "node:assert/strict";
import { test } from "node:test";
import { takesGzip } from "./pages.ts";

test("a page is packed for who takes gzip, and not for who says that it does not", () => {
  for (const taken of ["gzip", "br, GZIP;q=0.5", "gzip, deflate, br", "*", "deflate;q=0, *;q=0.1"])
    assert.equal(takesGzip(taken), true, taken);
  for (const refused of [undefined, "", "br", "gzip;q=0", "gzip; q=0.0, br", "*, gzip;q=0", "*;q=0", "xgzip"])
    assert.equal(takesGzip(refused), false, refused);
});
