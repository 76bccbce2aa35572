/**
 * What an answer says of a request that several calls or waits share: whether the server knows such requests, and
 * whether it was the whole that was refused.
 */

/** The server does not know a request that several calls or waits share, or something on the way does not. */
export const UNKNOWN: ReadonlySet<number> = new Set([404, 405, 415]);
const UNKNOWN_MS = 60_000;
/** Whether a server knows requests of a kind: for a while after it did not, what would go together goes one by one. */
export function createKnown(): { readonly isSo: () => boolean; readonly isNot: () => void } {
  let isKnown = true;
  const isAgain = (): void => {
    isKnown = true;
  };
  return {
    isSo: () => isKnown,
    isNot() {
      if (isKnown) setTimeout(isAgain, UNKNOWN_MS).unref();
      isKnown = false;
    },
  };
}
export const TOO_LARGE = 413;
/** What is refused for the size or form of the whole; a part of it may be right. */
export const FOR_THE_WHOLE: ReadonlySet<number> = new Set([400, TOO_LARGE, ...UNKNOWN]);
