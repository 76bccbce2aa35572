/**
 * A list that is always in order, however long it grows.
 *
 * Sorted chunks of at most 128 items: finding a place is two binary searches, adding or removing moves
 * at most one chunk's worth of memory, and the first item is at hand. The order must be total and an
 * item's place must not change while it is in the list: take it out, change it, put it back. Adding in
 * order, the common case, costs next to nothing. A list rebuilt from the same items is the same list,
 * whatever order they were added in, which is what makes a restored state decide like the old one.
 */
import { invariant } from "./result.ts";

const CHUNK_MAX = 128;
/** A place is one number: the number of its chunk times this, plus its place in the chunk. */
const CHUNK_SPAN = 1024;

export type Compare<Item> = (left: Item, right: Item) => number;
export type SortedList<Item> = { readonly chunks: Item[][]; readonly compare: Compare<Item>; size: number };

export const sortedList = <Item>(compare: Compare<Item>): SortedList<Item> => ({ chunks: [], compare, size: 0 });

export const first = <Item>(list: SortedList<Item>): Item | undefined => list.chunks[0]?.[0];

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
  chunk.splice(placeIn(chunk, item, compare), 0, item);
  if (chunk.length > CHUNK_MAX) chunks.splice(index + 1, 0, chunk.splice(CHUNK_MAX / 2));
}

/** Takes an item out; it must be in the list. */
export function remove<Item>(list: SortedList<Item>, item: Item): void {
  // What is taken out is mostly the first: it is known without comparing.
  if (list.chunks[0]?.[0] === item) return takeOut(list, 0, 0);
  const { chunks, compare } = list;
  const index = chunkFor(list, item);
  const chunk = chunks[index];
  const place = chunk === undefined ? -1 : placeIn(chunk, item, compare);
  invariant(chunk !== undefined && chunk[place] === item, "an item taken out of a sorted list is in it");
  takeOut(list, index, place);
}

function takeOut<Item>(list: SortedList<Item>, index: number, place: number): void {
  const chunk = list.chunks[index] as Item[];
  if (chunk.length === 1) list.chunks.splice(index, 1);
  else if (place === 0) chunk.shift();
  else chunk.splice(place, 1);
  list.size--;
}

/** Where an item is; it must be in the list. Asked before its rank changes, and given to `reseat` after. */
export function placeOf<Item>(list: SortedList<Item>, item: Item): number {
  if (list.chunks[0]?.[0] === item) return 0;
  const index = chunkFor(list, item);
  const chunk = list.chunks[index];
  const place = chunk === undefined ? -1 : placeIn(chunk, item, list.compare);
  invariant(chunk !== undefined && chunk[place] === item, "an item looked for in a sorted list is in it");
  return index * CHUNK_SPAN + place;
}

/** Puts an item whose rank has changed where it belongs; `from` is where it was. Within a chunk it only shifts. */
export function reseat<Item>(list: SortedList<Item>, item: Item, from: number): void {
  const { chunks, compare } = list;
  const index = Math.floor(from / CHUNK_SPAN);
  const chunk = chunks[index] as Item[];
  // Asking a list for its place -1 takes longer than all the rest.
  const before = index === 0 ? undefined : chunks[index - 1];
  const behind = chunks[index + 1];
  if (
    (before !== undefined && compare(before[before.length - 1] as Item, item) > 0) ||
    (behind !== undefined && compare(item, behind[0] as Item) > 0)
  ) {
    takeOut(list, index, from % CHUNK_SPAN);
    insert(list, item);
    return;
  }
  let place = from % CHUNK_SPAN;
  const target = placeAmongOthers(chunk, item, place, compare);
  for (; place > target; place--) chunk[place] = chunk[place - 1] as Item;
  for (; place < target; place++) chunk[place] = chunk[place + 1] as Item;
  chunk[place] = item;
}

/** How many items of its chunk, all of them in order but this one, stand before the item at `place`. */
function placeAmongOthers<Item>(chunk: readonly Item[], item: Item, place: number, compare: Compare<Item>): number {
  const isAfterPrevious = place === 0 || compare(chunk[place - 1] as Item, item) < 0;
  let low = isAfterPrevious ? place : 0;
  let high = isAfterPrevious ? chunk.length - 1 : place - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = chunk[isAfterPrevious ? middle + 1 : middle] as Item;
    if (compare(other, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first items, at most so many. */
export function front<Item>(list: SortedList<Item>, count: number): Item[] {
  const found: Item[] = [];
  for (const chunk of list.chunks) {
    if (found.length >= count) break;
    found.push(...chunk.slice(0, count - found.length));
  }
  return found;
}

/** How many items stand before this one, which must be in the list. */
export function countBefore<Item>(list: SortedList<Item>, item: Item): number {
  const last = list.chunks[list.chunks.length - 1];
  if (last !== undefined && last[last.length - 1] === item) return list.size - 1;
  const place = placeOf(list, item);
  let count = place % CHUNK_SPAN;
  for (let index = Math.floor(place / CHUNK_SPAN) - 1; index >= 0; index--)
    count += (list.chunks[index] as Item[]).length;
  return count;
}

/** How many items stand at the front for which `isBefore` holds; it must hold for a prefix of the list. */
export function countWhile<Item>(list: SortedList<Item>, isBefore: (item: Item) => boolean): number {
  let count = 0;
  for (const chunk of list.chunks) {
    if (isBefore(chunk[chunk.length - 1] as Item)) {
      count += chunk.length;
      continue;
    }
    let low = 0;
    let high = chunk.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(chunk[middle] as Item)) low = middle + 1;
      else high = middle;
    }
    return count + low;
  }
  return count;
}

export function* items<Item>(list: SortedList<Item>): Generator<Item> {
  for (const chunk of list.chunks) yield* chunk;
}

/** The chunk an item is in or belongs in: the first whose last item is not before it. */
function chunkFor<Item>(list: SortedList<Item>, item: Item): number {
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

/** The first place in a chunk whose item is not before this one. */
function placeIn<Item>(chunk: readonly Item[], item: Item, compare: Compare<Item>): number {
  if (compare(chunk[0] as Item, item) >= 0) return 0;
  let low = 1;
  let high = chunk.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(chunk[middle] as Item, item) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
