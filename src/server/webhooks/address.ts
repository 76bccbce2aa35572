/**
 * Where a webhook may go.
 *
 * The caller that submits a task names an address that this server will call, from inside the network this server
 * stands in. Left unchecked that is a way to everything the caller cannot reach itself: the cloud's metadata service, a
 * database on loopback, the router. Checking the text for "127.0.0.1" does not shut it, since an address has many
 * spellings (`2130706433`, `0x7f.1`, `[::ffff:7f00:1]`, full-width digits), so nothing here looks at text: the URL
 * parser that also makes the request reads it first, and what it took for an address is judged as a number.
 *
 * The judgement is a list of what is allowed, not of what is not: an address that is plain global unicast is good, and
 * everything with a special meaning is not. An IPv6 address that only wraps an IPv4 one is judged by what it wraps. A
 * name is not judged by its text at all, except `localhost`: names are resolved when the webhook is sent, every address
 * found is judged by `specialRangeOf`, and the connection goes to one of exactly those.
 */
import ipaddr from "ipaddr.js";
import { badField, fail, ok, type Refusal, type Result } from "../../core/base/index.ts";

const URL_LENGTH_MAX = 2048;

type CallbackRules = { readonly allowPrivate: boolean };

/** For submit time: the URL in its one spelling, or why it is refused. Repeat it before sending: rules change. */
export function checkCallbackUrl(text: unknown, rules: CallbackRules, field = "callbackUrl"): Result<URL, Refusal> {
  const read = readCallbackUrl(text, rules);
  if (read.ok) return read;
  return fail(badField(field, typeof text === "string" ? shownUrl(text) : text, read.failure));
}

/** A URL may hold a password, in more than one place: only its scheme and host are repeated. */
function shownUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url === null ? "no URL" : `${url.protocol}//${url.host}${url.pathname === "/" ? "/" : "/…"}`;
}

/** The same, with only what was expected as the failure, so that no log repeats what the URL holds. */
export function readCallbackUrl(text: unknown, { allowPrivate }: CallbackRules): Result<URL, string> {
  if (typeof text !== "string" || text.length > URL_LENGTH_MAX || !URL.canParse(text))
    return fail(`a URL such as https://example.com/hook, of at most ${URL_LENGTH_MAX} characters`);
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") return fail("an http or https URL");
  if (url.username !== "" || url.password !== "") return fail("a URL without a user name or password");
  if (url.port === "0") return fail("a URL with a port from 1 to 65535");
  if (allowPrivate) return ok(url);
  const range = specialRangeOf(hostOf(url)) ?? (isLocalhost(hostOf(url)) ? "loopback" : null);
  return range === null ? ok(url) : fail(`a public address, not a ${range} one (webhooks.allowPrivate allows those)`);
}

/** The host as a resolver or a socket takes it: an IPv6 address has no brackets there. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, "$1");

/** Why an address is not for everybody: the name of its range. Null: it is public, or not an address at all. */
export function specialRangeOf(host: string): string | null {
  if (!ipaddr.isValid(host)) return null;
  const address = ipaddr.parse(host);
  return address.kind() === "ipv4" ? specialIpv4(address as ipaddr.IPv4) : specialIpv6(address as ipaddr.IPv6);
}

const worded = (range: string): string => range.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

function specialIpv4(address: ipaddr.IPv4): string | null {
  const range = address.range();
  return range === "unicast" ? null : worded(range);
}

/** Addresses that IPv6 hands to everybody begin with 001; of those, several blocks have meanings of their own. */
function specialIpv6(address: ipaddr.IPv6): string | null {
  const range: string = address.range();
  const wraps = range === "ipv4Mapped" || (range === "rfc6052" && address.parts[2] === 0);
  if (wraps) return specialIpv4(new ipaddr.IPv4(address.toByteArray().slice(12)));
  if (range !== "unicast") return worded(range);
  return ((address.parts[0] ?? 0) & 0xe000) === 0x2000 ? null : "reserved";
}

/** Every name under localhost is this machine, by RFC 6761, whatever a resolver says. */
const isLocalhost = (host: string): boolean => /^(.+\.)?localhost\.?$/.test(host);
