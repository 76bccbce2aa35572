/**
 * src/protocol/generated: the types of what people write and read, written from the schemas.
 *
 *     npx node test/schema-declarations.ts        writes every file anew
 *
 * A schema holds each field, its kind, its default and its sentence. A type kept by hand beside it says the same a
 * second time, and without the sentence an editor has nothing to show. A test compares the files with the schemas.
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { notesOf, type Schema } from "../src/protocol/schema/schema.ts";
import { coreSections } from "../src/protocol/settings/schema.ts";

const ROOT = join(import.meta.dirname, "..");
const WIDTH = 100;

type Shown = Schema & {
  readonly properties?: Readonly<Record<string, Shown>>;
  readonly required?: readonly string[];
  readonly items?: Shown;
  readonly anyOf?: readonly Shown[];
  readonly additionalProperties?: boolean | Shown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly type?: string;
};
/** The name of a type by the structure of its schema, so that a shape that is used twice is declared once. */
type Names = ReadonlyMap<string, string>;
type Named = readonly [name: string, schema: Schema];

const ABOUT_A_USE = new Set(["description", "default", "examples", "expected", "~optional"]);
const structure = (schema: Schema): string =>
  JSON.stringify(schema, function (key, value) {
    return ABOUT_A_USE.has(key) && this === schema ? undefined : value;
  });
const namesOf = (named: readonly Named[]): Names =>
  new Map(named.toReversed().map(([name, schema]) => [structure(schema), name]));

function typeOf(schema: Shown, names: Names, isNamed: boolean = true): string {
  const { shownAs } = notesOf(schema);
  if (shownAs !== undefined) return typeOf(shownAs as Shown, names);
  const name = isNamed ? names.get(structure(schema)) : undefined;
  if (name !== undefined) return name;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return union(schema.enum.map((value) => JSON.stringify(value)));
  if (schema.anyOf !== undefined) return union(schema.anyOf.map((one) => typeOf(one, names)));
  switch (schema.type) {
    case "integer":
      return "number";
    case "array":
      return `readonly ${inBrackets(typeOf(schema.items as Shown, names))}[]`;
    case "object":
      return objectType(schema, names);
    default:
      return schema.type ?? "unknown";
  }
}

const union = (types: readonly string[]): string => [...new Set(types)].join(" | ");
const inBrackets = (type: string): string => (type.includes(" | ") && !type.startsWith("{") ? `(${type})` : type);

function objectType({ properties, required = [], additionalProperties: rest }: Shown, names: Names): string {
  const item = typeof rest === "object" ? typeOf(rest, names) : "unknown";
  if (properties === undefined) return `Readonly<Record<string, ${item}>>`;
  const entries = Object.entries(properties).map(([key, field]) => ({ key, field, type: typeOf(field, names) }));
  const fields = entries.map(
    ({ key, field, type }) => `${comment(field)}readonly ${key}${required.includes(key) ? "" : "?"}: ${type};`,
  );
  // What stands under a name of its own is also one of all names, as far as the compiler can say.
  const all = union([item, ...entries.map(({ type }) => type), "undefined"]);
  const others = typeof rest === "object" ? [`/** Others, each by its name. */\nreadonly [name: string]: ${all};`] : [];
  return `{\n${[...fields, ...others].join("\n")}\n}`;
}

/** The sentence of a schema, with its default, as people see it on a field. */
function comment(schema: Schema, fallback: string = ""): string {
  const { description = fallback, default: value } = notesOf(schema);
  const shown = typeof value === "string" ? value : JSON.stringify(value);
  const said = [description, value === undefined ? "" : `Default: ${shown}.`].filter((part) => part !== "").join(" ");
  if (said === "") return "";
  const lines = wrapped(said.replaceAll("*/", "*\\/"));
  return lines.length === 1 ? `/** ${lines[0]} */\n` : `/**\n${lines.map((line) => ` * ${line}\n`).join("")} */\n`;
}

function wrapped(text: string): string[] {
  const lines: string[] = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1) as string;
    if (last !== "" && last.length + word.length >= WIDTH) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines;
}

const declared = ([name, schema]: Named, names: Names): string =>
  `${comment(schema)}export type ${name} = ${typeOf(schema as Shown, names, false)};\n`;

// ------------------------------------------------------------------- config

/** The config as the engine takes it: the sections of the file without those that are for the service around it. */
function configInput(): string {
  const { log, ...sections } = coreSections;
  const { url: _, ...logKnobs } = (log as Shown).properties as Record<string, Schema>;
  const whole = {
    type: "object",
    description:
      "What differs from the defaults. Spans are milliseconds, or text with a unit: 250ms, 30s, 5m, 24h, 30d.",
    properties: { ...sections, log: { ...log, properties: logKnobs } },
  } as unknown as Schema;
  const parts: readonly Named[] = [
    ["SchedulerInput", coreSections.scheduler as Schema],
    ["ProjectInput", (coreSections.projects as Shown).additionalProperties as Schema],
    ["GateInput", (coreSections.gates as Shown).additionalProperties as Schema],
    ["BudgetInput", coreSections.budget as Schema],
  ];
  const names = namesOf(parts);
  const all: readonly Named[] = [...parts, ["ConfigInput", whole]];
  return all.map((named) => declared(named, names)).join("\n");
}

// -------------------------------------------------------------------- files

const HEAD = (what: string): string =>
  `/**\n * ${what}\n *\n * Written by test/schema-declarations.ts from the schemas: change those, and run it.\n */\n\n`;

/** Every generated file with its text, as the formatter writes it. */
export const generatedFiles = (): ReadonlyMap<string, string> =>
  new Map(
    Object.entries({
      "src/protocol/generated/config-input.ts": HEAD("The config as people write it in TypeScript.") + configInput(),
    }).map(([path, text]) => [path, formatted(path, text)]),
  );

function formatted(path: string, text: string): string {
  const biome = join(ROOT, "node_modules/.bin/biome");
  const done = spawnSync(biome, ["format", `--stdin-file-path=${path}`], { cwd: ROOT, input: text, encoding: "utf8" });
  if (done.status !== 0) throw new Error(`${path}: ${done.stderr}\n${text}`);
  return done.stdout;
}

if (import.meta.main) for (const [path, text] of generatedFiles()) writeFileSync(join(ROOT, path), text);
