/**
 * What the addresses of journals have in common: `SCHEME://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH?OPTION=VALUE`.
 *
 * User and password are percent-encoded. What is refused is said without the URL, since a password may be in it.
 */
import { readFileSync } from "node:fs";
import { errorText } from "../../core/base/index.ts";
import { LogFailure } from "../log.ts";

/** What an address is of, and how one is written, for people. */
export type AddressKind = { readonly product: string; readonly portDefault: number; readonly example: string };
export type HostAndPort = { readonly host: string; readonly port: number /** `host:port` */; readonly name: string };
/** An address cut into its parts; nothing is decoded. */
export type AddressParts = {
  readonly user: string;
  readonly password: string | undefined;
  readonly hosts: string;
  readonly path: string;
  readonly query: string;
};

const HOSTS_MAX = 16;
const HOST = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/;

export const refused = (sentence: string): LogFailure => new LogFailure("refused", sentence);

/** Cuts what is behind the scheme. */
export function partsOf(text: string, { product }: AddressKind): AddressParts {
  const [place = "", query = ""] = cutAt(text, "?");
  const at = place.lastIndexOf("@");
  const [hosts = "", path = ""] = cutAt(place.slice(at + 1), "/");
  const userInfo = at < 0 ? "" : place.slice(0, at);
  if (userInfo.includes("/") || query.includes("@"))
    throw refused(
      `the user or password in the address of ${product} has a sign that must be percent-encoded, as / is %2F`,
    );
  const [user = "", password] = cutAt(userInfo, ":");
  return { user, password, hosts, path, query };
}

export function readHosts(text: string, { product, portDefault, example }: AddressKind): HostAndPort[] {
  const hosts = text.split(",");
  if (hosts.length > HOSTS_MAX)
    throw refused(`the address of ${product} names ${hosts.length} hosts; at most ${HOSTS_MAX} are taken`);
  return hosts.map((each) => {
    const [, host = "", digits] = HOST.exec(each) ?? [];
    const port = digits === undefined ? portDefault : Number(digits);
    if (host === "" || port < 1 || port > 65_535)
      throw refused(
        `the host ${JSON.stringify(shownHost(each))} in the address of ${product} is not HOST:PORT, as in ${example}`,
      );
    return { host: host.replace(/^\[|\]$/g, ""), port, name: `${host}:${port}` };
  });
}

/** What is behind the colon may be a password whose @HOST was forgotten. */
function shownHost(text: string): string {
  const [host = ""] = /^\[[0-9a-fA-F:.]*\]|^[^:]*/.exec(text) ?? [];
  return host === text ? host : `${host}:…`;
}

/** The options of an address, each with its value. */
export function readOptions(query: string, known: readonly string[], { product }: AddressKind): Map<string, string> {
  const given = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    if (!known.includes(name))
      throw refused(`the address of ${product} has the option ${JSON.stringify(name)}; there are ${known.join(", ")}`);
    given.set(name, value);
  }
  return given;
}

export function decoded(text: string, { product }: AddressKind): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refused(`the address of ${product} has a % that is not followed by two hex digits`);
  }
}

/** The text of a file that an option names. */
export function fileText(option: string, path: string, { product }: AddressKind): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw refused(`the file for ${option} of ${product} cannot be read: ${errorText(error)}`);
  }
}

/** What is before the first mark and what is behind it; without the mark, all of it. */
function cutAt(text: string, mark: string): string[] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
