/**
 * Builds the web page (src/page) into dist/page, where the server finds it in a clone and in the package.
 *
 *     node tools/page.ts             builds it if it is missing or older than its sources
 *     node tools/page.ts --always    builds it anew
 *
 * What it was built from is kept beside it as a hash, so a clone that was moved, copied or checked out anew knows
 * whether its page is the right one. It is built in a directory of its own and moved to its place: two builds at a
 * time, and a server that reads meanwhile, do not meet.
 */
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const SOURCES = join(ROOT, "src/page");
const PLACE = join(ROOT, "dist/page");
const MADE_OF = "made-of.txt";

/** What the page is built from: its own files, what it takes of the protocol, and the versions of what it bundles. */
export function sourcesHash(): string {
  const paths = globSync(["src/page/**/*", "src/protocol/wire/*.ts", "tools/page.ts", "package.json"], {
    cwd: ROOT,
    withFileTypes: true,
  })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const hash = createHash("sha256");
  for (const path of paths) hash.update(path.slice(ROOT.length)).update("\0").update(readFileSync(path)).update("\0");
  return hash.digest("hex");
}

export function isPageFresh(): boolean {
  const note = join(PLACE, MADE_OF);
  return existsSync(note) && readFileSync(note, "utf8") === sourcesHash();
}

export async function buildPage(): Promise<void> {
  const { build } = await import("vite");
  const made = join(ROOT, `dist/page-${process.pid}`);
  const hash = sourcesHash();
  await build({
    root: SOURCES,
    base: "/ui/",
    configFile: false,
    logLevel: "warn",
    publicDir: false,
    cacheDir: join(ROOT, "node_modules/.cache/vite"),
    // Nothing is put into the document itself: its policy would not let it run.
    build: {
      outDir: made,
      emptyOutDir: true,
      target: "es2023",
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
  });
  writeFileSync(join(made, MADE_OF), hash);
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  rmSync(PLACE, { recursive: true, force: true });
  try {
    renameSync(made, PLACE);
  } catch (error) {
    // Another build was faster; it was of the same sources, or the next look will tell.
    if (!existsSync(join(PLACE, MADE_OF))) throw error;
    rmSync(made, { recursive: true, force: true });
  }
}

/** A production install has no bundler, and whoever installs a package needs none. */
function hasBundler(): boolean {
  try {
    import.meta.resolve("vite");
    return existsSync(join(ROOT, "node_modules/vite"));
  } catch {
    return false;
  }
}

if (import.meta.main) {
  if (!hasBundler()) console.error("the web page is not built: vite is not installed (npm ci brings it)");
  else if (process.argv.includes("--always") || !isPageFresh()) await buildPage();
}
