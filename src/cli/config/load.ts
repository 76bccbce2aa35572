/**
 * The whole config: every layer found, merged, and checked as one.
 *
 *     defaults → user file → ./drover.yml (or --config FILE) → DROVER_* → flags
 *
 * The user file is $XDG_CONFIG_HOME/drover/drover.yml, or ~/.config/drover/drover.yml. Either the whole is good, or
 * there is nothing but a list of everything that is wrong with it: a person mends a file once, not once per mistake.
 * What the server is patched with while it runs lies over all of this, and is the server's business.
 */
import { existsSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import type { Settings } from "../../protocol/index.ts";
import { holdsFields, type JsonSchema, knownKeys, type Path, schemaUnder } from "../../protocol/schema/index.ts";
import type { Environment } from "../shell/terminal.ts";
import { shortPath } from "../shell/text.ts";
import { type ConfigFile, parseConfigFile, readConfigText, type Setting } from "./file.ts";
import { type Layer, mergeLayers, settingFor, toObject } from "./layers.ts";
import { BadConfig, type ConfigProblem, shownProblem } from "./problem.ts";
import { isOfUnknownName, withoutName } from "./secret.ts";
import { checkEach, type Fault, readWhole, SETTINGS_SCHEMA as SCHEMA, type Verdict } from "./settings.ts";
import { settingFromFlag, settingsFromVariables, unknownName } from "./variables.ts";
import { commaAdvice, oncePerLine } from "./yaml-complaint.ts";

const FILE_NAME = "drover.yml";
const PROBLEMS_MAX = 20;

/** Variables that begin with DROVER_ and are no knobs: where to find things, and what a worker tells its commands. */
const RESERVED_VARIABLES: ReadonlySet<string> = new Set([
  ...["DROVER_URL", "DROVER_TOKEN", "DROVER_DATA", "DROVER_CONFIG", "DROVER_AGENT", "DROVER_QUICK", "DROVER_SEED"],
]);

type ConfigSources = {
  readonly env: Environment;
  readonly cwd: string;
  readonly home: string;
  /** `--config FILE`: read instead of ./drover.yml, and must be there. */
  readonly configFile?: string | undefined;
  /** `--set path=value`, as written. */
  readonly sets?: readonly string[];
  /** What the verb's own flags set, such as --port; they win over --set. */
  readonly flags?: Layer;
};

export type ServerConfig = {
  readonly settings: Settings;
  /** What the layers say, as one object: what differs from the defaults. */
  readonly given: Readonly<Record<string, unknown>>;
  /** Every knob in force with who set it, in the order of the schema; the defaults included. */
  readonly effective: readonly Setting[];
  /** The data directory of a node, where one is named beside the log that nodes share. */
  readonly data: string | null;
  /** The files that were read, and those that would be if they were there. */
  readonly files: readonly string[];
  readonly filesRead: readonly string[];
  /** Those of them that set something. */
  readonly filesWithSettings: readonly string[];
  readonly warnings: readonly string[];
};

function userConfigFile(env: Environment, home: string): string {
  const base = env.XDG_CONFIG_HOME;
  return join(base !== undefined && isAbsolute(base) ? base : join(home, ".config"), "drover", FILE_NAME);
}

export function loadSettings(sources: ConfigSources): ServerConfig {
  const { env, cwd, home } = sources;
  const chosen = sources.configFile ?? (env.DROVER_CONFIG || undefined);
  const own = resolve(cwd, chosen ?? FILE_NAME);
  const files = [...new Set([userConfigFile(env, home), own])];
  const found = files.map((file) => openFile(file, shortPath(file, cwd)));
  if (chosen !== undefined && found.at(-1) === null)
    throw new BadConfig([{ message: `${chosen} does not exist`, origin: null }]);
  const parsed = found.filter((file) => file !== null);
  const problems: ConfigProblem[] = [];
  const given: Layer[] = [
    ...parsed.map(({ settings }) => settings),
    collect(problems, () => [...settingsFromData(env), ...settingsFromVariables(env, SCHEMA, RESERVED_VARIABLES)]),
    (sources.sets ?? []).flatMap((text) => collect(problems, () => [settingFromFlag(text, SCHEMA)])),
    sources.flags ?? [],
  ];
  const { layers, data } = apartFromJournal(given);
  problems.push(...oncePerLine(unknownNames(layers.flat(), parsed)));
  const merge = (some: readonly Layer[]): Setting[] =>
    mergeLayers(some, SCHEMA).filter(({ path }) => unknownName(path, SCHEMA) === null);
  // Each layer is also checked by itself, so that a bad line does not hide behind a flag that outweighs it today.
  for (const layer of layers) readAll(merge([layer]), checkEach, parsed, problems);
  const merged = merge(layers);
  const settings = problems.length > 0 ? null : readAll(merged, readWhole, parsed, problems);
  if (settings === null) throw new BadConfig(problems.slice(0, PROBLEMS_MAX));
  return {
    settings,
    given: toObject(merged),
    effective: withDefaults(merged),
    data,
    files,
    filesRead: files.filter((_, at) => found[at] !== null),
    filesWithSettings: files.filter((_, at) => (found[at]?.settings.length ?? 0) > 0),
    warnings: chosen === undefined && found.at(-1) === null ? otherSpelling(cwd) : [],
  };
}

function openFile(file: string, name: string): ConfigFile | null {
  const text = readConfigText(file, name);
  return text === null ? null : parseConfigFile(name, text, SCHEMA);
}

/** What a source gives; its complaints join the others. */
function collect(problems: ConfigProblem[], source: () => Layer): Layer {
  try {
    return source();
  } catch (error) {
    if (!(error instanceof BadConfig)) throw error;
    problems.push(...error.problems);
    return [];
  }
}

/** DROVER_DATA=DIR is short for a log in that directory; the knob's own variable wins over it. */
function settingsFromData(env: Environment): Setting[] {
  const directory = env.DROVER_DATA ?? "";
  return directory === "" ? [] : [dataSetting(directory, { kind: "variable", name: "DROVER_DATA" })];
}

type DataSetting = Setting & { readonly directory: string };

export const dataSetting = (directory: string, origin: Setting["origin"]): DataSetting => ({
  path: ["log", "url"],
  value: `sqlite:${join(directory, "drover.db")}`,
  origin,
  directory,
});

/** Where the log is one that nodes share, a directory is named for this node, and not in place of the log. */
function apartFromJournal(layers: readonly Layer[]): {
  readonly layers: readonly Layer[];
  readonly data: string | null;
} {
  const isOfData = (setting: Setting): setting is DataSetting => "directory" in setting;
  const others = layers.map((layer) => layer.filter((setting) => !isOfData(setting)));
  const log = others.flat().findLast(({ path }) => path.join(".") === "log.url");
  if (!isJournalUrl(String(log?.value))) return { layers, data: null };
  return { layers: others, data: layers.flat().findLast(isOfData)?.directory ?? null };
}

/** Whether this names a log that nodes share. */
export const isJournalUrl = (url: string): boolean => /^(?:etcd|postgres|postgresql):/.test(url);

function unknownNames(settings: Layer, files: readonly ConfigFile[]): ConfigProblem[] {
  const seen = new Set<string>();
  return settings.flatMap(({ path, origin }) => {
    const unknown = unknownName(path, SCHEMA);
    if (unknown === null) return [];
    const problem = problemAt(unknown.message, { path: unknown.path, origin }, unknown.path, files);
    // All that is below such a name has the same fault.
    const shown = shownProblem(problem);
    const isNew = !seen.has(shown);
    seen.add(shown);
    return isNew ? [problem] : [];
  });
}

/** With the line of the file that is wrong, which may lie deep inside a value. */
function problemAt(
  message: string,
  culprit: Pick<Setting, "path" | "origin">,
  path: Path,
  files: readonly ConfigFile[],
): ConfigProblem {
  const { origin } = culprit;
  const file = origin.kind === "file" ? files.find((one) => one.file === origin.file) : undefined;
  if (file === undefined) return { message, origin };
  const isInside = culprit.path.every((key, at) => path[at] === key);
  const exact = file.originOf(isInside ? path : culprit.path);
  const advice = isOfUnknownName(message) ? commaAdvice(file.line(exact.line), exact.column) : null;
  const source = file.shownLine(exact);
  return { message: advice ?? (source === undefined ? withoutName(message) : message), origin: exact, source };
}

/** Reads the whole; each complaint is noted and its setting taken out, so that the next one is found too. */
function readAll<Value>(
  merged: readonly Setting[],
  read: (given: unknown) => Verdict<Value>,
  files: readonly ConfigFile[],
  problems: ConfigProblem[],
): Value | null {
  let left = merged;
  for (let round = 0; round < PROBLEMS_MAX; round++) {
    const result = read(toObject(left));
    if (result.ok) return round === 0 ? result.value : null;
    const { field } = result;
    const culprit = settingFor(field, left) ?? settingFor(field.slice(0, field.lastIndexOf(".")), left);
    problems.push(...[result, ...(result.also ?? [])].map((fault) => problemOf(fault, culprit, files)));
    if (culprit === null) return null;
    left = left.filter((one) => one !== culprit);
  }
  return null;
}

function problemOf({ field, message }: Fault, culprit: Setting | null, files: readonly ConfigFile[]): ConfigProblem {
  if (culprit === null) return { message, origin: null };
  const path = field.replaceAll(/\[(\d+)\]/g, ".$1").split(".");
  return problemAt(message, culprit, path, files);
}

function otherSpelling(cwd: string): string[] {
  return existsSync(join(cwd, "drover.yaml"))
    ? [`drover.yaml is not read; call it ${FILE_NAME}, or name it with --config drover.yaml`]
    : [];
}

/** The settings over the defaults of the schema, in its order; names people chose come last in their section. */
function withDefaults(merged: readonly Setting[]): Setting[] {
  const defaults = standardSettings();
  const given = new Map(merged.map((setting) => [setting.path.join("\0"), setting]));
  const known = new Set(defaults.map(({ path }) => path.join("\0")));
  const others = merged.filter(({ path }) => !known.has(path.join("\0")));
  const all = defaults.map((setting) => given.get(setting.path.join("\0")) ?? setting);
  return [...all, ...others];
}

/** What holds where nobody says anything. */
export const standardSettings = (): Setting[] => [...defaultSettings(SCHEMA, [])];

function* defaultSettings(schema: JsonSchema, path: Path): Generator<Setting> {
  if (schema.default !== undefined) yield* leaves(schema.default, path, schema);
  else for (const key of knownKeys(schema)) yield* defaultSettings(schemaUnder(schema, key) ?? {}, [...path, key]);
}

/** The default of a table is one setting per entry. */
function* leaves(value: unknown, path: Path, schema: JsonSchema): Generator<Setting> {
  if (holdsFields(schema) && typeof value === "object" && value !== null && !Array.isArray(value))
    for (const [key, inner] of Object.entries(value))
      yield* leaves(inner, [...path, key], schemaUnder(schema, key) ?? {});
  else yield { path, value, origin: { kind: "default" } };
}
