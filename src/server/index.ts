/**
 * The server, for a program that joins it with an engine.
 */
export { StartRefusal } from "./access/tokens.ts";
export type { LogsOf, LogTail } from "./handlers/handler.ts";
export { hostRefusal, type Server, type ServerLimits, type ServerOptions, startServer } from "./start-server.ts";
