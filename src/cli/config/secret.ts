/**
 * Which parts of a config file are never shown, not even where a line is wrong, nor which of an address.
 *
 * A complaint comes with the line it is about, and is pasted into chats and issues. Behind the name of a secret the
 * rest of the line is left out, and so is every further line of its value. What a value ends at is the file's word: a
 * comma in a password ends it too early, so inside { } everything that follows counts as secret as well. An unknown
 * name may be that of a secret, misspelt, so its value is left out too.
 */
import { type Document, isMap, isPair, isScalar, type Node, type Pair, visit } from "yaml";
import { type JsonSchema, schemaAt } from "../../protocol/schema/index.ts";

type Span = { readonly from: number; readonly to: number };

/** Looks at the text, for where YAML could make nothing of it: all of the line behind such a name. */
const IN_TEXT: readonly RegExp[] = [
  /(?:token|tokenHash|secret)["']?\s*:/i,
  /\bserver\b.*?\btokens["']?\s*:/,
  /\burl["']?\s*:(?!\s*["']?(?:sqlite|memory)\b[^@?]*$)/,
  /[a-z][a-z0-9+.-]*:\/\/(?=[^@]*@)/i,
];

/** Where in a line the first secret begins, counted from 0; its length if it holds none. */
export function secretStart(text: string, line: Span, document: Document, schema: JsonSchema | null): number {
  const own = text.slice(line.from, line.to);
  const named = IN_TEXT.map((name) => name.exec(own)).filter((match) => match !== null);
  const held = secretSpans(text, document, schema).filter(({ from, to }) => from < line.to && to > line.from);
  return Math.min(
    own.length,
    ...named.map(({ index, 0: name }) => index + name.length),
    ...held.map(({ from }) => Math.max(0, from - line.from)),
  );
}

function secretSpans(text: string, document: Document, schema: JsonSchema | null): Span[] {
  const spans: Span[] = [];
  visit(document, {
    Pair: (_, pair, path) => {
      const names = [...path.filter(isPair), pair].map(nameOf);
      const isUnknown = schema !== null && schemaAt(schema, names) === null;
      if (!isUnknown && !isSecret(names, pair.value as Node | null)) return;
      const around = path.at(-1);
      const key = pair.key as Node;
      const last = isMap(around) && around.flow === true ? around : ((pair.value as Node | null) ?? key);
      const from = (key.range?.[1] ?? 0) + 1;
      const to = from + text.slice(from, last.range?.[1] ?? from).trimEnd().length;
      spans.push({ from, to });
    },
  });
  return spans;
}

const nameOf = ({ key }: Pair): string => (isScalar(key) ? String(key.value) : "");

const SECTIONS: ReadonlySet<string> = new Set(["log", "server", "webhooks"]);

function isSecret(names: readonly string[], value: Node | null): boolean {
  const path = names.join(".");
  if (path === "log.url") return !(isScalar(value) && isHarmlessUrl(String(value.value)));
  // A plain value where a section belongs may be the secret of that section.
  if (SECTIONS.has(path)) return value !== null && !isMap(value);
  return path === "server.tokens" || path === "webhooks.secret";
}

/** The message of a parser without the words of the file that it repeats. */
export const withoutQuoted = (message: string): string =>
  message.replace(/: ".*"$/s, "").replace(/(alias.*?): .*$/s, "$1");

const UNKNOWN = " is not a known field";

export const isOfUnknownName = (message: string): boolean => message.includes(UNKNOWN);

/** A message without the name it is about: that may be the tail of a value that a comma has cut in two. */
export const withoutName = (message: string): string =>
  isOfUnknownName(message) ? `this${message.slice(message.lastIndexOf(UNKNOWN))}` : message;

// --- addresses without a password before the host and what stands behind a question mark, where drivers take some too

/**
 * As much as may be shown. A password may hold any letter, an `@` or a slash included. Where the host cannot be
 * found, that is the scheme.
 */
export function withoutCredentials(url: string): string {
  const [, scheme = "", slashes, rest = ""] = /^([a-z][a-z0-9+.-]*:)(\/\/)?(.*)$/is.exec(url) ?? [];
  if (scheme === "") return /[@:?]/.test(url) ? "(hidden)" : url;
  const at = rest.lastIndexOf("@");
  const host = rest.slice(at + 1);
  if (slashes === undefined || !HOST.test(host)) return `${scheme}(hidden)`;
  return `${scheme}//${at < 0 ? "" : "(hidden)@"}${host.replace(/\?.*$/s, "?(hidden)")}`;
}

/** A host with or without a port, or several, and what follows. */
const HOST = /^(?:[^:/?#,]*|\[[0-9a-f:.]+\])(?::\d+)?(?:,(?:[^:/?#,]+|\[[0-9a-f:.]+\])(?::\d+)?)*(?:[/?#].*)?$/is;

const CREDENTIALS = /[a-z][a-z0-9+.-]*:\/\/\S*@\S*/gi;

/** A line of text in which addresses may stand. */
export const withoutAnyCredentials = (line: string): string => line.replace(CREDENTIALS, withoutCredentials);

/** The address of a log on this machine, which holds nothing of the kind. */
export const isHarmlessUrl = (url: string): boolean => /^(?:sqlite|memory)\b[^@?]*$/.test(url);
