import assert from "node:assert/strict";
import { test } from "node:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { name } from "../core/base/readers.ts";
import { errorsOf, wireErrorSchema } from "./calls/call.ts";
import { CALL_LIST, CALLS } from "./calls/calls.ts";
import { openApiDocument } from "./openapi.ts";
import { EXAMPLES } from "./schema/examples.ts";
import type { Schema } from "./schema/schema.ts";
import { NAME_PATTERN, notesOf, PRIVATE_NOTES } from "./schema/schema.ts";
import { checkOf, readShape } from "./schema/validate.ts";
import { settingsJsonSchema } from "./settings/schema.ts";
import { CODE_NAMES, WIRE_CODES } from "./wire/codes.ts";
import { ROLES } from "./wire/role.ts";

type Operation = {
  operationId: string;
  description: string;
  parameters?: { name: string; in: string; required: boolean }[];
  requestBody?: { required: boolean };
  responses: Record<string, { description: string; content: Record<string, unknown> }>;
  security?: unknown[];
};
const document = openApiDocument({ version: "1.2.3" });
const paths = document.paths as Record<string, Record<string, Operation>>;

test("the document is valid OpenAPI 3.1, by a validator that is not ours", async () => {
  const result = await new Validator().validate(structuredClone(document));
  assert.deepEqual(result.errors ?? [], []);
  assert.equal(result.valid, true);
});

test("every call is in the document under its path, method and name, and no other is", () => {
  const told = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => `${operationId} ${method.toUpperCase()} ${path}`),
  );
  const wanted = Object.entries(CALLS).map(([name, { method, path }]) => `${name} ${method} ${path}`);
  assert.deepEqual(told.sort(), wanted.sort());
});

test("every parameter in a path is declared, and every declared one is in the path", () => {
  for (const { path, params } of CALL_LIST) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const declared = Object.keys((params as { properties?: object } | null)?.properties ?? {});
    assert.deepEqual(declared, named, path);
  }
});

test("every reference leads somewhere, and every component is used", () => {
  const text = JSON.stringify(document);
  const used = new Set([...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name));
  const { schemas } = document.components as { schemas: Record<string, unknown> };
  assert.deepEqual([...used].sort(), Object.keys(schemas).sort());
});

test("what is only for us is not published", () => {
  const seen = new Set<string>();
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      seen.add(key);
      if (key !== "examples") walk(inner);
    }
  };
  walk({ ...document, paths: {} });
  for (const note of PRIVATE_NOTES) assert.ok(!seen.has(note), note);
});

