/**
 * What is wrong with a plan, and at which path of its value. Whoever read the value from a text knows the lines.
 */

export type Path = readonly (string | number)[];
/** Something that is wrong, and whether with the name or the value that stands at its path. */
export type Found = { readonly message: string; readonly path: Path; readonly spot: Spot };
type Spot = "key" | "value";
export type Note = (message: string, path: Path, spot?: Spot) => void;
