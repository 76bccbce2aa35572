/**
 * First in, first out.
 *
 * A ring: what comes in goes behind the last, and what leaves moves the head on, so nothing is copied while about as
 * many leave as come in. The ring doubles when it is full and halves when a quarter of it would do. (A Set would do,
 * but finding its first member walks over all that were deleted.)
 */

/** `items` has room for a power of two; `length` of them are there, from `head` on and round the end. */
export type Fifo<Item> = { items: (Item | undefined)[]; head: number; length: number };

type ReadonlyFifo<Item> = Readonly<Omit<Fifo<Item>, "items">> & {
  readonly items: readonly (Item | undefined)[];
};

const ROOM_LEAST = 16;
/** Below this a ring is not worth shrinking. */
const ROOM_KEPT = 1024;

export const fifo = <Item>(): Fifo<Item> => ({ items: emptyRing(ROOM_LEAST), head: 0, length: 0 });
export const peek = <Item>(queue: ReadonlyFifo<Item>): Item | undefined => queue.items[queue.head];
/** The item that has so many before it; there must be one. */
export const itemAt = <Item>({ items, head }: ReadonlyFifo<Item>, index: number): Item =>
  items[(head + index) & (items.length - 1)] as Item;

export function push<Item>(queue: Fifo<Item>, item: Item): void {
  if (queue.length === queue.items.length) resize(queue, queue.length * 2);
  queue.items[(queue.head + queue.length) & (queue.items.length - 1)] = item;
  queue.length++;
}

export function shift<Item>(queue: Fifo<Item>): Item | undefined {
  const { items, head } = queue;
  const item = items[head];
  if (item === undefined) return undefined;
  // What has left is not kept alive.
  items[head] = undefined;
  queue.head = (head + 1) & (items.length - 1);
  queue.length--;
  if (items.length > ROOM_KEPT && queue.length * 4 < items.length) resize(queue, items.length / 2);
  return item;
}

export function* waiting<Item>(queue: ReadonlyFifo<Item>): Generator<Item> {
  for (let index = 0; index < queue.length; index++) yield itemAt(queue, index);
}

/** All that wait, first in first: several times as fast as to walk over them. */
export function toArray<Item>({ items, head, length }: ReadonlyFifo<Item>): Item[] {
  const end = head + length;
  const atFront = Math.max(0, end - items.length);
  return [...items.slice(head, Math.min(end, items.length)), ...items.slice(0, atFront)] as Item[];
}

/** Keeps only those for which this holds. */
export function retain<Item>(queue: Fifo<Item>, isKept: (item: Item) => boolean): void {
  const kept = [...waiting(queue)].filter(isKept);
  Object.assign(queue, fifo<Item>());
  for (const item of kept) push(queue, item);
}

const emptyRing = (room: number): undefined[] => new Array(room).fill(undefined);

function resize<Item>(queue: Fifo<Item>, room: number): void {
  const items: (Item | undefined)[] = emptyRing(room);
  for (let index = 0; index < queue.length; index++) items[index] = itemAt(queue, index);
  queue.items = items;
  queue.head = 0;
}
