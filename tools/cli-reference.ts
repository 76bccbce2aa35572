/**
 * The tables of docs/reference/cli.md, written from the verbs themselves.
 *
 *     npx node tools/cli-reference.ts        writes them into the file, between its two marks
 *
 * The same words as `drover help VERB`, for those who read before they install. A test compares the two.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { EXIT_MEANINGS } from "../src/cli/shell/problem.ts";
import type { Verb } from "../src/cli/shell/verb.ts";
import { LOADED_VERBS } from "../test/kits/cli/loaded-verbs.ts";

const FILE = join(import.meta.dirname, "../docs/reference/cli.md");
const BEGIN = "<!-- written by tools/cli-reference.ts: begin -->";
const END = "<!-- written by tools/cli-reference.ts: end -->";

export const cliReferenceFile = (): string => readFileSync(FILE, "utf8");

/** The file with its tables as they should be. */
export function withVerbs(text: string): string {
  const [before, rest = ""] = text.split(BEGIN);
  const [, after = ""] = rest.split(END);
  const codes = EXIT_MEANINGS.map(([code, name, meaning]) => [String(code), name, meaning]);
  const parts = [
    `## Exit codes\n\n${table(["code", "name", "meaning"], codes)}`,
    ...LOADED_VERBS.flatMap((verb) => verbTexts(verb)),
  ];
  return `${before}${BEGIN}\n\n${parts.join("\n")}\n${END}${after}`;
}

function verbTexts(verb: Verb<never>, path: readonly string[] = ["drover"]): string[] {
  const names = [...path, verb.name];
  const takes = (verb.takes ?? []).map(({ name }) => name);
  const depth = path.length === 1 ? "##" : "###";
  const parts = [
    `${depth} ${names.join(" ")}\n`,
    `\`${[...names, ...takes].join(" ")}\`\n`,
    `${plain(sentence(verb.about ?? verb.summary))}\n`,
    (verb.takes ?? []).length === 0 ? "" : table(["argument", "meaning"], (verb.takes ?? []).map(argumentRow)),
    (verb.flags ?? []).length === 0 ? "" : table(["flag", "meaning"], (verb.flags ?? []).map(flagRow)),
    (verb.examples ?? []).length === 0
      ? ""
      : `\`\`\`text\n${(verb.examples ?? []).map(exampleText).join("\n")}\n\`\`\`\n`,
  ];
  const own = parts.filter((part) => part !== "").join("\n");
  return [own, ...(verb.verbs ?? []).flatMap((inner) => verbTexts(inner, names))];
}

type Argument = NonNullable<Verb["takes"]>[number];
type Flag = NonNullable<Verb["flags"]>[number];
const chosen = (choices: readonly string[] | undefined): string =>
  choices === undefined ? "" : `: ${choices.map((choice) => `\`${choice}\``).join(", ")}`;
const argumentRow = ({ name, about, choices }: Argument): string[] => [
  `\`${name}\``,
  `${plain(about)}${chosen(choices)}`,
];
const flagRow = ({ flags, about, choices }: Flag): string[] => [`\`${flags}\``, `${plain(about)}${chosen(choices)}`];
const exampleText = ([command, meaning]: readonly [string, string]): string => `${command}\n    ${meaning}`;
const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}`.replaceAll(/\s+/g, " ").replace(/\.?$/, ".");
const plain = (text: string): string => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return `${[line(heads), line(heads.map(() => "---")), ...rows.map(line)].join("\n")}\n`;
}

if (import.meta.main) writeFileSync(FILE, withVerbs(cliReferenceFile()));
