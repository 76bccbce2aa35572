/**
 * The attempts a worker holds, one for each of their tasks.
 *
 * A Set of them would do for a worker with a few slots. One with thousands is given attempts and rid of them all the
 * time, which fills a Set with what it has forgotten (number-table.ts says what comes of that).
 */
import { NumberTable } from "./number-table.ts";
import type { Attempt } from "./state.ts";

export class AttemptSet {
  private readonly bySeq = new NumberTable<Attempt>();

  get size(): number {
    return this.bySeq.size;
  }

  add(attempt: Attempt): void {
    this.bySeq.set(attempt.task.seq, attempt);
  }

  delete(attempt: Attempt): void {
    this.bySeq.delete(attempt.task.seq);
  }

  has(attempt: Attempt): boolean {
    return this.bySeq.get(attempt.task.seq) === attempt;
  }

  /** In the order in which their tasks were submitted. */
  inOrder(): Attempt[] {
    return [...this].sort((left, right) => left.task.seq - right.task.seq);
  }

  [Symbol.iterator](): Iterator<Attempt> {
    return this.bySeq.values();
  }
}