test("every pattern means the same to every engine: it names characters, never a class of an engine's own", () => {
  const patterns = [document, settingsJsonSchema()].flatMap((schema) => patternsIn(JSON.parse(JSON.stringify(schema))));
  assert.ok(patterns.length > 100);
  for (const pattern of patterns) {
    assert.doesNotMatch(pattern, /\\|\[:|\(\?/);
    for (const flags of ["", "u", "v"]) assert.doesNotThrow(() => new RegExp(pattern, flags), pattern);
  }
});

function patternsIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  const { pattern } = value as { readonly pattern?: unknown };
  return [...(typeof pattern === "string" ? [pattern] : []), ...Object.values(value).flatMap(patternsIn)];
}

test("the pattern of a name refuses nothing that the reader of names lets in", () => {
  const pattern = new RegExp(NAME_PATTERN);
  for (let code = 0; code < 0x1_0000; code++) {
    const character = String.fromCharCode(code);
    if (name()(character, "").ok && !pattern.test(character)) assert.fail(`U+${code.toString(16)}`);
  }
  assert.ok(![" ", "a b", "a\n", "\t"].some((text) => pattern.test(text)));
});

test("every code has the status of its answer, and every code a call names is known", () => {
  for (const call of CALL_LIST) {
    const operation = paths[call.path]?.[call.method.toLowerCase()] as Operation;
    for (const code of errorsOf(call)) {
      assert.ok(CODE_NAMES.includes(code), code);
      assert.match(operation.responses[WIRE_CODES[code].status]?.description ?? "", new RegExp(`\`${code}\``));
    }
  }
});

test("calls without roles need no token, the others say who may make them", () => {
  for (const { roles, path, method } of CALL_LIST) {
    const operation = paths[path]?.[method.toLowerCase()] as Operation;
    if (roles === null) assert.deepEqual(operation.security, []);
    else assert.ok(roles.includes("admin") && roles.every((role) => ROLES.includes(role)), path);
    assert.equal(operation.responses[401] === undefined, roles === null);
  }
});

/** Every schema below this one, with itself. */
function* schemasIn(schema: Schema): Generator<Schema> {
  yield schema;
  for (const [key, value] of Object.entries(schema)) {
    if (key === "properties") for (const inner of Object.values(value as object)) yield* schemasIn(inner as Schema);
    if (key === "anyOf") for (const inner of value as Schema[]) yield* schemasIn(inner);
    if (["items", "additionalProperties"].includes(key) && typeof value === "object") yield* schemasIn(value as Schema);
  }
}

test("every example is one: it passes the schema it explains", () => {
  let count = 0;
  for (const { body, answers, operationId } of CALL_LIST) {
    for (const outer of [...(body === null ? [] : [body]), ...Object.values(answers)]) {
      for (const schema of schemasIn(outer)) {
        for (const example of notesOf(schema).examples ?? []) {
          assert.deepEqual(readShape(schema as never, example), { ok: true, value: example }, operationId);
          count++;
        }
      }
    }
  }
  assert.ok(count > 20, `${count} examples`);
});

test("every example belongs to a shape of the document", () => {
  const { schemas } = document.components as { schemas: Record<string, { examples?: unknown }> };
  for (const [name, examples] of Object.entries(EXAMPLES)) assert.deepEqual(schemas[name]?.examples, examples, name);
  const error = EXAMPLES.Error ?? [];
  for (const example of error) assert.equal(readShape(wireErrorSchema, example).ok, true);
});

test("every schema of the wire compiles, and has words for what it expects wherever somebody may be wrong", () => {
  for (const { params, query, body, operationId, answers } of CALL_LIST) {
    for (const schema of [params, query, body, ...Object.values(answers)]) if (schema !== null) checkOf(schema)(0);
    for (const schema of [params, query, body].filter((one) => one !== null)) {
      for (const { properties = {} } of [...schemasIn(schema)] as { properties?: Record<string, Schema> }[]) {
        for (const [key, field] of Object.entries(properties))
          assert.ok((notesOf(field).expected ?? "") !== "", `${operationId}: ${key}`);
      }
    }
  }
});

type Shown = {
  readonly properties?: Readonly<Record<string, Shown>>;
  readonly items?: Shown;
  readonly anyOf?: readonly Shown[];
  readonly additionalProperties?: boolean | Shown;
  readonly description?: string;
};

/** The fields below a schema that have no sentence. */
function silentIn({ properties = {}, items, anyOf = [], additionalProperties: rest }: Shown, at: string): string[] {
  const fields = Object.entries(properties).flatMap(([key, field]) => [
    ...((field.description ?? "") === "" ? [`${at}.${key}`] : []),
    ...silentIn(field, `${at}.${key}`),
  ]);
  const others = [items, ...anyOf, typeof rest === "object" ? rest : undefined].filter((one) => one !== undefined);
  return [...fields, ...others.flatMap((one) => silentIn(one, at))];
}

test("every field of every call has a sentence, and one without is found", () => {
  const silent = CALL_LIST.flatMap(({ operationId, params, query, body, answers }) =>
    [params, query, body, ...Object.values(answers)]
      .filter((schema) => schema !== null)
      .flatMap((schema) => silentIn(schema as Shown, operationId)),
  );
  assert.deepEqual(silent, []);
  assert.deepEqual(silentIn({ properties: { a: { items: { properties: { b: {} } } } } }, "x"), ["x.a", "x.a.b"]);
});
