/**
 * Completion in zsh and fish, asked of the shells themselves. What bash offers is tried in command-line.test.ts.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { testTerminal } from "../../../test/kits/cli/test-terminal.ts";
import { isMissing } from "../../../test/kits/optional-tool.ts";
import { runCommandLine } from "../command-line.ts";
import { VERBS } from "../verbs.ts";
import type { Shell } from "./completion.ts";

const LIMIT_MS = 60_000;
/** A home that has nothing of the person's own, and a directory with known files to complete in. */
const home = mkdtempSync(join(tmpdir(), "drover-completion-"));
const cwd = join(home, "work");
mkdirSync(cwd);
for (const file of ["plan.yml", "players.txt"]) writeFileSync(join(cwd, file), "");
after(() => rmSync(home, { recursive: true, force: true }));

const verbs = [...VERBS.map(({ name }) => name), "help"].sort();
const rows: [line: string, offered: readonly string[]][] = [
  ["drover ", verbs],
  ["drover comp", ["completion"]],
  ["drover --json comp", ["completion"]],
  ["drover config s", ["schema", "show"]],
  ["drover config show --eff", ["--effective"]],
  ["drover config show --js", ["--json"]],
  ["drover -", ["--help", "--json", "--no-color", "--url", "--version", "-V", "-h"]],
  ["drover completion ", ["bash", "fish", "zsh"]],
  ["drover submit --on-dependency-failure ", ["run", "skip"]],
  ["drover submit --appr", ["--approval"]],
  ["drover submit --priority ", ["critical", "high", "low", "normal"]],
  ["drover tasks --state re", ["rejected"]],
  ["drover help ", [...verbs, "exit-codes"].sort()],
  ["drover config show --config pl", ["plan.yml", "players.txt"]],
  ["drover run ", ["plan.yml", "players.txt"]],
  ["drover run --dry", ["--dry-run"]],
  ["drover task pl", []],
  ["drover tasks --project pl", []],
  ["drover config show --set pl", []],
];

async function script(shell: Shell): Promise<string> {
  const terminal = testTerminal();
  assert.equal(await runCommandLine(["completion", shell], terminal, VERBS), 0);
  return terminal.shown();
}

/** Runs a shell in the directory with the known files; it must end well and complain of nothing. */
function run(shell: Shell, args: readonly string[], env: Record<string, string> = {}): string {
  const options = { cwd, encoding: "utf8", timeout: LIMIT_MS, env: { PATH: process.env.PATH, HOME: home, ...env } };
  const { status, stdout, stderr } = spawnSync(shell, args, options as { encoding: "utf8" });
  assert.deepEqual([status, stderr], [0, ""]);
  return stdout;
}

type Offered = ReadonlyMap<string, readonly string[]>;

/** From lines of `? LINE`, each followed by what was offered for it. */
function offersOf(text: string): Offered {
  const parts = text.split(/^\? /m).slice(1);
  return new Map(
    parts.map((part) => {
      const [line = "", ...words] = part.split("\n");
      return [line, [...new Set(words.filter((word) => word !== ""))].sort()];
    }),
  );
}

function tryRows(ask: () => Promise<Offered>): void {
  let offered: Offered = new Map();
  before(async () => {
    offered = await ask();
  });
  for (const [line, words] of rows)
    test(`"${line}" is offered ${words.length === 0 ? "nothing" : words.join(" ")}`, () =>
      assert.deepEqual(offered.get(line), words));
}

// ---------------------------------------------------------------------- fish

const FISH_ASKS = `
source $argv[1]
for line in $argv[2..]
    echo "? $line"
    complete -C "$line" | string replace --regex '\\t.*' ''
end
exit 0
`;

describe("fish", { skip: isMissing("fish", "fish") }, () => {
  tryRows(async () => {
    const file = join(home, "drover.fish");
    writeFileSync(file, await script("fish"));
    const lines = rows.map(([line]) => line);
    return offersOf(run("fish", ["--no-config", "-c", FISH_ASKS, file, ...lines]));
  });
});

// ----------------------------------------------------------------------- zsh

/** zsh completes only on a terminal, so one zsh gives another one a terminal, and waits until that has ended. */
const ZSH_TERMINAL = "zmodload zsh/zpty && zpty shell zsh -i && while zpty -r shell; do :; done > /dev/null";

/** The inner one: completes each line as Tab would, as soon as it can be typed to, and notes what is offered. */
const zshAsks = (load: string, lines: readonly string[]): string => `
exec 2> $HOME/errors
PROMPT=
autoload -Uz compinit
${load}
compadd() {
  # With one of these it is a question of the completion system to itself, and offers nothing.
  if [[ " $* " == *' -'[OAD]' '* ]]; then builtin compadd "$@"; return; fi
  local -a hits
  builtin compadd -O hits "$@"
  print -rl -- $hits >> $HOME/offered
  builtin compadd "$@"
}
zle-line-init() {
  for line in ${lines.map((line) => `'${line}'`).join(" ")}; do
    print -r -- "? $line" >> $HOME/offered
    BUFFER=$line CURSOR=$#line
    zle list-choices
  done
  exit
}
zle -N zle-line-init
`;

const zshLoads: [name: string, load: (file: string) => string][] = [
  ["zsh, by eval after compinit", (file) => `compinit -D -u; eval "$(<${file})"`],
  ["zsh, as a file in a directory of fpath", (file) => `fpath=(${join(file, "..")} $fpath); compinit -D -u`],
];
for (const [name, load] of zshLoads)
  describe(name, { skip: isMissing("zsh", "zsh") }, () => {
    tryRows(async () => {
      const place = mkdtempSync(join(home, "zsh-"));
      mkdirSync(join(place, "functions"));
      const file = join(place, "functions", "_drover");
      writeFileSync(file, await script("zsh"));
      const lines = rows.map(([line]) => line);
      writeFileSync(join(place, ".zshrc"), zshAsks(load(file), lines));
      run("zsh", ["-f", "-c", ZSH_TERMINAL], { HOME: place, TERM: "xterm" });
      assert.equal(readFileSync(join(place, "errors"), "utf8"), "");
      return offersOf(readFileSync(join(place, "offered"), "utf8"));
    });
  });
