/**
 * Where the server is in its life: up, shutting down, or with an engine that has failed.
 *
 * New work is admitted while it is up. While it shuts down, what has begun may end: results, releases and reads go
 * through, and only what would begin something is refused. An engine that has failed refuses by itself.
 */
import type { DroverError } from "../../engine/base/index.ts";
import { ServerRefusal } from "../../http/index.ts";
import type { CallName } from "../../protocol/index.ts";

/** What begins something new. */
const BEGINS: ReadonlySet<CallName> = new Set(["submit", "submitBatch", "retry", "putSchedule", "joinWorker"]);

export type ServerPhase = {
  isClosing(): boolean;
  failure(): DroverError | null;
  /** From now on nothing is begun; `untilMs` is when the server is gone. */
  close(untilMs: number): void;
  fail(error: DroverError): void;
  /** Throws if this call would begin something and nothing is to be begun. */
  check(name: CallName): void;
  /** A request is being answered; and it has been. */
  begin(): void;
  end(): void;
  /** How many requests are being answered. */
  underWay(): number;
  /** A number that is another once any request was begun or answered. */
  turnover(): number;
  /** Why it takes no work, or null. */
  refusal(): ServerRefusal | DroverError | null;
};

export function createPhase(now: () => number): ServerPhase {
  let closedAt: number | null = null;
  let failed: DroverError | null = null;
  let underWay = 0;
  let turnover = 0;

  function refusal(): ServerRefusal | DroverError | null {
    if (failed !== null) return failed;
    if (closedAt === null) return null;
    const retryAfterMs = Math.max(0, closedAt - now());
    return new ServerRefusal("closed", "the server is shutting down; try again later", undefined, retryAfterMs);
  }

  return {
    isClosing: () => closedAt !== null,
    failure: () => failed,
    close(untilMs) {
      closedAt ??= untilMs;
    },
    fail(error) {
      failed ??= error;
    },
    check(name) {
      if (closedAt === null || !BEGINS.has(name)) return;
      const refused = refusal();
      if (refused !== null) throw refused;
    },
    begin() {
      underWay++;
      turnover++;
    },
    end() {
      underWay--;
      turnover++;
    },
    underWay: () => underWay,
    turnover: () => turnover,
    refusal,
  };
}
