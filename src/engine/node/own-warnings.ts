/**
 * What is wrong with this node itself, as far as it finds out: said once in its own log, and told to the other nodes
 * for as long as it is so.
 */

/** More would not fit into what a node tells of itself. */
const TEXT_MAX = 1000;

export type OwnWarnings = {
  /**
   * Null: it is right. A text that says the same again in other numbers has the same sign, and is not said in the log
   * again.
   */
  set(about: "address" | "doors" | "twin" | "clocks" | "log time", text: string | null, sign?: string): void;
  all(): readonly string[];
};

export function createOwnWarnings(onWarning: (message: string) => void): OwnWarnings {
  const found = new Map<string, { readonly text: string; readonly sign: string }>();
  return {
    set(about, text, sign = text ?? "") {
      const before = found.get(about)?.sign;
      if (text === null) found.delete(about);
      else found.set(about, { text: text.slice(0, TEXT_MAX), sign });
      if (text !== null && before !== sign) onWarning(text);
    },
    all: () => [...found.values()].map(({ text }) => text),
  };
}
