/**
 * Values of the wrong kind, by what they are not.
 */

/** Half of a pair of surrogates: text that no file can hold. */
export const LONE = "a\ud800b";
export const huge = "x".repeat(1024 * 1024 + 1);

export const NOT_A_NAME: readonly unknown[] = [
  ...["", " ", "a b", "a\nb", "\u0000", "None", "none", "null", "undefined", "NaN", ".", "..", LONE, "x".repeat(257)],
  ...[null, 0, 1, true, Number.NaN, {}, ["a"], () => 1, 1n, new Date(0)],
];
export const NAMES_NOBODY_HAS: readonly string[] = ["nobody", "tsk_999999", "__proto__", "constructor", "ünï"];
export const NOT_AN_OBJECT: readonly unknown[] = [undefined, null, 0, "x", true, [], [{}], () => 1, 1n];
export const NOT_WHOLE: readonly unknown[] = [
  ...[Number.NaN, Number.POSITIVE_INFINITY, -1, 0.5, 1e300, Number.MAX_SAFE_INTEGER + 1],
  ...["5", null, true, {}, [], 5n],
];
/** Wrong for every leaf of a config, whatever its kind. */
export const NOT_A_SPAN: readonly unknown[] = [
  ...[Number.NaN, Number.POSITIVE_INFINITY, 1e300, "", "five", "10 s", "-5s", "5w", [], {}, () => 1, 5n],
];

export function circular(): unknown {
  const round: { self?: unknown } = {};
  round.self = round;
  return round;
}

class Money {
  readonly cents = 5;
}

/** What JSON cannot hold: a name, the value, and where in it the fault lies. */
export const NO_JSON: readonly (readonly [name: string, value: unknown, at: string])[] = [
  ["a function", { f: () => 1 }, ".f"],
  ["a symbol", [Symbol("x")], "[0]"],
  ["a BigInt", { deep: [{ n: 5n }] }, ".deep[0].n"],
  ["NaN", { n: Number.NaN }, ".n"],
  ["infinity", [1, Number.NEGATIVE_INFINITY], "[1]"],
  ["a Date", { at: new Date(0) }, ".at"],
  ["a Map", { map: new Map() }, ".map"],
  ["bytes", { bytes: new Uint8Array(2) }, ".bytes"],
  ["an object of a class", { price: new Money() }, ".price"],
  ["a lone surrogate", { text: LONE }, ".text"],
  ["a key of broken text", { [LONE]: 1 }, "."],
  ["nothing in a list", [1, undefined], "[1]"],
  ["a hole in a list", Object.assign([], { 2: 1 }), "[0]"],
  ["something 70 levels deep", JSON.parse(`${"[".repeat(70)}${"]".repeat(70)}`), "[0][0]"],
];
