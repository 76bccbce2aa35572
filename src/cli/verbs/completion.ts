/**
 * `drover completion bash|zsh|fish`: the script that makes the Tab key work, written from the verbs themselves.
 *
 * The scripts hold everything they need, so that pressing Tab starts no process: the tree of verbs, the flags of each,
 * and the words a flag takes where those are few. Since they are made from the same descriptions as the help, a verb or
 * flag that is added completes without anybody thinking of it. File names are offered where what is wanted is a file,
 * by the name it has in the help (`<file>`, `<directory>`); for ids and other free values nothing is. Flags are offered
 * behind a dash: before that they would stand in the way of the verbs and the files.
 */
import { EXIT } from "../shell/problem.ts";
import { type FlagSpec, GLOBAL_FLAGS, type ListedVerb, type VerbBody } from "../shell/verb.ts";

export type Shell = "bash" | "zsh" | "fish";

type Word = { readonly word: string; readonly about: string };
type Flag = { readonly names: readonly string[]; readonly about: string; readonly value: Value };
/** What a flag takes; a list is of the words it may be. */
type Value = "none" | "free" | "file" | readonly string[];
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
  takes: [{ name: "<shell>", about: "which shell", choices: ["bash", "zsh", "fish"] satisfies Shell[] }],
  examples: [
    ['eval "$(drover completion bash)"', "in ~/.bashrc"],
    ['eval "$(drover completion zsh)"', "in ~/.zshrc, after compinit"],
    ["drover completion fish > ~/.config/fish/completions/drover.fish", "once"],
  ],
  run: async ({ args, terminal, program }) => {
    const { verbs } = await program();
    const loaded = verbs.map(async ({ load, ...named }) => ({ ...named, ...(await load()) }));
    const all = nodesOf({ verbs: await Promise.all(loaded) }, [], GLOBAL_FLAGS.map(flagOf));
    const nodes = all.map((node): VerbNode => {
      if (node.path === "") return { ...node, flags: [VERSION, ...node.flags] };
      if (node.path !== "help") return node;
      // Whatever verb there is, there is help with it; config is a topic too.
      const topics = node.words.filter((word) => !verbs.some(({ name }) => name === word));
      return { ...node, verbs: verbs.map(wordOf), words: topics };
    });
    terminal.out(SCRIPTS[args[0] as Shell](nodes));
    return EXIT.ok;
  },
};

function nodesOf(
  { verbs = [], takes = [], flags = [] }: VerbBody<never>,
  path: readonly string[],
  shared: readonly Flag[],
): VerbNode[] {
  const here: VerbNode = {
    path: path.join(" "),
    verbs: verbs.map(wordOf),
    flags: [...flags.map(flagOf), ...shared, HELP],
    words: takes.flatMap(({ choices, words }) => choices ?? words ?? []),
    takesFile: takes.some(({ name }) => FILES.has(name.replaceAll(/\W/g, ""))),
  };
  return [here, ...verbs.flatMap((verb) => nodesOf(verb, [...path, verb.name], shared))];
}

const wordOf = ({ name, summary }: Pick<ListedVerb, "name" | "summary">): Word => ({ word: name, about: summary });
const HELP: Flag = { names: ["-h", "--help"], about: "show help", value: "none" };
const VERSION: Flag = { names: ["-V", "--version"], about: "print the version", value: "none" };

function flagOf({ flags, about, choices, words }: FlagSpec): Flag {
  // A value that may be left out, as in `--approval [question]`, is free text: nothing is offered for it.
  const [spelled = "", wanted] = flags.replace(/ \[.*/, "").split(" <");
  const free: Value = FILES.has(wanted?.slice(0, -1) ?? "") ? "file" : "free";
  return { names: spelled.split(", "), about, value: wanted === undefined ? "none" : (choices ?? words ?? free) };
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const summaryOf = (about: string): string => (about.split("\n")[0] ?? "").slice(0, 80);

/** Cases of the shell: how each further word leads from one verb to the next. */
const steps = (nodes: readonly VerbNode[], variable: string): string =>
  nodes
    .flatMap(({ path }) => (path === "" ? [] : [`      ${quoted(path)}) ${variable}=${quoted(path)} ;;`]))
    .join("\n");

/** Cases of the shell: what is offered behind a flag that takes a value. */
const values = (nodes: readonly VerbNode[], offer: (value: Exclude<Value, "none">) => string): string =>
  nodes
    .flatMap(({ path, flags }) =>
      flags.flatMap(({ names, value }) =>
        value === "none" ? [] : names.map((name) => `    ${quoted(`${path}:${name}`)}) ${offer(value)}; return ;;`),
      ),
    )
    .join("\n");

// ---------------------------------------------------------------------- bash

function bash(nodes: readonly VerbNode[]): string {
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
${steps(nodes, "path")}
    esac
  done
  case "$path:$prev" in
${values(nodes, bashValue)}
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

function bashValue(value: Exclude<Value, "none">): string {
  if (typeof value !== "string") return `_drover_words "$cur" ${quoted(value.join(" "))}`;
  return value === "file" ? '_drover_files "$cur"' : ":";
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
  return `#compdef drover
# Completion of drover for zsh. In ~/.zshrc, after compinit:  eval "$(drover completion zsh)"
_drover() {
  local verb="" files="" word
  local -a plain dashed
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${verb:+$verb }$word" in
${steps(nodes, "verb")}
    esac
  done
  case "$verb:\${words[CURRENT-1]}" in
${values(nodes, zshValue)}
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

function zshValue(value: Exclude<Value, "none">): string {
  if (typeof value !== "string") return `compadd -- ${value.map(quoted).join(" ")}`;
  return value === "file" ? "_files" : ":";
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
  if (typeof value !== "string") return ` -x -a ${quoted(value.join(" "))}`;
  return value === "none" ? "" : value === "file" ? " -r -F" : " -x";
}

const SCRIPTS: Readonly<Record<Shell, (nodes: readonly VerbNode[]) => string>> = { bash, zsh, fish };
