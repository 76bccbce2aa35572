/**
 * The ids that callers chose, and a number for each.
 *
 * Such an id is looked for in a table of hundreds of thousands, which lies in no cache: one look-up takes as long as
 * all else that is done to apply a small event. So tables that never have the same id at once share one of these, and
 * who is asked for an id twice in a row remembers the answer.
 */
export class Names {
  private readonly numbers = new Map<string, number>();
  private lastId: string | null = null;
  private last: number | undefined = undefined;

  get(id: string): number | undefined {
    if (id !== this.lastId) {
      this.last = this.numbers.get(id);
      this.lastId = id;
    }
    return this.last;
  }

  set(id: string, number: number): void {
    this.numbers.set(id, number);
    this.lastId = id;
    this.last = number;
  }

  delete(id: string): void {
    this.numbers.delete(id);
    this.lastId = null;
    this.last = undefined;
  }
}
