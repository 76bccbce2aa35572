/**
 * The tables of docs/reference/http.md, written from the calls themselves.
 *
 *     npx node tools/http-reference.ts        writes them into the file, between its two marks
 *
 * A reference that is kept by hand is wrong after the second change. So the calls, fields, answers and refusals come
 * from the protocol, in its own words; what stands above them is prose and is kept by hand. A test compares the two.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  CALL_LIST,
  type Call,
  type CallName,
  errorsOf,
  isRead,
  type Tag,
  WIRE_CODES,
  type WireCode,
} from "../src/protocol/index.ts";
import { notesOf } from "../src/protocol/schema/schema.ts";
import type { Shown } from "../test/kits/shown-schema.ts";

const FILE = join(import.meta.dirname, "../docs/reference/http.md");
const BEGIN = "<!-- written by tools/http-reference.ts: begin -->";
const END = "<!-- written by tools/http-reference.ts: end -->";
const TITLES: Readonly<Record<Tag, string>> = {
  tasks: "Tasks",
  groups: "Groups",
  plans: "Plans",
  files: "Files",
  scheduler: "The scheduler",
  projects: "Projects",
  workers: "Workers",
  schedules: "Schedules",
  gates: "Permits and gates",
  events: "Events",
  bulk: "Many at once",
  server: "The server",
};

/** The file with its tables as they should be. */
export function withTables(text: string): string {
  const [before, rest = ""] = text.split(BEGIN);
  const [, after = ""] = rest.split(END);
  return `${before}${BEGIN}\n\n${tables()}\n${END}${after}`;
}

export const httpReferenceFile = (): string => readFileSync(FILE, "utf8");

function tables(): string {
  const shapes = new Map<string, Shown>();
  const sections = Object.entries(TITLES).map(([tag, title]) => {
    const calls = CALL_LIST.filter((call) => call.tag === tag);
    return `## ${title}\n\n${calls.map((call) => callText(call, shapes)).join("\n")}`;
  });
  const hint = "What is marked `?` may be absent. Answers may gain fields: pass over unknown ones.";
  return [commonText(), ...sections, `## Shapes\n\n${hint}\n\n${shapeTexts(shapes)}`, codesText()].join("\n");
}

/** What a call refuses because of what it takes and who may make it is said once, for all of them. */
function commonText(): string {
  const kinds: readonly (readonly [kind: string, is: (call: Call) => boolean])[] = [
    ["any call", () => true],
    ["one that is for certain roles", ({ roles }) => roles !== null],
    ["one with parameters, a query or a body", ({ params, query, body }) => (params ?? query ?? body) !== null],
    ["one with a body", ({ body }) => body !== null],
    ["one that reads", ({ operationId, roles }) => roles !== null && isRead(operationId as CallName)],
    ["one that changes something", ({ operationId, roles }) => roles !== null && !isRead(operationId as CallName)],
  ];
  const told = new Set<WireCode>();
  const rows = kinds.map(([kind, is]) => {
    const calls = CALL_LIST.filter(is).map((call) => ({ all: errorsOf(call), own: call.errors }));
    const shared = (calls[0]?.all ?? []).filter(
      (code) =>
        !told.has(code) && calls.every(({ all }) => all.includes(code)) && calls.some(({ own }) => !own.includes(code)),
    );
    for (const code of shared) told.add(code);
    return [kind, refusalsText(shared)];
  });
  return `## What every call may refuse\n\n${table(["call", "refuses"], rows)}`;
}

function callText(call: Call, shapes: Map<string, Shown>): string {
  const { method, path, summary, description, roles } = call;
  const who = roles === null ? "anybody, without a token" : roles.join(", ");
  return [
    `### ${method} ${path}\n`,
    `${summary}. For: ${who}.${description === undefined ? "" : ` ${description}`}\n`,
    asksText("query", call.query as Shown | null, shapes),
    asksText("body", call.body as Shown | null, shapes),
    `Answers ${Object.entries(call.answers)
      .map(([status, schema]) => `**${status}** ${answerText(call, schema as Shown, shapes)}`)
      .join("; ")}\n`,
    call.errors.length === 0 ? "" : `Refuses besides: ${refusalsText(call.errors)}.\n`,
  ]
    .filter((part) => part !== "")
    .join("\n");
}

const refusalsText = (codes: readonly WireCode[]): string => {
  const statuses = [...new Set(codes.map((code) => WIRE_CODES[code].status))].sort((a, b) => a - b);
  const of = (status: number): string =>
    codes
      .filter((code) => WIRE_CODES[code].status === status)
      .map((code) => `\`${code}\``)
      .join(" ");
  return statuses.map((status) => `${status} ${of(status)}`).join(", ");
};

function asksText(what: string, schema: Shown | null, shapes: Map<string, Shown>): string {
  if (schema === null) return "";
  if (schema.properties === undefined) return `The ${what}: ${escaped(notesOf(schema).expected ?? "JSON")}.\n`;
  const rows = rowsOf(schema, "", shapes, "ask");
  return table([what, "must be", "meaning"], rows);
}

function answerText(call: Call, schema: Shown, shapes: Map<string, Shown>): string {
  const { component } = notesOf(schema);
  if (component !== undefined) return `${linkTo(component, schema, shapes)}.`;
  if (call.operationId === "openapi") return "the OpenAPI 3.1 document of all this.";
  if (schema.properties === undefined) return "text.";
  if ("maxInFlight" in schema.properties)
    return "the [`scheduler` section](config.md) in force, spans in milliseconds.";
  const fields = Object.entries(schema.properties).map(([key, field]) => {
    const isOptional = !(schema.required ?? []).includes(key);
    return `\`${key}${isOptional ? "?" : ""}\` (${kindOf(field, shapes)})`;
  });
  return `an object of ${fields.join(", ")}.`;
}

