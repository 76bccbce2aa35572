/**
 * The language of expressions: what it reads, what it refuses and in which words, and what its values are.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { holds } from "../../../test/kits/laws/cases.ts";
import {
  type Expression,
  ExpressionError,
  evaluate,
  MissingValue,
  parseExpression,
  pathText,
  wrongNameIn,
} from "./expression.ts";
import { fillShell, fillText, fillWord, misplacedIn, parseTemplate } from "./template.ts";

const inputs = {
  impl: { taskId: "i", state: "done", result: { path: "a b", n: 0, list: [{ x: null }], flag: false, text: "" } },
  "build-docs": { taskId: "b", state: "failed", error: "no luck" },
  odd: { taskId: "o", state: "done", result: { __proto__: null, constructor: 1 } },
};
const value = (source: string): unknown => evaluate(parseExpression(source), inputs);
const templates = (text: string): string => fillText(parseTemplate(text), inputs);

const VALUES: readonly [source: string, value: unknown][] = [
  ["needs.impl.result.path", "a b"],
  [' needs["impl"].result [ "path" ] ', "a b"],
  ["needs['build-docs'].state", "failed"],
  ["needs.impl.result.list[0].x", null],
  ["needs.impl.result.list", [{ x: null }]],
  ['needs.impl.state == "done"', true],
  ["needs.impl.state != 'done'", false],
  ["'it''s' == \"it's\"", true],
  ['"\\u00e9\\t" == "é\\t"', true],
  ["needs.impl.result.n == 0", true],
  ["needs.impl.result.n == '0'", false],
  ["-1.5e3 == -1500", true],
  ["!needs.impl.result.flag", true],
  ["!!needs.impl.result.list", true],
  ["!needs.impl.result.text && !needs.impl.result.n && !null", true],
  ["true || needs.impl.result.gone", true],
  ["false && needs.impl.result.gone", false],
  ["false || true && false", false],
  ["(false || true) && !(true == false)", true],
  ["true == true != false", true],
  ["needs.impl.result.gone == null", true],
  ["null != needs.impl.result.gone", false],
  ["needs.impl.result.gone.deeper == null", true],
  ["needs.impl.result.list[7] == null", true],
  ["needs.impl.result == needs.impl.result", true],
  ["needs.impl.result.n < 1", true],
  ["needs.impl.result.n <= 0", true],
  ["needs.impl.result.n > -1.5", true],
  ["0 >= needs.impl.result.n", true],
  ["needs.impl.result.n > 0 || 2 < 1 || 1 > 1 || 1 < 1 || 1 >= 2 || 2 <= 1", false],
  ["1 < 2 == true && !(2 < 1)", true],
];

const WRONG: readonly [source: string, says: RegExp][] = [
  ["", /is empty; name a value/],
  ["  ", /is empty/],
  ["needs", /wants the name of a need/],
  ["needs[0].result", /wants the name of a need/],
  ["needs.", /wants a name behind the dot.* at its end/],
  ["needs.impl.result[", /wants a text or a number/],
  ["needs.impl.result[x]", /wants a text or a number.* at "x\]"/],
  ["needs.impl.result[0", /wants \] at its end/],
  ["needs.build-docs.state", /a name with - in it stands in brackets/],
  ["inputs.impl.result", /names inputs; only needs/],
  ["needs.impl.state = 'done'", /== compares/],
  ["true & false", /&& joins two conditions/],
  ["'open", /a text that is never closed/],
  ['"open', /a text that is never closed/],
  ['"\\q" == 1', /a text that is not JSON/],
  ["(true", /wants \) at its end/],
  ["true)", /wants nothing more/],
  ["true false", /wants nothing more/],
  ["== 1", /wants a value at "== 1"/],
  ["!", /wants a value at its end/],
  ["1 +  2", /cannot be read at "\+ {2}2"/],
  ["needs.a.b(1)", /wants nothing more/],
  ["needs.a.result < '3'", /compares by < what is no number/],
  ["null >= 3", /compares by >= what is no number/],
  ["1 < 2 < 3", /compares by < what is no number/],
  ["1 <", /wants a value at its end/],
  [`${"(".repeat(60)}1${")".repeat(60)}`, /nested more than 50 deep/],
  [`${"!".repeat(60)}1`, /nested more than 50 deep/],
  [`needs.${"x".repeat(5000)}`, /at most 4096 are read/],
];

const NAMES: readonly [source: string, says: RegExp | null][] = [
  ["needs.impl.result.anything.at.all && needs.docs.branch == null", null],
  ["needs.imp.result", /^imp is not among its needs; did you mean impl\?$/],
  ["!(true && needs.nothing.alike.result)", /^nothing is not among its needs; its needs are impl, docs$/],
  ["needs.impl", /^needs.impl is no value; name a field: result, state/],
  ["needs.impl.reslt", /^needs.impl has no "reslt"; did you mean result\?$/],
  ["needs.impl[0]", /^needs.impl has no 0; it has result, state/],
];

describe("an expression", () => {
  for (const [source, expected] of VALUES)
    test(`${source} is ${JSON.stringify(expected)}`, () => assert.deepEqual(value(source), expected));

  for (const [source, says] of WRONG)
    test(`${JSON.stringify(source.slice(0, 40))} is refused: ${says.source}`, () => {
      assert.throws(
        () => parseExpression(source),
        (error) => error instanceof ExpressionError && says.test(error.message),
      );
    });

  test("what is no number is not compared as one, and is named", () => {
    for (const [source, says] of [
      ["needs.impl.result.path < 3", /^needs.impl.result.path is .*a b.*, and < compares numbers$/],
      ["3 >= needs.impl.result.flag", /^needs.impl.result.flag is false, and >= compares numbers$/],
      ["needs.impl.result.list > 3", /^needs.impl.result.list is /],
      ["needs.impl.result.gone > 3", /^needs.impl.result.gone is not there$/],
    ] as const)
      assert.throws(
        () => value(source),
        (error) => error instanceof MissingValue && says.test(error.message),
      );
  });

  test("a value that is not there is named, and what objects inherit is not there", () => {
    for (const [source, name] of [
      ["needs.impl.result.gone", "needs.impl.result.gone"],
      ['needs["build-docs"].result', 'needs["build-docs"].result'],
      ["needs.impl.result.list[3]", "needs.impl.result.list[3]"],
      ["needs.impl.result.path[0]", "needs.impl.result.path[0]"],
      ["needs.impl.result.list.length", "needs.impl.result.list.length"],
      ["needs.impl.toString", "needs.impl.toString"],
      ["needs.impl.result.__proto__", "needs.impl.result.__proto__"],
      ["!needs.impl.result.gone", "needs.impl.result.gone"],
      ["needs.impl.result.gone == 1", "needs.impl.result.gone"],
    ])
      assert.throws(() => value(source as string), new MissingValue(`${name} is not there`));
    assert.equal(value("needs.odd.result.constructor"), 1);
  });

  for (const [source, says] of NAMES)
    test(`the names of ${source} are ${says === null ? "right" : "refused"}`, () => {
      const wrong = wrongNameIn(parseExpression(source), ["impl", "docs"]);
      if (says === null) assert.equal(wrong, null);
      else assert.match(wrong ?? "", says);
    });
});

// -------------------------------------------------------------------------- laws

const literal = fc.oneof(fc.string({ unit: "grapheme" }), fc.integer(), fc.boolean(), fc.constant(null));
const { expression } = fc.letrec<{ expression: Expression }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 5 },
    literal.map((one): Expression => ({ kind: "literal", value: one })),
    fc
      .tuple(fc.string({ minLength: 1 }), fc.array(fc.oneof(fc.string(), fc.nat(9)), { maxLength: 3 }))
      .map(([need, steps]): Expression => ({ kind: "need", need, steps })),
    tie("expression").map((of): Expression => ({ kind: "not", of })),
    fc
      .tuple(
        fc.constantFrom("==" as const, "!=" as const, "&&" as const, "||" as const),
        tie("expression"),
        tie("expression"),
      )
      .map(([kind, left, right]): Expression => ({ kind, left, right })),
  ),
}));

/** As it would be written by someone who trusts no precedence. */
function written(one: Expression): string {
  switch (one.kind) {
    case "literal":
      return JSON.stringify(one.value);
    case "need":
      return pathText(one.need, one.steps);
    case "not":
      return `!(${written(one.of)})`;
    default:
      return `(${written(one.left)}) ${one.kind} (${written(one.right)})`;
  }
}

