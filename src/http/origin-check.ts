/**
 * Who may call at all: a web page must not drive a local server.
 *
 * A browser lets any page send requests to 127.0.0.1, and a page can even make its own name resolve to 127.0.0.1 (DNS
 * rebinding), so that the browser takes this server for the page's own. Two headers that a page cannot forge tell:
 * `Host` is the name under which the server was called, `Origin` is the page. A request under a name that is not this
 * server's is refused, and so is one that comes from another page, on every method, reads included. Programs that are
 * no browsers send no Origin and pass. Addresses written as numbers cannot be rebound, so where the server listens to
 * more than loopback any address will do as Host; a further name must be listed in `server.allowedHosts`. A node of a
 * cluster is also called by the host and port that it has told the others, and by no other port of that name.
 *
 * No answer ever carries a CORS header. An origin in `server.allowedOrigins` may call, but it cannot read answers
 * unless something between adds that header; it is meant for a page that is served through a proxy.
 */
import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { isLoopback } from "../std/index.ts";
import { badHeader, forbidden, type ServerRefusal } from "./problem.ts";

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

type OriginSettings = {
  readonly host: string;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  /** The URL under which others are told to call this server, if they are told one. */
  readonly advertised?: (() => string) | undefined;
};
export type OriginCheck = (headers: IncomingHttpHeaders) => ServerRefusal | null;

/** A name as `Host` gives it: without the port, an IPv6 address in brackets. */
const nameOf = (host: string): string => host.replace(/:\d*$/, "").toLowerCase();
const bracketed = (host: string): string => (isIP(host) === 6 ? `[${host}]` : host.toLowerCase());

export function createOriginCheck({ host, allowedHosts, allowedOrigins, advertised }: OriginSettings): OriginCheck {
  const own = new Set([...LOOPBACK_NAMES, bracketed(host), ...allowedHosts.map((one) => one.toLowerCase())]);
  const origins = new Set(allowedOrigins.map((one) => one.toLowerCase().replace(/\/$/, "")));
  const isOpenToAddresses = !isLoopback(host);
  /** The last Host that was let in: nearly every request has the same. */
  let known = "";

  function isOwn(given: string): boolean {
    const name = nameOf(given);
    if (own.has(name) || own.has(given.toLowerCase())) return true;
    if (isOpenToAddresses && isIP(name.replace(/^\[(.*)\]$/, "$1")) !== 0) return true;
    return advertised !== undefined && given.toLowerCase() === new URL(advertised()).host;
  }

  function fromPage(headers: IncomingHttpHeaders, host: string): ServerRefusal | null {
    const { origin } = headers;
    if (origin !== undefined) {
      const from = origin.toLowerCase();
      if (from === `http://${host}` || from === `https://${host}` || origins.has(from)) return null;
      return forbidden(
        "a web page from elsewhere may not call this server; server.allowedOrigins lists those that may",
        { origin: origin.slice(0, 200) },
      );
    }
    // An image or a script of another page sends no Origin, but its browser says where it comes from.
    const site = headers["sec-fetch-site"];
    const isForeign = site === "cross-site" || site === "same-site";
    if (!isForeign || headers["sec-fetch-mode"] === "navigate") return null;
    return forbidden("a web page from elsewhere may not call this server", { site });
  }

  return (headers) => {
    const { host: given } = headers;
    if (given === undefined) return badHeader("host", "a request must say by the header Host which server it means");
    if (given !== known) {
      if (!isOwn(given))
        return forbidden(`this server is not called ${given.slice(0, 200)}; server.allowedHosts lists further names`, {
          host: given.slice(0, 200),
        });
      known = given;
    }
    if (headers.origin === undefined && headers["sec-fetch-site"] === undefined) return null;
    return fromPage(headers, given.toLowerCase());
  };
}
