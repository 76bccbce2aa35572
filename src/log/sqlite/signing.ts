/**
 * When the head is signed: with the first batch of a life, when enough is unsigned, when somebody asks, and at the end.
 *
 * A signature is written in the transaction of the batch it is for, so it costs no fsync of its own, and a log never
 * has a batch behind its close that nobody has signed. It takes some 50 µs, once in thousands of events, in the thread
 * of the log.
 */

import { DEFAULT_SIGN_RULE, type SignedHead, signHead } from "../integrity/signed-head.ts";
import type { Signer } from "../integrity/signing-key.ts";
import type { SignRule } from "../log.ts";
import { type Head, LogFailure } from "../log.ts";
import type { Database } from "./database.ts";

export type Signing = {
  /** In the transaction of a batch. With a rule, the head is signed now and under that rule from now on. */
  onAppended(head: Head, rule: SignRule | null): void;
  /** In the transaction that raised the epoch. */
  onRaised(head: Head): void;
  /** The transaction was undone: what was signed last is to be looked up again. */
  forget(): void;
  sign(rule: SignRule): null;
  /** Signs the head as the end of this life. */
  close(): void;
};

export function createSigning(database: Database, signer: Signer): Signing {
  let rule = database.look("read the signed head", () => database.signedHead())?.rule ?? DEFAULT_SIGN_RULE;
  /** What this life signed last. */
  let last: SignedHead | null = null;
  /** One that only looked leaves all as it found it. */
  let hasWritten = false;

  function put(head: Head, isClosed: boolean): SignedHead {
    hasWritten = true;
    const signed = signHead(signer, { ...head, rule, isClosed });
    database.putSignedHead(signed);
    return signed;
  }
  function signNow(isClosed: boolean): SignedHead {
    return database.write("sign the head", () => put(database.source().head, isClosed));
  }
  return {
    onAppended: (head, given) => {
      rule = given ?? rule;
      if (given !== null || last === null || head.seq - last.seq >= rule.events) last = put(head, false);
    },
    onRaised: (head) => {
      put(head, false);
    },
    forget: () => {
      last = null;
    },
    sign: (given) => {
      rule = given;
      last = signNow(false);
      return null;
    },
    close: () => {
      if (!hasWritten) return;
      try {
        signNow(true);
      } catch (error) {
        // A disk that is full, or gone, has been told of. The log is as after a crash: its last events are unsigned.
        if (!(error instanceof LogFailure)) throw error;
      }
    },
  };
}
