/**
 * First in, first out.
 *
 * An array and a head: taking from the front moves an index, and the array is cut when half of it
 * lies behind. (A Set would do, but finding its first member walks over all that were deleted.)
 */

export type Fifo<Item> = { items: Item[]; head: number };

export const fifo = <Item>(): Fifo<Item> => ({ items: [], head: 0 });
export const lengthOf = <Item>(queue: Fifo<Item>): number => queue.items.length - queue.head;
export const peek = <Item>(queue: Fifo<Item>): Item | undefined => queue.items[queue.head];

export function push<Item>(queue: Fifo<Item>, item: Item): void {
  queue.items.push(item);
}

export function shift<Item>(queue: Fifo<Item>): Item | undefined {
  const item = queue.items[queue.head];
  if (item === undefined) return undefined;
  // What has left is not kept alive until the array is cut.
  queue.items[queue.head++] = undefined as Item;
  if (queue.head > 1024 && queue.head * 2 > queue.items.length) {
    queue.items = queue.items.slice(queue.head);
    queue.head = 0;
  }
  return item;
}

export function* waiting<Item>(queue: Fifo<Item>): Generator<Item> {
  for (let index = queue.head; index < queue.items.length; index++) yield queue.items[index] as Item;
}
