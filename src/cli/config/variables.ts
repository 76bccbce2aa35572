/**
 * Settings from the environment, and from `--set`.
 *
 * How a path becomes a name (`scheduler.maxInFlight`, DROVER_SCHEDULER__MAX_IN_FLIGHT) and a text becomes a value is
 * what `drover help config` says. A variable that looks like a knob and is none is an error: a limit that its author
 * believes is set and is not costs more than a server that does not start. Other variables that begin with `DROVER_`
 * are no business of the config.
 */

import { type Document, parseDocument, visit } from "yaml";
import { distanceOf, nearest } from "../../core/base/index.ts";
import {
  holdsFields,
  type JsonSchema,
  kindOf,
  kindsOf,
  knobs,
  knownKeys,
  openSchema,
  type Path,
  parsePath,
  schemaAt,
  schemaUnder,
  shownPath,
  takesText,
} from "../../protocol/schema/index.ts";
import { ownName } from "../shell/problem.ts";
import type { Environment } from "../shell/terminal.ts";
import type { Setting } from "./file.ts";
import { BadConfig, type ConfigProblem, type Origin } from "./problem.ts";

const PREFIX = "DROVER_";
/** A variable without `__` is taken for a misspelt knob only if it is this near to one. */
const SLIP_MAX = 2;

/** The variable of a knob. */
export function variableOf(path: Path): string {
  return PREFIX + path.map(capitals).join("__");
}

const capitals = (name: string): string =>
  /^[a-z0-9]+([A-Z][a-z0-9]*)*$/.test(name) ? name.replaceAll(/(?=[A-Z])/g, "_").toUpperCase() : name;

/** Every setting the environment makes, in the order of the names: that of the environment is arbitrary. */
export function settingsFromVariables(env: Environment, schema: JsonSchema, reserved: ReadonlySet<string>): Setting[] {
  const settings: Setting[] = [];
  const problems: ConfigProblem[] = [];
  for (const name of Object.keys(env).sort()) {
    const text = env[name];
    if (!name.startsWith(PREFIX) || text === undefined || reserved.has(name)) continue;
    const origin: Origin = { kind: "variable", name };
    const path = pathOfVariable(name, schema);
    if (path !== null) settings.push({ path, value: readValue(text, schemaAt(schema, path) ?? {}, origin), origin });
    else {
      const message = complaintAbout(name, schema);
      if (message !== null) problems.push({ message, origin });
    }
  }
  if (problems.length > 0) throw new BadConfig(problems);
  return settings;
}

function pathOfVariable(name: string, schema: JsonSchema): Path | null {
  const path: string[] = [];
  let here: JsonSchema | null = schema;
  for (const segment of name.slice(PREFIX.length).split("__")) {
    if (here === null || segment === "" || !holdsFields(here)) return null;
    const known = knownKeys(here).find((key) => capitals(key) === segment);
    if (known === undefined && openSchema(here) === null) return null;
    const key: string = known ?? (/[a-z]/.test(segment) ? segment : segment.toLowerCase());
    path.push(key);
    here = schemaUnder(here, key);
  }
  return here === null ? null : path;
}

/** What is wrong with a variable that is no knob; null if it does not look like one. */
function complaintAbout(name: string, schema: JsonSchema): string | null {
  const all = [...knobs(schema)].map(variableOf);
  const meant = nearest(name, all);
  const isSlip = meant !== null && distanceOf(name, meant) <= SLIP_MAX;
  if (!name.includes("__") && !isSlip) return null;
  const hint = meant === null ? `; ${ownName()} config show --effective lists every knob` : `; did you mean ${meant}?`;
  return `no knob has this variable${hint}`;
}

/** The setting of `--set scheduler.maxInFlight=10`. */
export function settingFromFlag(text: string, schema: JsonSchema): Setting {
  const at = text.indexOf("=");
  // The value is left out of the name of its origin: it may be a secret.
  const origin: Origin = { kind: "flag", flag: `--set ${at < 0 ? text : text.slice(0, at)}` };
  const path = at < 0 ? null : parsePath(text.slice(0, at).trim());
  if (path === null) {
    const message = "write a path, = and a value, such as --set scheduler.maxInFlight=10";
    throw new BadConfig([{ message, origin }]);
  }
  return { path, value: readValue(text.slice(at + 1), schemaAt(schema, path) ?? {}, origin), origin };
}

const ALIAS = "a * in front is an alias, which is not read here; put the text into quotes";

function hasAlias(document: Document): boolean {
  let count = 0;
  visit(document, {
    Alias: () => {
      count += 1;
    },
  });
  return count > 0;
}

/** Text as YAML means it; where only text will do, the text itself, so that a secret of digits stays a secret. */
function readValue(text: string, schema: JsonSchema, origin: Origin): unknown {
  const document = parseDocument(text, { stringKeys: true, prettyErrors: false, logLevel: "error" });
  const kinds = kindsOf(schema);
  const complaint = document.errors[0]?.message ?? (hasAlias(document) ? ALIAS : null);
  if (complaint !== null) {
    if (takesText(schema)) return text;
    throw new BadConfig([{ message: `this value is not YAML: ${complaint}`, origin }]);
  }
  const value: unknown = document.toJS({ maxAliasCount: 0 }) ?? null;
  const isWanted = kinds.size === 0 || kinds.has(kindOf(value)) || value === null;
  return !isWanted && takesText(schema) ? text : value;
}

/** What is wrong with an unknown path: up to the first name that may not stand where it does, and which one may. */
export function unknownName(path: Path, schema: JsonSchema): { readonly path: Path; readonly message: string } | null {
  let here: JsonSchema = schema;
  for (const [index, key] of path.entries()) {
    const inner = schemaUnder(here, key);
    if (inner !== null) {
      here = inner;
      continue;
    }
    // Below a plain value there are no names: the reader of the value says what is wrong.
    if (!holdsFields(here)) return null;
    const known = knownKeys(here);
    const meant = nearest(key, known);
    const wrong = path.slice(0, index + 1);
    const hint = meant === null ? `; known here: ${known.join(", ")}` : ` (did you mean ${meant}?)`;
    return { path: wrong, message: `${shownPath(wrong)} is not a known field${hint}` };
  }
  return null;
}
