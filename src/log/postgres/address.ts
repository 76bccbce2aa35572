/**
 * Where PostgreSQL is, as one URL: `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?schema=drover`.
 *
 * Several hosts are those of one database and its standbys: the one that takes writes is used. Behind a pooler that
 * lends connections for a transaction, `listen=HOST:PORT` names the database itself, for the one connection that hears
 * of new batches at once. The password may also come from PGPASSWORD or ~/.pgpass, so that none stands on a command
 * line. What is refused here is said without the URL, since a password may be in it.
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

export type PostgresAddress = {
  readonly places: readonly HostAndPort[];
  /** Where a connection is the same from one transaction to the next. */
  readonly listening: readonly HostAndPort[];
  readonly database: string;
  readonly user: string;
  /** Undefined if it comes from PGPASSWORD or ~/.pgpass, or none is asked for. */
  readonly password: string | undefined;
  readonly schema: string;
  readonly ssl: false | { readonly rejectUnauthorized: boolean; readonly ca?: string };
  /** For people: hosts, database and schema alone. */
  readonly shown: string;
};

const EXAMPLE = "postgres://user:password@host:5432/database";
const SCHEMES = /^postgres(?:ql)?:\/\//;
const POSTGRES: AddressKind = { product: "PostgreSQL", portDefault: 5432, example: EXAMPLE };
const NAME = /^[a-z_][a-z0-9_]{0,62}$/;
const OPTIONS: readonly string[] = ["schema", "sslmode", "sslrootcert", "listen"];
const SSL_MODES: readonly string[] = ["disable", "require", "verify-ca", "verify-full"];

export function readAddress(url: string): PostgresAddress {
  const [scheme] = SCHEMES.exec(url) ?? [];
  if (scheme === undefined) throw refused(`an address of PostgreSQL begins with postgres://, as in ${EXAMPLE}`);
  const { user, password, hosts, path, query } = partsOf(url.slice(scheme.length), POSTGRES);
  const places = readHosts(hosts, POSTGRES);
  const options: Options = Object.fromEntries(readOptions(query, OPTIONS, POSTGRES));
  const name = decoded(user, POSTGRES) || process.env.PGUSER || "";
  const database = decoded(path, POSTGRES) || name;
  if (name === "") throw refused(`the address of PostgreSQL names no user, as in ${EXAMPLE}`);
  const schema = options.schema ?? "drover";
  if (!NAME.test(schema))
    throw refused(
      `the schema ${JSON.stringify(schema)} is not of small letters, digits and "_", at most 63 characters`,
    );
  return {
    places,
    listening: options.listen === undefined ? places : readHosts(options.listen, POSTGRES),
    database,
    user: name,
    password: password === undefined ? undefined : decoded(password, POSTGRES),
    schema,
    ssl: readSsl(options),
    shown: shownAddress({ places, database, schema }),
  };
}

/** For people: hosts, database and schema alone. */
export const shownAddress = ({ places, database, schema }: Pick<PostgresAddress, "places" | "database" | "schema">) =>
  `postgres://${places.map(({ name }) => name).join(",")}/${database}${schema === "drover" ? "" : `?schema=${schema}`}`;

type Options = { readonly [name in "schema" | "sslmode" | "sslrootcert" | "listen"]?: string };

function readSsl({ sslmode = "disable", sslrootcert }: Options): PostgresAddress["ssl"] {
  if (!SSL_MODES.includes(sslmode))
    throw refused(`the option sslmode is ${JSON.stringify(sslmode)}; there are ${SSL_MODES.join(", ")}`);
  if (sslmode === "disable") return false;
  const rejectUnauthorized = sslmode !== "require" || sslrootcert !== undefined;
  return sslrootcert === undefined
    ? { rejectUnauthorized }
    : { rejectUnauthorized, ca: fileText("sslrootcert", sslrootcert, POSTGRES) };
}
