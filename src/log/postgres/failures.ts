/**
 * What PostgreSQL says, in the journal's words: what passes by itself, and what a person must see to. No password is
 * ever in a sentence.
 */
import { errorText } from "../../core/base/index.ts";
import { LogFailure } from "../log.ts";
import type { PostgresAddress } from "./address.ts";

/** Errors of the server that pass: it is starting, stopping, a standby, or has no connection left. By class or code. */
const PASSING = /^(08|40|53|55|57|25006|XX000)/;
const FULL = "53100";
const NO_DATABASE = "3D000";
const NOT_ALLOWED = "42501";
const WRONG_PASSWORD = /^28/;
/** What the driver says of itself when it is asked for one. */
const NO_PASSWORD = /client password must be a (?:non-empty )?string/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

/** A question that was not answered in time. */
export class NoAnswer extends Error {}

export function failureOf(error: unknown, address: PostgresAddress): unknown {
  if (error instanceof LogFailure || !(error instanceof Error)) return error;
  const { shown, user, database, schema } = address;
  const code = codeOf(error);
  const because = reasonOf(error);
  if (NO_PASSWORD.test(error.message))
    return new LogFailure(
      "refused",
      `PostgreSQL at ${shown} asks the user ${JSON.stringify(user)} for a password, and there is none. Put it into ` +
        "the address, as in postgres://user:password@host:5432/database, or into PGPASSWORD.",
    );
  if (code === FULL)
    return new LogFailure("journal-full", `PostgreSQL at ${shown} has no room left on its disk. Make room there.`);
  if (code === null || PASSING.test(code))
    return new LogFailure("unreachable", `PostgreSQL at ${shown} cannot be reached: ${because}`);
  const refused = (sentence: string): LogFailure => new LogFailure("refused", `PostgreSQL at ${shown} ${sentence}`);
  if (WRONG_PASSWORD.test(code)) return refused(`does not let the user ${JSON.stringify(user)} in: ${because}`);
  if (code === NO_DATABASE) return refused(`has no database ${JSON.stringify(database)}: create it first`);
  if (code === NOT_ALLOWED)
    return refused(
      `does not let the user ${JSON.stringify(user)} do what is needed (${because}). Create the schema for it: ` +
        `CREATE SCHEMA ${schema} AUTHORIZATION "${user}"`,
    );
  return refused(`refuses: ${because} (${code})`);
}

/** The code that the server gave an error, or null if the error is of the connection. */
function codeOf(error: Error): string | null {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && SQLSTATE.test(code) && "severity" in error ? code : null;
}

function reasonOf(error: Error): string {
  const { code, hostname } = error as NodeJS.ErrnoException & { hostname?: string };
  if (code === "ENOTFOUND") return `the host ${JSON.stringify(hostname)} is not known; check its name`;
  if (error instanceof AggregateError) return error.errors.map(errorText).join("; ");
  return errorText(error);
}
