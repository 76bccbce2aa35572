/**
 * The logs of an exec worker as the server may ask for them.
 *
 * The place is a name that lies in the data directory beside the logs. So a worker that starts anew there, under
 * whatever name, is known to have the logs of the one before. Where it cannot be written the place has a name for this
 * life only, and the logs are shown as long as that lasts.
 */
import { randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OWN_FILE_MODE } from "../../std/index.ts";
import type { WorkerLogs } from "../pull/logs.ts";
import type { ExecHandler } from "./contract.ts";

const NAME = /^[\w-]{8,100}$/;

/** `data` is the data directory of the handler. */
export const execLogs = (data: string, tail: ExecHandler["tail"]): WorkerLogs => ({
  place: placeIn(data),
  async read({ taskId, attempt, ...size }) {
    const found = await tail(taskId, attempt, size);
    return found === null ? null : { text: found.text, truncated: found.isCut };
  },
});

function placeIn(data: string): string {
  const path = join(data, "place");
  const own = randomUUID();
  try {
    return nameIn(path) ?? create(path, own);
  } catch {
    return own;
  }
}

/** Whole or not at all, and the first one counts: another worker may begin here at the same moment. */
function create(path: string, own: string): string {
  const draft = `${path}.${own}`;
  mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
  writeFileSync(draft, `${own}\n`, { mode: OWN_FILE_MODE });
  try {
    linkSync(draft, path);
    return own;
  } catch {
    return nameIn(path) ?? own;
  } finally {
    rmSync(draft, { force: true });
  }
}

function nameIn(path: string): string | null {
  try {
    const name = readFileSync(path, "utf8").trim();
    return NAME.test(name) ? name : null;
  } catch {
    return null;
  }
}
