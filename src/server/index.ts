/**
 * The server, for a program that joins it with an engine.
 */
export { StartRefusal } from "./access/tokens.ts";
export { listenWhileWaiting, type Waiting } from "./life/waiting.ts";
export { hostRefusal, type Server, startServer } from "./start-server.ts";
