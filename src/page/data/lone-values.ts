/**
 * Values with nothing on either side: a line is drawn between two, so each of these is drawn as a point.
 */
export const loneValues = (values: readonly (number | null | undefined)[]): number[] =>
  values.flatMap((value, at) =>
    (value ?? null) !== null && (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null ? [at] : [],
  );
