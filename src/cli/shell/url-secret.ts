/**
 * Addresses without what only their owner should know: a password before the host, and what stands behind a question
 * mark, where some drivers take passwords too.
 */

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

/** A host with or without a port, and what follows. */
const HOST = /^[^:/?#]*(?::\d+)?(?:[/?#].*)?$/s;

const CREDENTIALS = /[a-z][a-z0-9+.-]*:\/\/\S*@\S*/gi;

/** A line of text in which addresses may stand. */
export const withoutAnyCredentials = (line: string): string => line.replace(CREDENTIALS, withoutCredentials);

/** The address of a log on this machine, which holds nothing of the kind. */
export const isHarmlessUrl = (url: string): boolean => /^(?:sqlite|memory)\b[^@?]*$/.test(url);
