/**
 * What the page says about what somebody has just done: a line that goes by itself, unless it is bad news.
 */
import { createStore, type Store } from "./store.ts";
import { steady } from "./words.ts";

export type Said = { readonly id: number; readonly text: string; readonly isBad: boolean };
export const said: Store<readonly Said[]> = createStore<readonly Said[]>([]);

const SHOWN_MS = 5000;
const SHOWN_MAX = 4;
let last = 0;

export function unsay(id: number): void {
  said.set(said.now().filter((one) => one.id !== id));
}

export function say(text: string, isBad = false): void {
  last++;
  const one = { id: last, text: steady(text), isBad };
  said.set([...said.now(), one].slice(-SHOWN_MAX));
  if (!isBad) window.setTimeout(() => unsay(one.id), SHOWN_MS);
}

/** Does something and says what came of it; answers whether it went well. */
export async function doing(work: () => Promise<unknown>, done: string): Promise<boolean> {
  try {
    await work();
    say(done);
    return true;
  } catch (error) {
    say((error as Error).message, true);
    return false;
  }
}