type Purpose = "ask" | "answer";

/** One row for each field; those of an object without a name of its own follow it, with the path before their names. */
function rowsOf(schema: Shown, path: string, shapes: Map<string, Shown>, purpose: Purpose): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, field]) => {
    const isRequired = (schema.required ?? []).includes(key);
    const at = `${path}${key}`;
    const mark = purpose === "ask" ? (isRequired ? "*" : "") : isRequired ? "" : "?";
    const kind = purpose === "ask" ? expectedOf(field, shapes) : kindOf(field, shapes);
    const { description = "", default: fallback } = notesOf(field);
    const otherwise = fallback === undefined ? "" : ` Default: \`${JSON.stringify(fallback).replaceAll('"', "")}\`.`;
    const row = [`\`${at}\`${mark}`, kind, escaped(`${description}${otherwise}`.trim())];
    return [row, ...innerRows(field, at, shapes, purpose)];
  });
}

function innerRows(field: Shown, at: string, shapes: Map<string, Shown>, purpose: Purpose): string[][] {
  const inner = plainOf(field);
  const items = inner.items === undefined ? null : plainOf(inner.items);
  if (isNameless(inner)) return rowsOf(inner, `${at}.`, shapes, purpose);
  return items !== null && isNameless(items) ? rowsOf(items, `${at}[].`, shapes, purpose) : [];
}

const isNameless = (schema: Shown): boolean =>
  schema.properties !== undefined && notesOf(schema).component === undefined && !("maxInFlight" in schema.properties);

/** Without the null that may also stand there, and as people are to see it. */
function plainOf(schema: Shown): Shown {
  const shown = notesOf(schema).shownAs as Shown | undefined;
  if (shown !== undefined) return plainOf(shown);
  const others = (schema.anyOf ?? []).filter(({ type }) => type !== "null");
  return others.length === 1 && (schema.anyOf ?? []).length === 2 ? plainOf(others[0] as Shown) : schema;
}

function expectedOf(field: Shown, shapes: Map<string, Shown>): string {
  const { component } = notesOf(field);
  if (component !== undefined) return linkTo(component, field, shapes);
  const item = field.items === undefined ? null : plainOf(field.items);
  const named = item === null ? undefined : notesOf(item).component;
  if (named !== undefined) return `a list of ${linkTo(named, item as Shown, shapes)}`;
  return escaped(notesOf(field).expected ?? "JSON");
}

function kindOf(schema: Shown, shapes: Map<string, Shown>): string {
  const field = plainOf(schema);
  const { component } = notesOf(field);
  const orNull = field !== schema && schema.anyOf !== undefined ? " or null" : "";
  if (component !== undefined) return `${linkTo(component, field, shapes)}${orNull}`;
  if (field.items !== undefined) return `list of ${kindOf(field.items, shapes)}`;
  if (field.properties !== undefined && "maxInFlight" in field.properties) return "the [scheduler section](config.md)";
  return `${kindOfValue(field, shapes)}${orNull}`;
}

function kindOfValue(field: Shown, shapes: Map<string, Shown>): string {
  if (field.enum !== undefined) return field.enum.map((value) => `\`${value}\``).join(", ");
  if (field.const !== undefined) return `\`${String(field.const)}\``;
  if (field.format === "date-time") return "instant";
  if (field.anyOf !== undefined) return field.anyOf.map((one) => kindOf(one, shapes)).join(" or ");
  if (typeof field.additionalProperties === "object") return `${kindOf(field.additionalProperties, shapes)} by name`;
  return (
    { integer: "whole number", number: "number", string: "text", boolean: "flag", null: "null" }[field.type ?? ""] ??
    (field.type === "object" ? "object" : "any JSON")
  );
}

function linkTo(name: string, schema: Shown, shapes: Map<string, Shown>): string {
  shapes.set(name, schema);
  return `[${name}](#${name.toLowerCase()})`;
}

/** Each shape that was named, and those that these name in turn. */
function shapeTexts(shapes: Map<string, Shown>): string {
  const done = new Map<string, string>();
  for (const [name, schema] of shapes) {
    const purpose: Purpose = schema.additionalProperties === false ? "ask" : "answer";
    const heads = purpose === "ask" ? ["field", "must be", "meaning"] : ["field", "is", "meaning"];
    done.set(name, `### ${name}\n\n${table(heads, rowsOf(schema, "", shapes, purpose))}`);
  }
  return [...done.keys()]
    .sort()
    .map((name) => done.get(name))
    .join("\n");
}

function codesText(): string {
  const rows = Object.entries(WIRE_CODES).map(([code, { status, retryable, meaning }]) => [
    `\`${code}\``,
    String(status),
    retryable ? "yes" : "no",
    meaning,
  ]);
  return `## Codes\n\n${table(["code", "status", "retryable", "meaning"], rows)}`;
}

/** What the prose above the tables explains is called by its name in them. */
const SHORT: readonly (readonly [long: string, short: string])[] = [
  ['a name of 1 to 256 characters without blanks, and not "None" or "null"', "a name"],
  ["an instant as RFC 3339 text, such as 2026-01-31T12:00:00Z", "an instant"],
  ["9007199254740991", "2⁵³ − 1"],
  ["|", "\\|"],
  ["<", "&lt;"],
];
const escaped = (text: string): string => SHORT.reduce((all, [long, short]) => all.replaceAll(long, short), text);

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return `${[line(heads), line(heads.map(() => "---")), ...rows.map(line)].join("\n")}\n`;
}

if (import.meta.main) writeFileSync(FILE, withTables(httpReferenceFile()));
