/**
 * Where PostgreSQL is, as one URL: `postgres://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?schema=drover`.
 *
 * Several hosts are those of one database and its standbys: the one that takes writes is used. Behind a pooler that
 * lends connections for a transaction, `listen=HOST:PORT` names the database itself, for the one connection that hears
 * of new batches at once. The password may also come from PGPASSWORD or ~/.pgpass, so that none stands on a command
 * line. What is refused here is said without the URL, since a password may be in it.
 */
import { readFileSync } from "node:fs";
import { errorText } from "../../core/base/index.ts";
import { LogFailure } from "../log.ts";

export type Place = { readonly host: string; readonly port: number };

export type PostgresAddress = {
  readonly places: readonly Place[];
  /** Where a connection is the same from one transaction to the next. */
  readonly listening: readonly Place[];
  readonly database: string;
  readonly user: string;
  /** Undefined if it comes from PGPASSWORD or ~/.pgpass, or none is asked for. */
  readonly password: string | undefined;
  readonly schema: string;
  readonly ssl: false | { readonly rejectUnauthorized: boolean; readonly ca?: string };
  /** For people: hosts, database and schema alone. */
  readonly shown: string;
};

const PORT_DEFAULT = 5432;
const PLACES_MAX = 16;
const EXAMPLE = "postgres://user:password@host:5432/database";
const SCHEMES = /^postgres(?:ql)?:\/\//;
const PLACE = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/;
const NAME = /^[a-z_][a-z0-9_]{0,62}$/;
const OPTIONS: readonly string[] = ["schema", "sslmode", "sslrootcert", "listen"];
const SSL_MODES: readonly string[] = ["disable", "require", "verify-ca", "verify-full"];

export function readAddress(url: string): PostgresAddress {
  const [scheme] = SCHEMES.exec(url) ?? [];
  if (scheme === undefined) throw refused(`an address of PostgreSQL begins with postgres://, as in ${EXAMPLE}`);
  const [rest = "", query = ""] = cutAt(url.slice(scheme.length), "?");
  const at = rest.lastIndexOf("@");
  const [hosts = "", path = ""] = cutAt(rest.slice(at + 1), "/");
  const [user, password] = cutAt(at < 0 ? "" : rest.slice(0, at), ":");
  if (`${user}${password ?? ""}`.includes("/") || query.includes("@"))
    throw refused("the user or password in the address of PostgreSQL has a sign that must be percent-encoded");
  const options = readOptions(query);
  const places = readPlaces(hosts);
  const name = decoded(user ?? "") || process.env.PGUSER || "";
  const database = decoded(path) || name;
  if (name === "") throw refused(`the address of PostgreSQL names no user, as in ${EXAMPLE}`);
  const schema = options.schema ?? "drover";
  if (!NAME.test(schema))
    throw refused(
      `the schema ${JSON.stringify(schema)} is not of small letters, digits and "_", at most 63 characters`,
    );
  const shown = places.map(({ host, port }) => `${host}:${port}`).join(",");
  return {
    places,
    listening: options.listen === undefined ? places : readPlaces(options.listen),
    database,
    user: name,
    password: password === undefined ? undefined : decoded(password),
    schema,
    ssl: readSsl(options),
    shown: `postgres://${shown}/${database}${schema === "drover" ? "" : `?schema=${schema}`}`,
  };
}

type Options = { readonly [name in "schema" | "sslmode" | "sslrootcert" | "listen"]?: string };

export const refused = (sentence: string): LogFailure => new LogFailure("refused", sentence);

function readPlaces(text: string): Place[] {
  const all = text.split(",");
  if (all.length > PLACES_MAX)
    throw refused(`the address of PostgreSQL names ${all.length} hosts; at most ${PLACES_MAX} are taken`);
  return all.map((each) => {
    const [, host = "", digits] = PLACE.exec(each) ?? [];
    const port = digits === undefined ? PORT_DEFAULT : Number(digits);
    if (host === "" || port < 1 || port > 65_535)
      throw refused(`the host ${JSON.stringify(each)} in the address of PostgreSQL is not HOST:PORT, as in ${EXAMPLE}`);
    return { host: host.replace(/^\[|\]$/g, ""), port };
  });
}

function readOptions(query: string): Options {
  const given: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(query)) {
    if (!OPTIONS.includes(name))
      throw refused(
        `the address of PostgreSQL has the option ${JSON.stringify(name)}; there are ${OPTIONS.join(", ")}`,
      );
    given[name] = value;
  }
  return given;
}

function readSsl({ sslmode = "disable", sslrootcert }: Options): PostgresAddress["ssl"] {
  if (!SSL_MODES.includes(sslmode))
    throw refused(`the option sslmode is ${JSON.stringify(sslmode)}; there are ${SSL_MODES.join(", ")}`);
  if (sslmode === "disable") return false;
  const rejectUnauthorized = sslmode !== "require" || sslrootcert !== undefined;
  return sslrootcert === undefined ? { rejectUnauthorized } : { rejectUnauthorized, ca: textOf(sslrootcert) };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw refused(`the file for sslrootcert of PostgreSQL cannot be read: ${errorText(error)}`);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refused("the address of PostgreSQL has a % that is not followed by two hex digits");
  }
}

/** What is before the first mark and what is behind it; without the mark, all of it. */
function cutAt(text: string, mark: string): string[] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
