/** For workers whose handlers leave no files. */
import type { ClientFiles } from "../../src/client/index.ts";

const none = (): never => {
  throw new Error("no files here");
};
export const NO_FILES: ClientFiles = { put: none, get: none, open: none };
