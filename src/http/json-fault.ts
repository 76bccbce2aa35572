/**
 * Where a text stops being JSON.
 *
 * The engine's own parser is fast and says the place of some faults, not of all, and quotes the text around them. This
 * one runs only after it has refused a text: it goes over the text once, token by token, and stops at the first one
 * that cannot stand there. What may stand somewhere depends only on what is open and on the token before.
 */

const SPACE = /[ \t\n\r]*/y;
/** Any character from the space on, but for the quote and the backslash. */
const TEXT = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])/y;
const WORD = /(?:true|false|null)(?!\w)/y;

/** What may come next; between values, what closes them or goes on. */
type Awaits = "value" | "value or ]" | "key" | "key or }" | "colon" | "comma" | "end";

const EXPECTED: Readonly<Record<Awaits, string>> = {
  value: "a value",
  "value or ]": "a value or ]",
  key: "a key in double quotes",
  "key or }": "a key in double quotes or }",
  colon: "a colon",
  comma: "a comma or the end of what is open",
  end: "nothing more",
};

export type Fault = { readonly line: number; readonly column: number; readonly expected: string };

export function placeOfFault(text: string): Fault {
  const open: ("{" | "[")[] = [];
  let awaits: Awaits = "value";
  let at = 0;

  const afterValue = (): Awaits => (open.length === 0 ? "end" : "comma");
  const take = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at += found[0].length;
    return found !== null;
  };
  /** The next token if it may stand here; null if it may not. */
  function step(): Awaits | null {
    const char = text[at];
    if (awaits === "colon") return char === ":" ? skip("value") : null;
    if (awaits === "comma") return afterComma(char);
    if (awaits === "end") return null;
    if (awaits === "key" || awaits === "key or }") {
      if (char === "}" && awaits === "key or }") return close();
      return take(TEXT) ? "colon" : null;
    }
    if (char === "]" && awaits === "value or ]") return close();
    if (char === "{" || char === "[") {
      open.push(char);
      return skip(char === "{" ? "key or }" : "value or ]");
    }
    return take(TEXT) || take(NUMBER) || take(WORD) ? afterValue() : null;
  }
  function afterComma(char: string | undefined): Awaits | null {
    const inside = open.at(-1);
    if (char === ",") return skip(inside === "{" ? "key" : "value");
    return char === (inside === "{" ? "}" : "]") ? close() : null;
  }
  function close(): Awaits {
    open.pop();
    return skip(afterValue());
  }
  function skip(next: Awaits): Awaits {
    at++;
    return next;
  }

  for (;;) {
    take(SPACE);
    const next = at < text.length ? step() : null;
    if (next === null) return { ...placeAt(text, at), expected: EXPECTED[awaits] };
    awaits = next;
  }
}

function placeAt(text: string, at: number): { line: number; column: number } {
  const before = text.slice(0, at);
  const lineStart = before.lastIndexOf("\n") + 1;
  return { line: before.split("\n").length, column: at - lineStart + 1 };
}
