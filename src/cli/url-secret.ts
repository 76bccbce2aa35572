/**
 * Addresses without what only their owner should know: a password before the host, and what stands behind a question
 * mark, where some drivers take passwords too.
 */

/** As much as may be shown. A password may hold any letter, an `@` or a slash included. */
export function withoutCredentials(url: string): string {
  const [, scheme = "", rest = url] = /^([a-z][a-z0-9+.-]*:(?:\/\/)?)(.*)$/is.exec(url) ?? [];
  const at = rest.lastIndexOf("@");
  const host = at < 0 ? rest : `(hidden)@${rest.slice(at + 1)}`;
  return scheme + host.replace(/\?.*$/s, "?(hidden)");
}

const CREDENTIALS = /[a-z][a-z0-9+.-]*:\/\/\S*@\S*/gi;

/** A line of text in which addresses may stand. */
export const withoutAnyCredentials = (line: string): string => line.replace(CREDENTIALS, withoutCredentials);
