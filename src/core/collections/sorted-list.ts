/**
 * A list that is always in order, however long it grows.
 *
 * Sorted chunks of at most 512 items: finding a position is two binary searches, adding or removing moves
 * at most one chunk's worth of memory, and the first item is at hand. What leaves is mostly the first: it leaves its
 * slot empty, and `head` says how many such slots the first chunk begins with. The order must be total and an
 * item's position must not change while it is in the list: take it out, change it, put it back. Adding in
 * order, the common case, costs next to nothing. A list rebuilt from the same items is the same list,
 * whatever order they were added in, which is what makes a restored state decide like the old one.
 */
import { invariant } from "../base/result.ts";

const CHUNK_MAX = 512;
/** So many empty slots are not worth closing up. */
const EMPTY_KEPT = 32;
/** A position is one number: the number of its chunk times this, plus the offset in the chunk. */
const CHUNK_SPAN = 1024;

type Compare<Item> = (left: Item, right: Item) => number;
export type SortedList<Item> = {
  /** A walk over one begins at `beginningOf` it. */
  readonly chunks: Item[][];
  compare(left: Item, right: Item): number;
  size: number;
  head: number;
};
export type ReadonlySortedList<Item> = Readonly<Omit<SortedList<Item>, "chunks">> & {
  readonly chunks: readonly (readonly Item[])[];
};

export const sortedList = <Item>(compare: Compare<Item>): SortedList<Item> => ({
  chunks: [],
  compare,
  size: 0,
  head: 0,
});

export const first = <Item>(list: ReadonlySortedList<Item>): Item | undefined => list.chunks[0]?.[list.head];

export function clear<Item>(list: SortedList<Item>): void {
  list.chunks.length = list.size = list.head = 0;
}

/** The offset in a chunk at which its items begin. */
export const beginningOf = <Item>({ head }: ReadonlySortedList<Item>, index: number): number =>
  index === 0 ? head : 0;

export function insert<Item>(list: SortedList<Item>, item: Item): void {
  list.size++;
  const { chunks, compare } = list;
  const last = chunks.length === 0 ? undefined : chunks[chunks.length - 1];
  if (last === undefined) {
    chunks.push([item]);
    return;
  }
  if (compare(last[last.length - 1] as Item, item) < 0) {
    if (last.length < CHUNK_MAX) last.push(item);
    else chunks.push([item]);
    return;
  }
  const index = chunkFor(list, item);
  const chunk = chunks[index] as Item[];
  const offset = offsetIn(list, index, item);
  if (index === 0 && list.head > 0) {
    // There is room in front: those before it move up.
    list.head--;
    for (let at = list.head; at < offset - 1; at++) chunk[at] = chunk[at + 1] as Item;
    chunk[offset - 1] = item;
    return;
  }
  chunk.splice(offset, 0, item);
  if (chunk.length > CHUNK_MAX) chunks.splice(index + 1, 0, chunk.splice(CHUNK_MAX / 2));
}

/** Takes an item out; it must be in the list. */
export function remove<Item>(list: SortedList<Item>, item: Item): void {
  // What is taken out is mostly the first: it is known without comparing.
  if (first(list) === item) return takeOut(list, 0, list.head);
  const index = chunkFor(list, item);
  const chunk = list.chunks[index];
  const offset = chunk === undefined ? -1 : offsetIn(list, index, item);
  invariant(chunk !== undefined && chunk[offset] === item, "an item taken out of a sorted list is in it");
  takeOut(list, index, offset);
}

function takeOut<Item>(list: SortedList<Item>, index: number, offset: number): void {
  const chunk = list.chunks[index] as Item[];
  list.size--;
  if (chunk.length - beginningOf(list, index) === 1) {
    list.chunks.splice(index, 1);
    if (index === 0) list.head = 0;
    return;
  }
  if (index === 0 && offset === list.head) chunk[list.head++] = undefined as Item;
  else chunk.splice(offset, 1);
  // What has left is not kept alive, nor are many empty slots by a list that never runs empty.
  if (index === 0 && list.head >= EMPTY_KEPT && list.head * 2 > chunk.length) {
    chunk.splice(0, list.head);
    list.head = 0;
  }
}

/** Where an item is; it must be in the list. Asked before its rank changes, and given to `reseat` after. */
export function positionOf<Item>(list: ReadonlySortedList<Item>, item: Item): number {
  if (first(list) === item) return list.head;
  const index = chunkFor(list, item);
  const chunk = list.chunks[index];
  const offset = chunk === undefined ? -1 : offsetIn(list, index, item);
  invariant(chunk !== undefined && chunk[offset] === item, "an item looked for in a sorted list is in it");
  return index * CHUNK_SPAN + offset;
}

