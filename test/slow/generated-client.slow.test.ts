/**
 * A client that others generate from /openapi.json compiles in strict mode, and works.
 *
 * The generator and its compiler are those of `test/openapi-client`, a workspace of its own, because the generator
 * needs a TypeScript that has an API.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { openServer } from "../kits/test-server.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const TOOLS = join(ROOT, "test/openapi-client/node_modules/.bin");
const compilerOptions = {
  ...{ target: "es2024", lib: ["es2024", "dom"], module: "nodenext", types: ["node"], noEmit: true },
  ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
  ...{ allowImportingTsExtensions: true, verbatimModuleSyntax: true, noUnusedLocals: true },
};

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  try {
    return (await promisify(execFile)(command, args, { cwd, env })).stdout;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(" ")}\n${stdout}\n${stderr}`, { cause: error });
  }
}

test("a client that openapi-typescript generates compiles in strict mode and speaks to a server", async (t) => {
  const home = mkdtempSync(join(tmpdir(), "drover-generated-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  await using at = await openServer();
  writeFileSync(join(home, "openapi.json"), (await at.call("GET", "/openapi.json")).text);
  writeFileSync(join(home, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(join(home, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts", "drover.d.ts"] }));
  cpSync(join(ROOT, "test/openapi-client/program.ts"), join(home, "program.ts"));
  symlinkSync(join(ROOT, "node_modules"), join(home, "node_modules"));
  await run(join(TOOLS, "openapi-typescript"), ["openapi.json", "-o", "drover.d.ts"], home);
  await run(join(TOOLS, "tsc"), ["-p", "tsconfig.json"], home);
  assert.match(await run(process.execPath, ["program.ts", at.url], home), /a stranger's client works/);
});
