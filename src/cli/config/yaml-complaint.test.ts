import assert from "node:assert/strict";
import { test } from "node:test";
import { parseDocument } from "yaml";
import { yamlComplaints } from "./yaml-complaint.ts";

const DUPLICATE = "this name stands twice";

function complaintsOf(text: string): string[] {
  const { errors } = parseDocument(text, { prettyErrors: false });
  return yamlComplaints(text, errors, { DUPLICATE_KEY: DUPLICATE }).map(
    ({ message, offset }) => `${offset} ${message}`,
  );
}

const QUOTES = "this is not YAML: inside { } or [ ] a text with a bracket needs quotes:";
const MISSING = "this is not YAML: inside { } a comma goes between two values: one is missing behind this one";
const rows: [name: string, text: string, complaints: string[]][] = [
  ["nothing wrong", "a: c[1]\nb: { needs: 'c[1]' }\n", []],
  ["a bracket in a map", "d: { run: x, needs: c[1] }\ne: { run: y, needs: z }\nf: 1\n", [`21 ${QUOTES} "c[1]"`]],
  ["a bracket in a list", "d: [c[1], b[2]]\n", [`5 ${QUOTES} "c[1]"`]],
  ["a variable in brackets", `d: { needs: spec[\${PART}] }\n`, [`16 ${QUOTES} "spec[\${PART}]"`]],
  ["a brace in a map", "d: { run: a{b} }\n", [`11 ${QUOTES} "a{b}"`]],
  ["a bracket that does not close", "d: { needs: c[1 , e: 2 }\n", [`13 ${QUOTES} "c["`]],
  [
    "a bracket after a blank",
    "a: { run: grep [a-z] file }\n",
    ["15 this is not YAML: inside { } or [ ] a text with a bracket in it needs quotes: put it into quotes"],
  ],
  ["a comma that is missing at the end of a line", "a: { b: 1\n  c: 2 }\n", [`8 ${MISSING}`]],
  ["a comma that is missing in a line", "a: { run: x needs: y }\n", [`10 ${MISSING}`]],
  [
    "a first name too far in",
    "tasks:\n  a:\n      run: x\n\n    needs: y\n",
    ["18 this line is indented further than the one below; begin both in the same column"],
  ],
  [
    "a first name too far in, with names of its own",
    "a:\n    b:\n      c: 1\n      e: 1\n  d: 1\n",
    ["7 this line is indented further than the one below; begin both in the same column"],
  ],
  [
    "a last name too far out",
    "a:\n    b: 1\n    c: 2\n  d: 3\n",
    ["23 this line begins further left than those above it; begin it in the same column"],
  ],
  [
    "a colon in a text",
    "d: echo a: b\n",
    [
      "3 this is not YAML: Nested mappings are not allowed in compact mappings; " +
        "a text with a colon and a space in it needs quotes",
    ],
  ],
  [
    "what YAML can go on after, and then a slip",
    "a: 1\na: 2\nb: { c: d[1] }\n",
    [`5 ${DUPLICATE}`, `19 ${QUOTES} "d[1]"`],
  ],
];
for (const [name, text, complaints] of rows) test(name, () => assert.deepEqual(complaintsOf(text), complaints));
