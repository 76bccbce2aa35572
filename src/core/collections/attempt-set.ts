/**
 * The attempts a worker holds, one for each of their tasks.
 *
 * A worker with thousands of slots is given attempts and rid of them all the time, so each knows its own index in the
 * list: to take one out, the last takes its index, and nothing is looked up. The order of the list therefore hangs on
 * what has gone, which no decision may; so a walk over it goes in the order of their tasks.
 */
type Held = { index: number; readonly task: { readonly seq: number } };

export type ReadonlyAttemptSet<Attempt> = {
  readonly size: number;
  has(attempt: Attempt): boolean;
  some(test: (attempt: Attempt) => boolean): boolean;
  inOrder(): Attempt[];
  [Symbol.iterator](): Iterator<Attempt>;
};

export class AttemptSet<Attempt extends Held> {
  private readonly list: Attempt[] = [];

  get size(): number {
    return this.list.length;
  }

  add(attempt: Attempt): void {
    attempt.index = this.list.length;
    this.list.push(attempt);
  }

  delete(attempt: Attempt): void {
    if (!this.has(attempt)) return;
    const last = this.list.pop() as Attempt;
    if (last === attempt) return;
    this.list[attempt.index] = last;
    last.index = attempt.index;
  }

  has(attempt: Attempt): boolean {
    return this.list[attempt.index] === attempt;
  }

  /** Whether this is so of any of them. */
  some(test: (attempt: Attempt) => boolean): boolean {
    return this.list.some(test);
  }

  /** In the order in which their tasks were submitted. */
  inOrder(): Attempt[] {
    return [...this.list].sort((left, right) => left.task.seq - right.task.seq);
  }

  [Symbol.iterator](): Iterator<Attempt> {
    return this.inOrder()[Symbol.iterator]();
  }
}
