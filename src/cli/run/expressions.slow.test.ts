/**
 * Results that flow along the needs of a plan: what the commands of a real run see of those before them.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type PlanDirectory, planDirectory, steady } from "../../../test/kits/cli/plan-directory.ts";

/** A task `first` whose result is this value, and the tasks after it. */
function planAfter(value: unknown, tasks: string): PlanDirectory {
  const place = planDirectory(
    `workers: { slots: 1 }\ntasks:\n  first: cat value.json > "$DROVER_RESULT_FILE"; echo first >> ran\n${tasks}`,
  );
  writeFileSync(join(place.directory, "value.json"), JSON.stringify(value));
  return place;
}
const seen = (place: PlanDirectory): string[] => place.read("seen").split("\0").slice(0, -1);

const NASTY = `a  b'c"d\`echo hit\`$(echo hit)\${HOME}\n;echo hit\n* ~ \\ é`;

describe("an expression in a plan", () => {
  test("is one word of a shell's line, whatever the value holds, or text in its quotes", async () => {
    using place = planAfter(
      { nasty: NASTY, list: [1, "two"] },
      `  next: { needs: first, run: 'printf "%s\\0" \${{ needs.first.result.nasty }} ` +
        `"<\${{ needs.first.result.nasty }}>" \${{ needs.first.result.list }} \${{ needs.first.state }} > seen' }`,
    );
    const { code, out } = await place.run();
    assert.equal(code, 0, out);
    assert.deepEqual(seen(place), [NASTY, `<${NASTY}>`, '[1,"two"]', "done"]);
  });

  test("fills words, variables and the input of a command", async () => {
    using place = planAfter(
      { path: NASTY },
      `  words: { needs: first, run: [./show, 'is=\${{ needs.first.result.path }}'] }
  line: { needs: words, shell: false, run: "./show '\${{ needs.words.state }} \${{ needs.words.taskId != null }}'" }
  other: { needs: [line, first], run: 'printf "%s\\0" "$X" "$(cat; echo x)" >> seen',
    env: { X: '\${{ needs.first.result.path }}' },
    input: 'in \${{ needs.first.result }}' }`,
    );
    writeFileSync(join(place.directory, "show"), `#!/bin/sh\nprintf '%s\\0' "$@" >> seen\n`, { mode: 0o755 });
    const { code, out } = await place.run();
    assert.equal(code, 0, out);
    assert.deepEqual(seen(place), [`is=${NASTY}`, "done true", NASTY, `in ${JSON.stringify({ path: NASTY })}x`]);
  });

  test("is filled into the check of a loop as into its command, beside the command's own", async () => {
    using place = planAfter(
      { nasty: NASTY, end: "2" },
      `  next: { needs: first, run: 'echo \${{ needs.first.state }} >> ran',
    loop: { max: 3, until: 'printf "%s\\0" \${{ needs.first.result.nasty }} > seen; ` +
        `test "$DROVER_ROUND" = \${{ needs.first.result.end }}' } }`,
    );
    const { code, out } = await place.run();
    assert.equal(code, 0, out);
    assert.deepEqual([place.ran(), seen(place)], [["first", "done", "done"], [NASTY]]);
  });

  test("that names a value which is not there fails its task at once, by that name", async () => {
    using place = planAfter(
      { a: 1 },
      `  next: { needs: first, attempts: 5, run: 'echo \${{ needs.first.result.b }} >> ran' }`,
    );
    const { code, out } = await place.run();
    assert.equal(code, 1);
    assert.match(steady(out, place).join("\n"), /\nnext +failed {2}1 {2}T {2}needs\.first\.result\.b is not there/);
    assert.deepEqual(place.ran(), ["first"]);
  });

  test("that holds a zero byte, or is longer than a word may be, fails its task and says so", async () => {
    using place = planAfter(
      { zero: "a\0b", long: "x".repeat(200_000) },
      `  zero: { needs: first, run: 'echo \${{ needs.first.result.zero }}' }
  long: { needs: first, run: 'echo \${{ needs.first.result.long }}' }`,
    );
    const { code, out } = await place.run();
    assert.equal(code, 1);
    assert.match(out, /needs\.first\.result\.zero holds a zero byte/);
    assert.match(out, /needs\.first\.result\.long makes a word of 200000 bytes/);
  });

  test("reads results that are too large to be handed along, and a command finds those in files", async () => {
    const large = JSON.stringify({ n: 7, text: "x".repeat(200_000) });
    using place = planDirectory(`workers: { slots: 1 }
tasks:
  a: cat value.json > "$DROVER_RESULT_FILE"
  b: { needs: a, run: 'cat value.json > "$DROVER_RESULT_FILE"' }
  c:
    needs: [a, b]
    run: |
      printf '%s\\0' \${{ needs.a.result.n }} \${{ needs.b.result.n }} > seen
      printf '%s\\0' "$(cat "$DROVER_INPUTS_DIR/b/result.json" | wc -c | tr -d ' ')" >> seen
      grep -c '"file":' "$DROVER_INPUTS_FILE" >> ran`);
    writeFileSync(join(place.directory, "value.json"), large);
    const { code, out } = await place.run();
    assert.equal(code, 0, out);
    assert.deepEqual([seen(place), place.ran()], [["7", "7", String(large.length)], ["1"]]);
  });

  test("is of the work: what is done is known again, and another expression runs its task anew", async () => {
    const tasks = `  next: { needs: first, run: 'echo \${{ needs.first.result.a }} >> ran' }`;
    using place = planAfter({ a: "one", b: "two" }, tasks);
    assert.equal((await place.run()).code, 0);
    assert.equal((await place.run()).code, 0);
    assert.deepEqual(place.ran(), ["first", "one"]);
    const plan = place.read("plan.yml");
    writeFileSync(join(place.directory, "plan.yml"), plan.replace("result.a", "result.b"));
    assert.equal((await place.run()).code, 0);
    assert.deepEqual(place.ran(), ["first", "one", "two"], "the result of the first is still there for it");
  });

  test("decides in if whether its task runs; one that does not is no failure, nor are those behind it", async () => {
    using place = planAfter(
      { ok: true, count: 0 },
      `  yes: { needs: first, if: 'needs.first.result.ok && needs.first.state == "done"', run: echo yes >> ran }
  no: { needs: first, if: needs.first.result.count, run: echo no >> ran }
  marked: { needs: first, if: "\${{ !needs.first.result.ok }}", run: echo marked >> ran }
  never: { if: false, run: echo never >> ran }
  behind: { needs: no, run: echo behind >> ran }
  report: { needs: [no, yes], onDependencyFailure: run,
    run: "echo \${{ needs.no.state }} \${{ needs.no.error }} >> ran" }`,
    );
    const { code, out } = await place.run();
    assert.equal(code, 0, out);
    assert.deepEqual(place.ran(), ["first", "yes", "skipped if: needs.first.result.count"]);
    const lines = steady(out, place);
    assert.ok(lines.includes("no  skipped  1  T  if: needs.first.result.count"), out);
    assert.ok(lines.includes("behind  skipped  needs no, which was skipped"), out);
    assert.match(out, /: 3 of 7 done, 4 skipped, in /);
    const again = await place.run();
    assert.deepEqual(
      [again.code, again.out],
      [0, "plan: all of it (7 tasks) was done before; --fresh runs it anew.\n"],
    );
    assert.deepEqual(place.ran(), ["first", "yes", "skipped if: needs.first.result.count"]);
  });

  test("in if that names a value which is not there fails its task, unless it is compared with null", async () => {
    using place = planAfter(
      {},
      `  bad: { needs: first, if: needs.first.result.gone, run: echo bad >> ran }
  good: { needs: first, if: needs.first.result.gone == null, run: echo good >> ran }`,
    );
    const { code, out } = await place.run();
    assert.equal(code, 1);
    assert.match(out, /bad +failed +1 .* needs\.first\.result\.gone is not there/);
    assert.deepEqual(place.ran(), ["first", "good"]);
  });

  test("names one task of many by its values, with those of its own", async () => {
    using place = planDirectory(`tasks:
  build: { run: 'printf "\\"%s\\"" "$OS" > "$DROVER_RESULT_FILE"', for: { OS: [a, b] } }
  test: { needs: "build[\${OS}]", for: { OS: [a, b] }, run: 'echo \${{ needs["build[\${OS}]"].result }} > seen-$OS' }`);
    const { code, out } = await place.run();
    assert.equal(code, 0, out);
    assert.deepEqual([place.read("seen-a"), place.read("seen-b")], ["a\n", "b\n"]);
  });
});