test("an expression that is written down is read as the same", () => {
  holds(3000, expression, (one) => assert.deepEqual(parseExpression(written(one)), one));
});

test("whatever is written is read or refused in words, and never breaks anything else", () => {
  const pieces = [
    "needs",
    ".",
    "[",
    "]",
    '"a',
    "'",
    "(",
    ")",
    "!",
    "==",
    "&&",
    "||",
    "0",
    "-",
    " ",
    "x",
    "\\",
    "é",
    "\n",
  ];
  holds(5000, fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string())), (parts) => {
    const text = parts.join("");
    for (const read of [() => parseExpression(text), () => parseTemplate(text), () => parseTemplate(`\${{${text}`)])
      try {
        read();
      } catch (error) {
        assert.ok(error instanceof ExpressionError, String(error));
        assert.ok(error.message.length < 500);
      }
  });
});

// --------------------------------------------------------------------- templates

const E = `\${{ needs.impl.result.path }}`;

describe("a template", () => {
  test("is filled with the text of its values, and with JSON where they are no text", () => {
    assert.equal(templates(`<${E}>`), "<a b>");
    assert.equal(templates(E.replace("path", "list")), '[{"x":null}]');
    assert.equal(templates(E.replace("path", "n")), "0");
    assert.equal(templates(`$${E} and ${E}`), `${E} and a b`);
    assert.equal(templates(`no expression, \${HOME}, }} and {{ x }}`), `no expression, \${HOME}, }} and {{ x }}`);
    assert.equal(templates(`\${{ needs.impl.state == '}}' }}!`), "false!");
  });

  test("that is never closed is refused", () => {
    assert.throws(() => parseTemplate(`a \${{ needs.x.result`), /has no \}\} that closes it/);
    assert.throws(() => parseTemplate(`\${{ 'x }}`), ExpressionError);
  });

  test("makes no word with a zero byte, nor one that the kernel would not take", () => {
    const fill = (result: unknown): string =>
      fillWord(parseTemplate(`--x=\${{ needs.impl.result }}`), { impl: { result } });
    assert.throws(() => fill("a\0b"), /^MissingValue: needs.impl.result holds a zero byte/);
    assert.throws(() => fill("x".repeat(1_000_000)), /needs.impl.result makes a word of 1000004 bytes; at most 130000/);
    assert.equal(fill("é"), "--x=é");
  });

  const LINES: readonly [line: string, filled: string | RegExp][] = [
    [`git add ${E}`, `git add "\${V}"`],
    [`git commit -m "about ${E}."`, `git commit -m "about \${V}."`],
    [`a${E}b`, `a"\${V}"b`],
    [`x="$(cat ${E})"`, `x="$(cat "\${V}")"`],
    [`x="$(cat "${E}")"`, `x="$(cat "\${V}")"`],
    [`(cd ${E}; ls) # it's ${E}`, `(cd "\${V}"; ls) # it's "\${V}"`],
    [`echo 'a'"'"${E}`, `echo 'a'"'""\${V}"`],
    [`echo it\\'s ${E}`, `echo it\\'s "\${V}"`],
    [`echo '${E}'`, /single quotes/],
    [`echo 'a "${E}" b'`, /single quotes/],
    [`x=\`cat ${E}\``, /backticks/],
    [`x="\`cat ${E}\`"`, /backticks/],
    [`echo \${X:-${E}}`, /inside braces/],
    [`cat <<END\n${E}\nEND`, /here-document/],
    [`echo $((1 + ${E}))`, /\$\(\( \)\)/],
    [`((x = ${E}))`, /arithmetic/],
    [`echo "$[ ${E} ]"`, /arithmetic/],
    [`(((1))); echo $[1] ${E}`, `(((1))); echo $[1] "\${V}"`],
    [`echo $(( (1 + (2)) + ${E} ))`, /arithmetic/],
    [`echo "$(( (1 + (2)) + ${E} ))"`, /arithmetic/],
    [`(( (1 + (2)) + ${E} ))`, /arithmetic/],
    [`echo $(( "${E}" ))`, /arithmetic/],
    [`echo $(( $(cat ${E}) ))`, /arithmetic/],
    [`echo $[ x[1] + ${E} ]`, /arithmetic/],
    [`x[${E}]=1`, /arithmetic/],
    [`x[1]=$(( (1 + (2)) * 3 )); ls a[[:digit:]] ${E}`, `x[1]=$(( (1 + (2)) * 3 )); ls a[[:digit:]] "\${V}"`],
    [`echo \\ #"${E}"`, `echo \\ #"\${V}"`],
    [`echo a \\\n# it's\necho ${E}`, `echo a \\\n# it's\necho "\${V}"`],
    [`x="$(case a in a) cat ${E};; esac)"`, /behind a case/],
    [`case ${E} in a) cat ${E};; esac`, `case "\${V}" in a) cat "\${V}";; esac`],
    [`echo \\${E}`, /backslash/],
  ];
  for (const [line, filled] of LINES)
    test(`in the line ${JSON.stringify(line)} ${typeof filled === "string" ? "is one word" : "is refused"}`, () => {
      const template = parseTemplate(line);
      if (filled instanceof RegExp) return assert.match(misplacedIn(template) ?? "", filled);
      assert.equal(misplacedIn(template), null);
      const made = fillShell(template, inputs);
      assert.equal(made.line.replaceAll(/DROVER_VALUE_\d/g, "V"), filled);
      assert.ok(Object.values(made.env).every((one) => one === "a b"));
    });
});
