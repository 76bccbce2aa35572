/**
 * Where the server is that owns a data directory: its address, in a file beside its log.
 *
 * A server writes it once it listens, and takes it away when it ends. One that was killed leaves it behind, so a reader
 * asks at the address whether that start of a server is there still: its id is in the file and in GET /readyz, and no
 * other has the same. Only a file that belongs to the person who reads it, that nobody else may read, and that names
 * this machine is believed: what is sent there may hold a token, and a checkout of a stranger must not say where that
 * goes, also where all that is checked out is readable by its owner alone.
 */
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Fetch } from "../../client/index.ts";
import { isLoopback } from "../../std/loopback.ts";

export type ServerFile = {
  readonly url: string;
  readonly pid: number;
  /** This start of a server. */
  readonly id: string;
  /** What opens it, where it is for the owner of the directory alone. */
  readonly token?: string;
};

const NAME = "server.json";
/** What only its owner may read and write. */
const OWN_FILE_MODE = 0o600;
const BYTES_MAX = 4096;
const OTHERS = 0o077;
const LOOK_MS = 2000;

/** The old one goes in one step: a reader finds one or the other, whole. */
export function writeServerFile(directory: string, server: Omit<ServerFile, "pid">): void {
  const path = join(directory, NAME);
  const next = `${path}.${process.pid}`;
  try {
    writeFileSync(next, `${JSON.stringify({ ...server, pid: process.pid })}\n`, { mode: OWN_FILE_MODE });
    renameSync(next, path);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
}

/** Only one's own: another server may have begun meanwhile. */
export function removeServerFile(directory: string, id: string): void {
  if (readServerFile(directory)?.id === id) rmSync(join(directory, NAME), { force: true });
}

/** What the file says, if there is one to be believed. Whether a server is there is another question. */
export function readServerFile(directory: string): ServerFile | null {
  const path = join(directory, NAME);
  try {
    const facts = statSync(path, { throwIfNoEntry: false });
    const isOwn = facts !== undefined && (process.getuid === undefined || facts.uid === process.getuid());
    if (!isOwn || !facts.isFile() || (facts.mode & OTHERS) !== 0 || facts.size > BYTES_MAX) return null;
    const said = JSON.parse(readFileSync(path, "utf8")) as Partial<Record<keyof ServerFile, unknown>>;
    const { url, pid, id, token } = said;
    const isWhole = typeof url === "string" && typeof pid === "number" && typeof id === "string";
    if (!isWhole || !isHere(url)) return null;
    return { url, pid, id, ...(typeof token === "string" ? { token } : {}) };
  } catch {
    return null;
  }
}

/** Whether an address is one of this machine: a server that owns a directory of it is nowhere else. */
function isHere(url: string): boolean {
  const { protocol = "", hostname = "" } = URL.parse(url) ?? {};
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  if (!/^https?:$/.test(protocol)) return false;
  if (isLoopback(host)) return true;
  const own = Object.values(process.getBuiltinModule("node:os").networkInterfaces()).flat();
  return own.some((one) => one?.address === host);
}

/** The data directory of a server that is started here without another word. */
export const OWN_DATA = ".drover";

/** The server that owns ./.drover, as far as can be told without asking it: its process is there. */
export const ownServer = (cwd: string): ServerFile | null => likelyServer(join(cwd, OWN_DATA));

export function likelyServer(directory: string): ServerFile | null {
  const found = readServerFile(directory);
  return found !== null && isAlive(found.pid) ? found : null;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The server that owns this directory, if it runs now. */
export async function liveServer(directory: string, fetch: Fetch): Promise<ServerFile | null> {
  const found = readServerFile(directory);
  return found !== null && (await isThere(found, fetch)) ? found : null;
}

/** Whether that start of a server answers at its address. */
export const isThere = async ({ url, id }: ServerFile, fetch: Fetch): Promise<boolean> =>
  (await idAt(url, fetch)) === id;

/** Sends nothing, above all no token, before that start of a server has answered at its address. */
export function fetchFrom({ url, id }: ServerFile, fetch: Fetch): Fetch {
  let found: Promise<unknown> | null = null;
  return async (to, request) => {
    found ??= idAt(url, fetch);
    if ((await found) === id) return await fetch(to, request);
    found = null;
    throw new Error(`the server that wrote ${join(OWN_DATA, NAME)} is not at ${url} now`);
  };
}

/** Without a token: it is not known yet who answers. */
async function idAt(url: string, fetch: Fetch): Promise<unknown> {
  try {
    const answer = await fetch(`${url}/readyz`, {
      headers: {},
      signal: AbortSignal.timeout(LOOK_MS),
      redirect: "manual",
    });
    const { serverId } = JSON.parse(await answer.text()) as { readonly serverId?: unknown };
    return serverId;
  } catch {
    return null;
  }
}
