/**
 * What a call to etcd can end with, other than what was asked for.
 *
 * For a write it matters most whether it may have been done. `unsent`: nothing of it left this machine, or etcd was
 * not asked. `lost`: it was sent and no answer came, or one that leaves it open, such as a leader that changed
 * meanwhile; it may be done now, later or never. `answered`: etcd refused it, and nothing of it was done.
 */

/** Codes of gRPC, as etcd's gateway gives them. */
export const CODE = {
  invalid: 3,
  denied: 7,
  exhausted: 8,
  precondition: 9,
  outOfRange: 11,
  unauthenticated: 16,
} as const;

export class EtcdFault extends Error {
  override readonly name: string = "EtcdFault";
  readonly type: "unsent" | "lost" | "answered";
  /** etcd's code, if it answered. */
  readonly code: number | null;

  constructor(type: EtcdFault["type"], message: string, code: number | null = null) {
    super(message);
    this.type = type;
    this.code = code;
  }
}

const DEFINITE: ReadonlySet<number> = new Set([5, 6, 12, ...Object.values(CODE)]);
const TEXT_MAX = 200;

/** What etcd's refusal means. Codes that do not say whether it was done count as a lost answer. */
export function faultOf(code: number, message: string): EtcdFault {
  const isBusy = code === CODE.exhausted && /too many requests/.test(message);
  return new EtcdFault(DEFINITE.has(code) && !isBusy ? "answered" : "lost", message.slice(0, TEXT_MAX), code);
}

/** There is no room: etcd takes nothing more until somebody makes some and disarms the alarm. */
export const isFull = (fault: EtcdFault): boolean =>
  fault.code === CODE.exhausted && /space exceeded/.test(fault.message);

/** The token is gone or of before a change of users. Nothing was done: a new one is fetched. */
export const isTokenFault = (fault: EtcdFault): boolean =>
  fault.code === CODE.unauthenticated ||
  (fault.code === CODE.invalid && /user name is empty|revision in header is old|auth store is old/.test(fault.message));

export const isWrongPassword = (fault: EtcdFault): boolean =>
  fault.code === CODE.invalid && /authentication failed/.test(fault.message);

export const isAuthOff = (fault: EtcdFault): boolean =>
  fault.code === CODE.precondition && /not enabled/.test(fault.message);

/** For whom no answer is an answer: anything but a fault is thrown on. */
export function unlessFault(error: unknown): undefined {
  if (!(error instanceof EtcdFault)) throw error;
}