/** Puts an item whose rank has changed where it belongs; `from` is where it was. Within a chunk it only shifts. */
export function reseat<Item>(list: SortedList<Item>, item: Item, from: number): void {
  const { chunks, compare } = list;
  const index = Math.floor(from / CHUNK_SPAN);
  const chunk = chunks[index] as Item[];
  // Asking a list for its item -1 takes longer than all the rest.
  const before = index === 0 ? undefined : chunks[index - 1];
  const behind = chunks[index + 1];
  // The chunk behind is never the first, so it begins at its offset 0.
  if (
    (before !== undefined && compare(before[before.length - 1] as Item, item) > 0) ||
    (behind !== undefined && compare(item, behind[0] as Item) > 0)
  ) {
    takeOut(list, index, from % CHUNK_SPAN);
    insert(list, item);
    return;
  }
  let offset = from % CHUNK_SPAN;
  const target = offsetAmongOthers(list, index, item, offset);
  for (; offset > target; offset--) chunk[offset] = chunk[offset - 1] as Item;
  for (; offset < target; offset++) chunk[offset] = chunk[offset + 1] as Item;
  chunk[offset] = item;
}

/** Where in its chunk, all of whose items are in order but this one, the item at `offset` belongs. */
function offsetAmongOthers<Item>(list: SortedList<Item>, index: number, item: Item, offset: number): number {
  const { compare } = list;
  const chunk = list.chunks[index] as Item[];
  const beginning = beginningOf(list, index);
  const isAfterPrevious = offset === beginning || compare(chunk[offset - 1] as Item, item) < 0;
  let low = isAfterPrevious ? offset : beginning;
  let high = isAfterPrevious ? chunk.length - 1 : offset - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = chunk[isAfterPrevious ? middle + 1 : middle] as Item;
    if (compare(other, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first items, at most so many. */
export function front<Item>(list: ReadonlySortedList<Item>, count: number): Item[] {
  const found: Item[] = [];
  for (const [index, chunk] of list.chunks.entries()) {
    if (found.length >= count) break;
    const beginning = beginningOf(list, index);
    found.push(...chunk.slice(beginning, beginning + count - found.length));
  }
  return found;
}

/** How many items stand before this one, which must be in the list. */
export function countBefore<Item>(list: ReadonlySortedList<Item>, item: Item): number {
  const last = list.chunks[list.chunks.length - 1];
  if (last !== undefined && last[last.length - 1] === item) return list.size - 1;
  const position = positionOf(list, item);
  let count = (position % CHUNK_SPAN) - list.head;
  for (let index = Math.floor(position / CHUNK_SPAN) - 1; index >= 0; index--)
    count += (list.chunks[index] as readonly Item[]).length;
  return count;
}

/** How many items stand at the front for which `isBefore` holds; it must hold for a prefix of the list. */
export function countWhile<Item>(list: ReadonlySortedList<Item>, isBefore: (item: Item) => boolean): number {
  let count = 0 - list.head;
  for (const [index, chunk] of list.chunks.entries()) {
    if (isBefore(chunk[chunk.length - 1] as Item)) {
      count += chunk.length;
      continue;
    }
    return count + lowerBound(chunk, null, isBefore, beginningOf(list, index));
  }
  return count;
}

/** The first index, from `low` on, whose item does not stand before the key; those that do come first. */
export function lowerBound<Item, Key>(
  sorted: readonly Item[],
  key: Key,
  isBefore: (item: Item, key: Key) => boolean,
  low: number = 0,
): number {
  let from = low;
  let to = sorted.length;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (isBefore(sorted[middle] as Item, key)) from = middle + 1;
    else to = middle;
  }
  return from;
}

export function* items<Item>(list: ReadonlySortedList<Item>): Generator<Item> {
  for (const [index, chunk] of list.chunks.entries())
    for (let offset = beginningOf(list, index); offset < chunk.length; offset++) yield chunk[offset] as Item;
}

/** The chunk an item is in or belongs in: the first whose last item is not before it. */
function chunkFor<Item>(list: ReadonlySortedList<Item>, item: Item): number {
  const { chunks, compare } = list;
  let low = 0;
  let high = chunks.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const chunk = chunks[middle] as Item[];
    if (compare(chunk[chunk.length - 1] as Item, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first offset in a chunk whose item is not before this one. */
function offsetIn<Item>(list: ReadonlySortedList<Item>, index: number, item: Item): number {
  const { compare } = list;
  const chunk = list.chunks[index] as Item[];
  const beginning = beginningOf(list, index);
  if (compare(chunk[beginning] as Item, item) >= 0) return beginning;
  let low = beginning + 1;
  let high = chunk.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(chunk[middle] as Item, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
