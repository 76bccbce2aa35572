/**
 * A list of which only the rows in sight are in the document, however many there are.
 */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useReducer, useRef } from "preact/hooks";

const OVERSCAN = 12;

export type Seen = { readonly first: number; readonly last: number };

export function Rows({
  label,
  length,
  rowHeight,
  onSeen,
  children,
}: {
  label: string;
  length: number;
  rowHeight: number;
  /** Which rows are in sight, when that changes. */
  onSeen: (seen: Seen) => void;
  children: (index: number) => ComponentChildren;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [, again] = useReducer((turn: number) => turn + 1, 0);
  const list = useRef<Virtualizer<HTMLDivElement, HTMLDivElement> | null>(null);
  const options = {
    count: length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => again(0),
  };
  list.current ??= new Virtualizer<HTMLDivElement, HTMLDivElement>(options);
  list.current.setOptions(options);
  useEffect(() => list.current?._didMount(), []);
  useEffect(() => list.current?._willUpdate());
  const rows = list.current.getVirtualItems();
  const [first, last] = [rows[0]?.index ?? 0, rows.at(-1)?.index ?? 0];
  useEffect(() => onSeen({ first, last }), [first, last, length]);
  return (
    <div class="rows" ref={box} tabIndex={0} role="table" aria-label={label} aria-rowcount={length}>
      <div class="rows-all" role="rowgroup" style={{ height: `${list.current.getTotalSize()}px` }}>
        {rows.map(({ index, start }) => (
          <div
            key={index}
            class="row"
            role="row"
            aria-rowindex={index + 1}
            style={{ transform: `translateY(${start}px)` }}
          >
            {children(index)}
          </div>
        ))}
      </div>
    </div>
  );
}
