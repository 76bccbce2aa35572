/**
 * The command line as a whole: overview, help, usage errors, exit codes, completion.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { LOADED_VERBS } from "../../test/kits/cli/loaded-verbs.ts";
import { type TestTerminalOptions, testTerminal } from "../../test/kits/cli/test-terminal.ts";
import { runCommandLine } from "./command-line.ts";
import { CliProblem, EXIT, EXIT_MEANINGS } from "./shell/problem.ts";
import {
  byteCount,
  cpuMillicores,
  type ListedVerb,
  milliseconds,
  number,
  numberAbove,
  several,
  type Verb,
  wholeNumber,
} from "./shell/verb.ts";
import { VERBS } from "./verbs.ts";

const root = join(import.meta.dirname, "../..");
type Ran = { readonly code: number; readonly out: string; readonly err: string };

async function drover(args: readonly string[], options: TestTerminalOptions = {}, verbs = VERBS): Promise<Ran> {
  const terminal = testTerminal(options);
  const code = await runCommandLine(args, terminal, verbs);
  return { code, out: terminal.shown(), err: terminal.complained() };
}

describe("help", () => {
  test("drover alone is a short welcome, and no error", async () => {
    const { code, out, err } = await drover([]);
    assert.deepEqual([code, err], [0, ""]);
    assert.ok(out.startsWith("drover decides which task runs next"), out);
    assert.ok(out.split("\n").length <= 20, "it is short");
  });

  test("drover help lists every verb with a summary", async () => {
    const { code, out } = await drover(["help"]);
    assert.equal(code, 0);
    for (const { name, summary } of VERBS) {
      assert.ok(out.includes(`  ${name}`), `${name} is not in the help`);
      assert.ok(summary.length > 10, `${name} has no summary`);
    }
  });

  const paths = (verbs: readonly Verb<never>[], before: string[]): string[][] =>
    verbs.flatMap((verb) => [
      ...(verb.run === undefined ? [] : [[...before, verb.name]]),
      ...paths(verb.verbs ?? [], [...before, verb.name]),
    ]);
  for (const path of paths(LOADED_VERBS, []))
    test(`drover ${path.join(" ")} --help has examples`, async () => {
      const { code, out, err } = await drover([...path, "--help"]);
      assert.deepEqual([code, err], [0, ""]);
      assert.match(out, /\nExamples:\n {2}\S/);
    });

  test("drover help exit-codes has them all", async () => {
    const { out } = await drover(["help", "exit-codes"]);
    for (const [code, name] of EXIT_MEANINGS) assert.match(out, new RegExp(`^ +${code}  ${name} `, "m"));
    assert.deepEqual(new Set(EXIT_MEANINGS.map(([code]) => code)), new Set(Object.values(EXIT)));
  });

  test("drover help config explains the layers; drover help VERB shows its flags", async () => {
    assert.match((await drover(["help", "config"])).out, /DROVER_SCHEDULER__MAX_IN_FLIGHT=10/);
    assert.match((await drover(["help", "config", "show"])).out, /--effective/);
  });

  test("help with nothing we know says what there is", async () => {
    const { code, err } = await drover(["help", "zebra"]);
    assert.equal(code, 2);
    assert.match(err, /^error: there is no help with "zebra"\nhint: {2}npx drover help lists the verbs/);
  });

  test("the version is the package's", async () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    assert.equal((await drover(["--version"])).out, `${version}\n`);
  });
});

describe("a wrong call", () => {
  const hint = "hint:  its flags, with examples: npx drover help completion\n";
  const rows: [args: string[], err: string][] = [
    [
      ["comptetion"],
      "error: unknown command 'comptetion' (Did you mean completion?)\n" +
        "hint:  npx drover help shows the verbs, npx drover help VERB one of them\n",
    ],
    [
      ["config", "show", "--efective"],
      "error: unknown option '--efective' (Did you mean --effective?)\n" +
        "hint:  its flags, with examples: npx drover help config show\n",
    ],
    // "drover help config" is about the files, and not about the flags.
    [
      ["config", "--efective"],
      "error: unknown option '--efective'\nhint:  its flags, with examples: npx drover config --help\n",
    ],
    [["completion"], `error: missing required argument 'shell'\n${hint}`],
    [
      ["workers", "drian"],
      "error: unknown command 'drian' (Did you mean drain?)\n" +
        "hint:  its flags, with examples: npx drover help workers\n",
    ],
    [
      ["version"],
      "error: unknown command 'version' (Did you mean --version?)\nhint:  npx drover --version prints it\n",
    ],
    [
      ["completion", "tcsh"],
      "error: command-argument value 'tcsh' is invalid for argument 'shell'. Allowed choices are bash, zsh, fish.\n" +
        hint,
    ],
    [
      ["completion", "bash", "zsh"],
      `error: too many arguments for 'completion'. Expected 1 argument but got 2: bash, zsh.\n${hint}`,
    ],
  ];
  test("drover config shows its commands, and says that one is missing", async () => {
    const { err, code } = await drover(["config"]);
    assert.match(err, /Commands:.*error: drover config does nothing by itself: add one of its commands\n$/s);
    assert.equal(code, 2);
  });
  for (const [args, err] of rows)
    test(`drover ${args.join(" ")} is refused with code 2`, async () => {
      const ran = await drover(args);
      assert.deepEqual([ran.code, ran.out], [2, ""]);
      assert.equal(ran.err, err);
    });

  test("with --json the error is JSON", async () => {
    const { err } = await drover(["zebra", "--json"]);
    assert.equal(JSON.parse(err).code, "usage");
  });

  const failing = (run: () => never): ListedVerb => ({ name: "fail", summary: "fails", load: async () => ({ run }) });
  test("what a verb throws on purpose becomes its exit code, in colour on a terminal", async () => {
    const problem = { message: "no\u001b[2J", code: "conflict", exit: EXIT.refused, hint: "wait" };
    const verb = failing(() => {
      throw new CliProblem(problem);
    });
    const plain = await drover(["fail"], {}, [verb]);
    assert.deepEqual([plain.code, plain.err], [4, "error: no␛[2J\nhint:  wait\n"]);
    const painted = await drover(["fail"], { hasColours: true }, [verb]);
    assert.ok(painted.err.startsWith("\u001b[31merror:\u001b[39m "), painted.err);
  });

  test("a bug is not swallowed", async () => {
    const verb = failing(() => {
      throw new TypeError("a bug");
    });
    await assert.rejects(drover(["fail"], {}, [verb]), TypeError);
  });
});

describe("flags as values", () => {
  const good: [name: string, read: (text: string) => unknown, text: string, value: unknown][] = [
    ["milliseconds", milliseconds, "30s", 30_000],
    ["milliseconds", milliseconds, "250ms", 250],
    ["byteCount", byteCount, "512MiB", 536_870_912],
    ["byteCount", byteCount, "1.5 GB", 1_500_000_000],
    ["cpuMillicores", cpuMillicores, "0.5", 500],
    ["cpuMillicores", cpuMillicores, "250m", 250],
    ["wholeNumber", wholeNumber(-5, 5), "-5", -5],
    ["number", number(0), "0.25", 0.25],
    ["numberAbove", numberAbove(0, 10), "10", 10],
    ["numberAbove", numberAbove(0, 10), "0.001", 0.001],
    ["several", (text) => several(text, ["z"]), "a, b", ["z", "a", "b"]],
  ];
  for (const [name, read, text, value] of good) test(`${name} of ${text}`, () => assert.deepEqual(read(text), value));
  const bad: [name: string, read: (text: string) => unknown, text: string][] = [
    ["milliseconds", milliseconds, "soon"],
    ["milliseconds", milliseconds, "250"],
    ["milliseconds", milliseconds, "-1s"],
    ["byteCount", byteCount, "2 zebras"],
    ["cpuMillicores", cpuMillicores, "1e9"],
    ["wholeNumber", wholeNumber(0, 5), "6"],
    ["wholeNumber", wholeNumber(0, 5), "1.0"],
    ["number", number(0), ""],
    ["numberAbove", numberAbove(0, 10), "0"],
    ["numberAbove", numberAbove(0, 10), "10.1"],
    ["numberAbove", numberAbove(0, 10), "abc"],
    ["numberAbove", numberAbove(0, 10), " "],
    ["several", (text) => several(text, undefined), "a,,b"],
  ];
  for (const [name, read, text] of bad)
    test(`${name} refuses "${text}"`, () => assert.throws(() => read(text), /It must be/));
});

describe("completion", () => {
  const OFFER = [
    'eval "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=(); _drover',
    'printf "%s\\n" "$' + '{COMPREPLY[@]}"',
  ].join("\n");
  /** What bash would offer after these words. */
  async function offered(words: readonly string[]): Promise<string[]> {
    const { out } = await drover(["completion", "bash"]);
    const args = ["-c", OFFER, "bash", out, "drover", ...words];
    const { status, stdout, stderr } = spawnSync("bash", args, { encoding: "utf8", cwd: root });
    assert.deepEqual([status, stderr], [0, ""]);
    return stdout.split("\n").filter((line) => line !== "");
  }

  test("every shell gets a script that names every verb", async () => {
    for (const shell of ["bash", "zsh", "fish"]) {
      const { out, code } = await drover(["completion", shell]);
      assert.equal(code, 0);
      for (const { name } of VERBS) assert.ok(out.includes(name), `${shell}: ${name}`);
    }
  });
  test("bash: verbs, the verbs below one, flags, the values of a flag, files", async () => {
    assert.deepEqual(await offered(["comp"]), ["completion"]);
    assert.deepEqual(await offered(["config", "s"]), ["show", "schema"]);
    assert.deepEqual(await offered(["config", "show", "--eff"]), ["--effective"]);
    assert.deepEqual(await offered(["completion", "z"]), ["zsh"]);
    assert.deepEqual(await offered(["config", "show", "--config", "packa"]), ["package-lock.json", "package.json"]);
    assert.deepEqual(await offered(["config", "show", "--js"]), ["--json"]);
    assert.deepEqual(await offered(["tasks", "--state", "re"]), ["rejected"]);
    assert.deepEqual(await offered(["submit", "--priority", ""]), ["critical", "high", "normal", "low"]);
    assert.deepEqual(await offered(["help", "co"]), ["config", "completion"]);
    assert.deepEqual(await offered(["help", "exit"]), ["exit-codes"]);
    assert.deepEqual(await offered(["run", "package.j"]), ["package.json"]);
    assert.ok((await offered(["run", ""])).includes("package.json"), "flags do not stand in the way of files");
  });
  test("bash: no file names where an id or another free value is wanted", async () => {
    for (const words of [
      ["task"],
      ["why"],
      ["schedules", "remove"],
      ["submit"],
      ["tasks", "--project"],
      ["config", "show", "--set"],
    ])
      assert.deepEqual(await offered([...words, "packa"]), [], words.join(" "));
  });
});
