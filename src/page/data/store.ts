/**
 * A value that changes, and components that are drawn again when it does.
 */
import { useEffect, useState } from "preact/hooks";

export type Store<Value> = {
  now(): Value;
  set(value: Value): void;
  /** Answers how to stop listening. */
  listen(hear: (value: Value) => void): () => void;
};

export function createStore<Value>(first: Value): Store<Value> {
  let value = first;
  const listeners = new Set<(value: Value) => void>();
  return {
    now: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const hear of [...listeners]) hear(next);
    },
    listen(hear) {
      listeners.add(hear);
      return () => void listeners.delete(hear);
    },
  };
}

export function useStore<Value>(store: Store<Value>): Value {
  const [value, setValue] = useState(() => store.now());
  useEffect(() => {
    // It may have changed between the first drawing and now.
    setValue(() => store.now());
    return store.listen((next) => setValue(() => next));
  }, [store]);
  return value;
}
