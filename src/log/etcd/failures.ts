/**
 * What a fault of etcd means to whoever uses the journal, in one sentence each; no password is ever in one.
 */
import { closedFailure, LogFailure } from "../log.ts";
import type { EtcdAddress } from "./address.ts";
import { CODE, EtcdFault, isFull, isTokenFault, isWrongPassword } from "./fault.ts";

function failureOf(error: unknown, { shown, credentials, prefix }: EtcdAddress): unknown {
  if (!(error instanceof EtcdFault)) return error;
  if (error.type !== "answered")
    return new LogFailure("unreachable", `the journal at ${shown} cannot be reached: ${error.message}`);
  if (isFull(error))
    return new LogFailure(
      "journal-full",
      `etcd at ${shown} has no room left and takes nothing more. Make room there: etcdctl defrag, or a larger ` +
        "--quota-backend-bytes; then etcdctl alarm disarm.",
    );
  return new LogFailure("refused", `etcd at ${shown} ${refusalOf(error, credentials?.user ?? null, prefix)}`);
}

function refusalOf(fault: EtcdFault, user: string | null, prefix: string): string {
  if (user === null && isTokenFault(fault))
    return "asks for a user and a password: give them, as in etcd://USER:PASSWORD@HOST:2379/drover";
  const name = JSON.stringify(user);
  if (isWrongPassword(fault)) return `does not know the user ${name} with this password`;
  if (isTokenFault(fault)) return `does not let the user ${name} in: ${fault.message}`;
  if (fault.code === CODE.denied)
    return (
      `does not let the user ${name} read and write its keys: ` +
      `etcdctl role grant-permission ROLE --prefix=true readwrite ${prefix}`
    );
  if (/too large|larger than max/.test(fault.message))
    return `takes too little at once (${fault.message}): give its members --max-request-bytes=1572864 or more`;
  return `refuses: ${fault.message}`;
}

/** The same work, with its faults said as failures of the journal; `closed` where it was closed meanwhile. */
export async function saying<Answer>(
  address: EtcdAddress,
  closing: AbortSignal,
  work: () => Promise<Answer>,
): Promise<Answer> {
  if (closing.aborted) throw closedFailure();
  try {
    return await work();
  } catch (error) {
    if (closing.aborted && error instanceof EtcdFault) throw closedFailure();
    throw failureOf(error, address);
  }
}
