/**
 * The options of a client, read at the door.
 *
 * An address under a misspelt name, or handed over without a name, must not leave a client that talks to the default
 * one. So options are a plain object of known fields of the right kind, and anything else is refused at once.
 */
import { isPlainObject, THROWS } from "../core/base/plain-object.ts";
import { kindInWords } from "../std/plain-json.ts";
import { type Rule, span, times, valueInWords, wrong } from "./call-options.ts";
import { ClientError } from "./client-error.ts";
import type { Rest } from "./exchange.ts";
import type { Fetch } from "./fetch.ts";

/** Where the server is, and how to talk to it. */
export type ClientOptions = {
  /** Where the server is; several nodes as a list, or as a text with commas. http://127.0.0.1:4747 if absent. */
  readonly url?: string | readonly string[];
  /** Who calls, where the server asks for it. */
  readonly token?: string;
  /** In place of the global fetch, which keeps connections alive and gives up on an answer after 300 s. */
  readonly fetch?: Fetch;
  /** How long one try may take, beside what a call itself waits for; 30 s if absent. */
  readonly timeoutMs?: number;
  /** How often a call is made again where that is safe; 4 if absent. */
  readonly retries?: number;
  /** How to rest between tries, for tests. */
  readonly rest?: Rest;
};

const isText = (value: unknown): boolean => typeof value === "string";
const isFunction = (value: unknown): boolean => typeof value === "function";
const RULES: { readonly [Key in keyof Required<ClientOptions>]: Rule } = {
  url: {
    expected: "text: an http or https URL, or a list of them",
    isRight: (value) => isText(value) || (Array.isArray(value) && value.every(isText)),
  },
  token: { expected: "text", isRight: isText },
  fetch: { expected: "a function like the global fetch", isRight: isFunction },
  timeoutMs: span(1),
  retries: times,
  rest: { expected: "a function of milliseconds and a signal that answers a promise", isRight: isFunction },
};
const KNOWN = Object.keys(RULES);
const KEY_LENGTH_MAX = 80;

/** The options as given, checked. A field that is undefined is absent. */
export function readOptions(given: unknown): ClientOptions {
  if (typeof given === "string") throw wrong("options", "text", 'an object: createClient({ url: "…" })');
  const entries = entriesOf(given);
  if (entries === null) throw wrong("options", kindInWords(given), "a plain object such as { url: …, token: … }");
  for (const [key, value] of entries) {
    if (!Object.hasOwn(RULES, key)) throw unknownField(key);
    const { expected, isRight } = RULES[key as keyof ClientOptions];
    if (value !== undefined && !isRight(value))
      throw wrong(key, key === "token" ? kindInWords(value) : valueInWords(value), expected);
  }
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** Each field is read once, so that what was checked is what is used. Null for what is no plain object. */
function entriesOf(given: unknown): readonly (readonly [string, unknown])[] | null {
  try {
    if (typeof given !== "object" || given === null || Array.isArray(given)) return null;
    return isPlainObject(given) ? Object.entries(given) : null;
  } catch {
    throw wrong("options", THROWS, "a plain object such as { url: …, token: … }");
  }
}

function unknownField(key: string): ClientError {
  const field = key.length <= KEY_LENGTH_MAX ? key : `${key.slice(0, KEY_LENGTH_MAX)}…`;
  const meant = KNOWN.find((name) => name.toLowerCase() === key.toLowerCase());
  const hint = meant === undefined ? "" : ` (did you mean ${meant}?)`;
  const said = `${field} is not a known field of the client's options${hint}; known here: ${KNOWN.join(", ")}`;
  return new ClientError("bad_request", said, { details: { field, known: KNOWN } });
}
