/**
 * Where etcd is, as one URL: `etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX?tls=true&ca=FILE&cert=FILE&key=FILE`.
 *
 * Only the hosts are needed. The prefix is the beginning of every key, as `etcdctl get --prefix /PREFIX/` shows them.
 * User and password are percent-encoded; they, and the files, may be given beside the URL instead, so that no password
 * stands on a command line. What is refused here is said without the URL, since a password may be in it.
 */
import { readFileSync } from "node:fs";
import { errorText } from "../../core/base/index.ts";
import { LogFailure } from "../log.ts";

export type Endpoint = { readonly host: string; readonly port: number /** `host:port` */; readonly name: string };
export type Credentials = { readonly user: string; readonly password: string };
/** What TLS is made with: the texts of the files. */
export type TlsTexts = { readonly ca?: string; readonly cert?: string; readonly key?: string };

export type EtcdAddress = {
  readonly endpoints: readonly Endpoint[];
  /** Every key begins so; it ends with a slash. */
  readonly prefix: string;
  readonly credentials: Credentials | null;
  readonly tls: TlsTexts | null;
  /** For people: hosts and prefix alone. */
  readonly shown: string;
};

/** What may be given beside the URL; it counts more than what the URL says. */
export type AddressOptions = {
  readonly user?: string;
  readonly password?: string;
  readonly tls?: boolean;
  /** Paths of PEM files: the authority that signed etcd's certificate, and our own certificate with its key. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
};

const SCHEME = "etcd://";
const PORT_DEFAULT = 2379;
const PREFIX_DEFAULT = "/drover";
const ENDPOINTS_MAX = 16;
const PREFIX_LENGTH_MAX = 256;
const HOST = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/;
const PREFIX = /^(\/[A-Za-z0-9._~-]+)+$/;
const FILES = ["ca", "cert", "key"] as const;
const PARAMETERS: readonly string[] = ["tls", ...FILES];
const EXAMPLE = "etcd://h1:2379,h2:2379,h3:2379/drover";

export function readAddress(url: string, options: AddressOptions = {}): EtcdAddress {
  if (!url.startsWith(SCHEME)) throw refused(`an address of etcd begins with ${SCHEME}, as in ${EXAMPLE}`);
  const [place = "", query = ""] = cutAt(url.slice(SCHEME.length), "?");
  const at = place.lastIndexOf("@");
  const [hosts = "", path = ""] = cutAt(place.slice(at + 1), "/");
  const userInfo = at < 0 ? "" : place.slice(0, at);
  if (userInfo.includes("/") || query.includes("@"))
    throw refused("the user or password in the address of etcd has a sign that must be percent-encoded, as / is %2F");
  const endpoints = readHosts(hosts);
  const prefix = path === "" ? PREFIX_DEFAULT : `/${path.replace(/\/$/, "")}`;
  if (!PREFIX.test(prefix) || prefix.length > PREFIX_LENGTH_MAX)
    throw refused(
      `the prefix ${JSON.stringify(prefix)} of the address of etcd is not of letters, digits, ".", "_", "~", "-" ` +
        `and "/", at most ${PREFIX_LENGTH_MAX} characters, as in ${EXAMPLE}`,
    );
  const given = readParameters(query);
  return {
    endpoints,
    prefix: `${prefix}/`,
    credentials: readCredentials(userInfo, options),
    tls: readTls({ ...given, ...options }),
    shown: `${SCHEME}${endpoints.map(({ name }) => name).join(",")}${prefix}`,
  };
}

export const refused = (sentence: string): LogFailure => new LogFailure("refused", sentence);

function readHosts(text: string): Endpoint[] {
  const hosts = text.split(",");
  if (hosts.length > ENDPOINTS_MAX)
    throw refused(`the address of etcd names ${hosts.length} hosts; at most ${ENDPOINTS_MAX} are taken`);
  return hosts.map((each) => {
    const [, host = "", digits] = HOST.exec(each) ?? [];
    const port = digits === undefined ? PORT_DEFAULT : Number(digits);
    if (host === "" || port < 1 || port > 65_535)
      throw refused(`the host ${JSON.stringify(each)} in the address of etcd is not HOST:PORT, as in ${EXAMPLE}`);
    return { host: host.replace(/^\[|\]$/g, ""), port, name: `${host}:${port}` };
  });
}

function readCredentials(userInfo: string, options: AddressOptions): Credentials | null {
  const [name = "", secret] = cutAt(userInfo, ":");
  const user = options.user ?? decoded(name);
  const password = options.password ?? (secret === undefined ? undefined : decoded(secret));
  if (user === "" && password === undefined) return null;
  if (user === "") throw refused("there is a password for etcd and no user: give both");
  if (password === undefined) throw refused(`there is a user for etcd, ${JSON.stringify(user)}, and no password`);
  return { user, password };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refused("the user or password in the address of etcd has a % that is not followed by two hex digits");
  }
}

function readParameters(query: string): AddressOptions {
  const given: Record<string, string | boolean> = {};
  for (const [name, value] of new URLSearchParams(query)) {
    if (!PARAMETERS.includes(name))
      throw refused(`the address of etcd has the option ${JSON.stringify(name)}; there are ${PARAMETERS.join(", ")}`);
    if (name === "tls" && value !== "true" && value !== "false")
      throw refused(`the option tls of the address of etcd is ${JSON.stringify(value)}, not true or false`);
    given[name] = name === "tls" ? value === "true" : value;
  }
  return given;
}

function readTls(options: AddressOptions): TlsTexts | null {
  const { tls, cert, key } = options;
  const named = FILES.filter((name) => options[name] !== undefined);
  if (tls === false && named.length > 0) throw refused(`tls is false and ${named.join(", ")} is given: leave one out`);
  if ((cert === undefined) !== (key === undefined)) throw refused("cert and key of etcd belong together: give both");
  if (tls !== true && named.length === 0) return null;
  return Object.fromEntries(named.map((name) => [name, textOf(name, options[name] as string)]));
}

function textOf(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw refused(`the file for ${name} of etcd cannot be read: ${errorText(error)}`);
  }
}

/** What is before the first mark and what is behind it; without the mark, all of it. */
function cutAt(text: string, mark: string): string[] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
