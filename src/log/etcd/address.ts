/**
 * Where etcd is, as one URL: `etcd://USER:PASSWORD@HOST:PORT,HOST:PORT/PREFIX?tls=true&ca=FILE&cert=FILE&key=FILE`.
 *
 * Only the hosts are needed. The prefix is the beginning of every key, as `etcdctl get --prefix /PREFIX/` shows them.
 * User and password are percent-encoded; they, and the files, may be given beside the URL instead, so that no password
 * stands on a command line. What is refused here is said without the URL, since a password may be in it.
 */
import {
  type AddressKind,
  decoded,
  fileText,
  type HostAndPort,
  partsOf,
  readHosts,
  readOptions,
  refused,
} from "../journal/address.ts";

export type Credentials = { readonly user: string; readonly password: string };
/** What TLS is made with: the texts of the files. */
export type TlsTexts = { readonly ca?: string; readonly cert?: string; readonly key?: string };

export type EtcdAddress = {
  readonly endpoints: readonly HostAndPort[];
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
const PREFIX_DEFAULT = "/drover";
const PREFIX_LENGTH_MAX = 256;
const PREFIX = /^(\/[A-Za-z0-9._~-]+)+$/;
const FILES = ["ca", "cert", "key"] as const;
const PARAMETERS: readonly string[] = ["tls", ...FILES];
const EXAMPLE = "etcd://h1:2379,h2:2379,h3:2379/drover";
const ETCD: AddressKind = { product: "etcd", portDefault: 2379, example: EXAMPLE };

export function readAddress(url: string, options: AddressOptions = {}): EtcdAddress {
  if (!url.startsWith(SCHEME)) throw refused(`an address of etcd begins with ${SCHEME}, as in ${EXAMPLE}`);
  const { user, password, hosts, path, query } = partsOf(url.slice(SCHEME.length), ETCD);
  const endpoints = readHosts(hosts, ETCD);
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
    credentials: readCredentials(user, password, options),
    tls: readTls({ ...given, ...options }),
    shown: `${SCHEME}${endpoints.map(({ name }) => name).join(",")}${prefix}`,
  };
}

function readCredentials(name: string, secret: string | undefined, options: AddressOptions): Credentials | null {
  const user = options.user ?? decoded(name, ETCD);
  const password = options.password ?? (secret === undefined ? undefined : decoded(secret, ETCD));
  if (user === "" && password === undefined) return null;
  if (user === "") throw refused("there is a password for etcd and no user: give both");
  if (password === undefined) throw refused(`there is a user for etcd, ${JSON.stringify(user)}, and no password`);
  return { user, password };
}

function readParameters(query: string): AddressOptions {
  const { tls, ...files } = Object.fromEntries(readOptions(query, PARAMETERS, ETCD));
  if (tls === undefined) return files;
  if (tls !== "true" && tls !== "false")
    throw refused(`the option tls of the address of etcd is ${JSON.stringify(tls)}, not true or false`);
  return { ...files, tls: tls === "true" };
}

function readTls(options: AddressOptions): TlsTexts | null {
  const { tls, cert, key } = options;
  const named = FILES.filter((name) => options[name] !== undefined);
  if (tls === false && named.length > 0) throw refused(`tls is false and ${named.join(", ")} is given: leave one out`);
  if ((cert === undefined) !== (key === undefined)) throw refused("cert and key of etcd belong together: give both");
  if (tls !== true && named.length === 0) return null;
  return Object.fromEntries(named.map((name) => [name, fileText(name, options[name] as string, ETCD)]));
}
