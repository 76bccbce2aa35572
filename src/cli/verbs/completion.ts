/**
 * `drover completion bash|zsh|fish`: the script that makes the Tab key work, written from the commands themselves.
 *
 * The scripts hold everything they need, so that pressing Tab starts no process: the tree of verbs, the flags of each,
 * and the words a flag takes where those are few. Since they are made from commander's own tree, a verb or flag that is
 * added completes without anybody thinking of it. File names are offered where what is wanted is a file, by the name it
 * has in the help (`<file>`, `<directory>`); for ids and other free values nothing is. Flags are offered behind
 * a dash: before that they would stand in the way of the verbs and the files.
 */
import type { Argument, Command, Option } from "commander";
import { EXIT } from "../shell/problem.ts";
import type { VerbBody } from "../shell/verb.ts";

export type Shell = "bash" | "zsh" | "fish";
const SHELLS: readonly Shell[] = ["bash", "zsh", "fish"];

type Word = { readonly word: string; readonly about: string };
type Flag = { readonly names: readonly string[]; readonly about: string; readonly value: Value };
type Value =
  | { readonly kind: "none" }
  | { readonly kind: "free" }
  | { readonly kind: "file" }
  | { readonly kind: "words"; readonly words: readonly string[] };
type VerbNode = {
  /** The verbs that lead here, such as `config check`; empty at the top. */
  readonly path: string;
  readonly verbs: readonly Word[];
  readonly flags: readonly Flag[];
  readonly words: readonly string[];
  /** Whether what stands here may be a file. */
  readonly takesFile: boolean;
};

/** A line or a command often begins with the path of a program. */
const FILES: ReadonlySet<string> = new Set(["file", "directory", "path", "line", "command"]);

export const completionVerb: VerbBody<never> = {
  takes: [{ name: "<shell>", about: "which shell", choices: SHELLS }],
  examples: [
    ['eval "$(drover completion bash)"', "in ~/.bashrc"],
    ['eval "$(drover completion zsh)"', "in ~/.zshrc, after compinit"],
    ["drover completion fish > ~/.config/fish/completions/drover.fish", "once"],
  ],
  run: async ({ args, terminal, program }) => {
    const { root, load } = await program();
    await Promise.all(root.commands.map(load));
    terminal.out(completionScript(args[0] as Shell, root));
    return EXIT.ok;
  },
};

function completionScript(shell: Shell, program: Command): string {
  const nodes = nodesOf(program, [], []);
  switch (shell) {
    case "bash":
      return bash(nodes);
    case "zsh":
      return zsh(nodes);
    case "fish":
      return fish(nodes);
    default:
      return shell satisfies never;
  }
}

function nodesOf(command: Command, path: readonly string[], inherited: readonly Flag[]): VerbNode[] {
  const own = command.options.filter(({ hidden }) => !hidden).map(flagOf);
  const flags = [...own, ...inherited, HELP];
  const visible = command.createHelp().visibleCommands(command);
  const here: VerbNode = {
    path: path.join(" "),
    verbs: visible.map((verb) => ({ word: verb.name(), about: verb.summary() || verb.description() })),
    flags,
    words: command.registeredArguments.flatMap(({ argChoices }: Argument) => argChoices ?? []),
    takesFile: command.registeredArguments.some((argument) => FILES.has(argument.name())),
  };
  const passedOn = [...own.filter(({ names }) => !names.includes("--version")), ...inherited];
  return [here, ...visible.flatMap((verb) => nodesOf(verb, [...path, verb.name()], passedOn))];
}

const HELP: Flag = { names: ["-h", "--help"], about: "show help", value: { kind: "none" } };

