/** What other layers may use of this room. */

export { createMemoryLog, createMemoryStore, type MemoryStore } from "./memory-log.ts";
