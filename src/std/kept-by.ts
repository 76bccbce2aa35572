/**
 * What is made of other things, kept for as long as these are the same ones: many may ask, and it is made once.
 */
export function keptBy<const Of extends readonly unknown[], Value>(of: () => Of, make: (of: Of) => Value): () => Value {
  let kept: { readonly of: Of; readonly value: Value } | null = null;
  return () => {
    const now = of();
    if (kept === null || kept.of.some((one, index) => one !== now[index])) kept = { of: now, value: make(now) };
    return kept.value;
  };
}
