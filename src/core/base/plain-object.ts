/**
 * What counts as a plain object: one that says all it has by its own fields.
 *
 * A promise, a map or an object of a class may be asked for its keys like any other and has none to tell, so whoever
 * took it for settings would lose them without a word. A plain object has no prototype, or one at the end of its chain:
 * so do what JSON is parsed to, module namespaces, and objects of another realm, as test runners make them.
 */
export function isPlainObject(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** How a getter or a proxy is shown that keeps its value to itself. */
export const THROWS = "something that throws when it is read";
