/**
 * `drover`: the client of the service with the types of the wire, and the engine to embed.
 *
 * Whoever only calls a server needs `createClient`; whoever wants Drover inside a program, `openDrover`, which is also
 * `drover/engine`.
 */
export * from "./client/index.ts";
export * from "./engine/index.ts";
