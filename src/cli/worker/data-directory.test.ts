import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { emptyDirectory } from "../../../test/kits/cli/served.ts";
import { CliProblem } from "../shell/problem.ts";
import { makeWorkerData } from "./preflight.ts";

const rows: { name: string; there: string; data: string; ignored: string | null }[] = [
  { name: "a new .drover", there: ".", data: ".drover/worker", ignored: ".drover" },
  { name: "a new directory in a .drover that was there", there: ".drover", data: ".drover/w", ignored: ".drover/w" },
  { name: "a new directory of any name", there: ".", data: "elsewhere", ignored: "elsewhere" },
  { name: "a directory that was there", there: "mine", data: "mine", ignored: null },
];
for (const { name, there, data, ignored } of rows)
  test(`${name}: git is told of ${ignored ?? "nothing"}`, () => {
    const home = emptyDirectory();
    mkdirSync(join(home, there), { recursive: true });
    makeWorkerData(join(home, data));
    for (const place of [".", ".drover", ".drover/worker", ".drover/w", "elsewhere", "mine"])
      assert.equal(existsSync(join(home, place, ".gitignore")), place === ignored, place);
  });

for (const [inside, why] of [
  [".", /^cannot make the data directory \S+file: a file of that name is there$/],
  ["under", /^cannot make the data directory \S+file\/under: a part of its path is a file$/],
] as const)
  test(`one that cannot be made is refused with why and what to do: ${inside}`, () => {
    const file = join(emptyDirectory(), "file");
    writeFileSync(file, "");
    assert.throws(
      () => makeWorkerData(join(file, inside)),
      (error) => {
        assert.ok(error instanceof CliProblem, String(error));
        assert.match(error.message, why);
        assert.deepEqual([error.problem.exit, error.problem.hint], [6, "another directory: --data DIR"]);
        return true;
      },
    );
  });
