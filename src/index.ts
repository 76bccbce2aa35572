/**
 * `drover`: the embedded engine and its types; the client of the service joins it here.
 */
export * from "./engine/index.ts";