function flagOf({ flags, short, long, description, required, optional, argChoices }: Option): Flag {
  const names = [short, long].filter((name) => name !== undefined);
  const [, wanted = ""] = /[<[](\w+)[\].>]/.exec(flags) ?? [];
  const free: Value = { kind: FILES.has(wanted) ? "file" : "free" };
  const takes: Value = argChoices === undefined ? free : { kind: "words", words: argChoices };
  return { names, about: description, value: required || optional ? takes : { kind: "none" } };
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const summaryOf = (about: string): string => (about.split("\n")[0] ?? "").slice(0, 80);

// ---------------------------------------------------------------------- bash

function bash(nodes: readonly VerbNode[]): string {
  const steps = nodes
    .filter(({ path }) => path !== "")
    .map(({ path }) => `      ${quoted(path)}) path=${quoted(path)} ;;`);
  const values = nodes.flatMap(({ path, flags }) =>
    flags.flatMap(({ names, value }) =>
      value.kind === "none" ? [] : names.map((name) => `    ${quoted(`${path}:${name}`)}) ${bashValue(value)} ;;`),
    ),
  );
  const words = nodes.map(({ path, verbs, flags, words: own, takesFile }) => {
    const all = [...verbs.map(({ word }) => word), ...own];
    const dashed = flags.flatMap(({ names }) => names);
    const files = takesFile ? " files=yes" : "";
    return `    ${quoted(path)}) words=${quoted(all.join(" "))} flags=${quoted(dashed.join(" "))}${files} ;;`;
  });
  return `# Completion of drover for bash. In ~/.bashrc:  eval "$(drover completion bash)"
_drover_files() { local IFS=$'\\n'; COMPREPLY=($(compgen -f -- "$1")); }
_drover_words() { COMPREPLY=($(compgen -W "$2" -- "$1")); }
_drover() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" path="" words="" flags="" files="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${path:+$path }\${COMP_WORDS[i]}" in
${steps.join("\n")}
    esac
  done
  case "$path:$prev" in
${values.join("\n")}
  esac
  case "$path" in
${words.join("\n")}
  esac
  if [[ "$cur" == -* ]]; then words="$flags" files=""; fi
  _drover_words "$cur" "$words"
  if [[ \${#COMPREPLY[@]} -eq 0 && -n "$files" ]]; then _drover_files "$cur"; fi
}
complete -o filenames -F _drover drover
`;
}

function bashValue(value: Exclude<Value, { kind: "none" }>): string {
  if (value.kind === "words") return `_drover_words "$cur" ${quoted(value.words.join(" "))}; return`;
  return value.kind === "file" ? '_drover_files "$cur"; return' : "return";
}

// ----------------------------------------------------------------------- zsh

function zsh(nodes: readonly VerbNode[]): string {
  const cases = nodes.map(({ path, verbs, flags, words, takesFile }) => {
    const plain = [...verbs.map(({ word, about }) => zshPair(word, about)), ...words.map((word) => zshPair(word, ""))];
    const dashed = flags.flatMap(({ names, about }) => names.map((name) => zshPair(name, about)));
    const list = (name: string, pairs: readonly string[]): string =>
      `      ${name}=(\n${pairs.map((pair) => `        ${pair}\n`).join("")}      )`;
    const files = takesFile ? " files=yes" : "";
    return `    ${quoted(path)})\n${list("plain", plain)}\n${list("dashed", dashed)}${files} ;;`;
  });
  const values = nodes.flatMap(({ path, flags }) =>
    flags.flatMap(({ names, value }) =>
      value.kind === "none"
        ? []
        : names.map((name) => `    ${quoted(`${path}:${name}`)}) ${zshValue(value)}; return ;;`),
    ),
  );
  const steps = nodes
    .filter(({ path }) => path !== "")
    .map(({ path }) => `      ${quoted(path)}) verb=${quoted(path)} ;;`);
  return `#compdef drover
# Completion of drover for zsh. In ~/.zshrc, after compinit:  eval "$(drover completion zsh)"
_drover() {
  local verb="" files="" word
  local -a plain dashed
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${verb:+$verb }$word" in
${steps.join("\n")}
    esac
  done
  case "$verb:\${words[CURRENT-1]}" in
${values.join("\n")}
  esac
  case "$verb" in
${cases.join("\n")}
  esac
  if [[ "$PREFIX" == -* ]]; then _describe -t flags flag dashed; return; fi
  _describe -t verbs verb plain || { [[ -n "$files" ]] && _files }
}
# As a file _drover in a directory of $fpath this is the function itself, and the first Tab is waiting.
if [[ "$funcstack[1]" == _drover ]]; then _drover "$@"; else compdef _drover drover; fi
`;
}

const zshPair = (word: string, about: string): string =>
  quoted(`${word.replaceAll(":", "\\:")}${about === "" ? "" : `:${summaryOf(about)}`}`);

function zshValue(value: Exclude<Value, { kind: "none" }>): string {
  if (value.kind === "words") return `compadd -- ${value.words.map(quoted).join(" ")}`;
  return value.kind === "file" ? "_files" : ":";
}

// ---------------------------------------------------------------------- fish

function fish(nodes: readonly VerbNode[]): string {
  const lines = nodes.flatMap(({ path, verbs, flags, words, takesFile }) => {
    const condition = `-n ${quoted(`__drover_at ${quoted(path)}`)}`;
    return [
      ...(takesFile ? [] : [`complete -c drover -f ${condition}`]),
      ...verbs.map(({ word, about }) => `complete -c drover -f ${condition} -a ${word} -d ${quoted(summaryOf(about))}`),
      ...words.map((word) => `complete -c drover -f ${condition} -a ${quoted(word)}`),
      ...flags.map((flag) => fishFlag(flag, condition)),
    ];
  });
  const paths = nodes.filter(({ path }) => path !== "").map(({ path }) => quoted(path));
  return `# Completion of drover for fish. Once:  drover completion fish > ~/.config/fish/completions/drover.fish
function __drover_at
    set -l verb ""
    for word in (commandline -opc)[2..]
        set -l longer (string trim "$verb $word")
        if contains -- $longer ${paths.join(" ")}
            set verb $longer
        end
    end
    test "$verb" = "$argv[1]"
end
${lines.join("\n")}
`;
}

function fishFlag({ names, about, value }: Flag, condition: string): string {
  const spelled = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  return `complete -c drover ${condition} ${spelled.join(" ")}${fishValue(value)} -d ${quoted(summaryOf(about))}`;
}

function fishValue(value: Value): string {
  if (value.kind === "words") return ` -x -a ${quoted(value.words.join(" "))}`;
  return value.kind === "none" ? "" : value.kind === "file" ? " -r -F" : " -x";
}
