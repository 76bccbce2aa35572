/**
 * The files of the web page, as its build left them (tools/page.ts): read when somebody first asks, and then kept.
 *
 * What is under `assets/` has the hash of its content in its name, so a browser may keep it for ever; the document
 * itself is asked for each time. Every other path below `/ui/` is a place inside the page, and gets the document too,
 * so that a link to anything can be shared.
 */
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { policyOf } from "./policy.ts";

/** The same from sources and from compiled files. */
const PLACE = join(import.meta.dirname, "../../../dist/page");
export const PAGE_ROOT = "/ui/";
const ASSETS = "assets/";
/** Smaller ones do not get smaller. */
const PACKED_MIN = 1024;

const TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".html": "text/html; charset=utf-8",
};
const POLICY = policyOf("script-src 'self'", "style-src 'self'", "img-src 'self' data:", "font-src 'self'");
const ALWAYS_ASK = { "cache-control": "no-cache" };
const KEEP = { "cache-control": "public, max-age=31536000, immutable" };

export type PageFile = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** The same, packed by gzip, where that is worth it. */
  readonly packed?: Buffer;
};

/** It asks again by itself, so that it turns into the page once that is built. */
const UNBUILT_TEXT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="5">
<title>Drover: the page is not built</title>
<h1>The page is not built yet</h1>
<p>The server runs, and everything but this page works. In the clone, in another terminal:</p>
<pre>npm run build:page</pre>
<p>npm start builds it too. This turns into the page when it is there. <a href="/docs/">The API</a></p>
</html>
`;
const UNBUILT: PageFile = {
  status: 503,
  headers: { "content-type": TYPES[".html"] as string, "content-security-policy": policyOf(), ...ALWAYS_ASK },
  body: Buffer.from(UNBUILT_TEXT),
};

type Files = ReadonlyMap<string, PageFile>;
/** The file at a path below /ui/; null where an asset is asked for that there is not. */
type FindFile = (path: string) => Promise<PageFile | null>;

export function pageFilesIn(place: string): FindFile {
  let files: Promise<Files> | null = null;
  return async (path) => {
    files ??= load(place);
    const found = await files;
    // A page that is built while the server runs is found by the next who asks.
    if (found.size === 0) files = null;
    if (path.startsWith(ASSETS)) return found.get(path) ?? null;
    return found.get("index.html") ?? UNBUILT;
  };
}

export const pageFile: FindFile = pageFilesIn(PLACE);

async function load(place: string): Promise<Files> {
  const names = await readdir(place, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const wanted = names.filter((name) => TYPES[extname(name)] !== undefined);
  return new Map(
    await Promise.all(wanted.map(async (name) => [name.replaceAll("\\", "/"), await read(place, name)] as const)),
  );
}

async function read(place: string, name: string): Promise<PageFile> {
  const body = await readFile(join(place, name));
  const kind = extname(name);
  const kept = kind === ".html" ? { ...ALWAYS_ASK, "content-security-policy": POLICY } : KEEP;
  const headers = { "content-type": TYPES[kind] as string, vary: "accept-encoding", ...kept };
  const packed = body.length < PACKED_MIN ? {} : { packed: await promisify(gzip)(body) };
  return { status: 200, headers, body, ...packed };
}
