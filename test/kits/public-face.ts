/**
 * What a person sees of the package in an editor: every exported name and every field of an exported type, as the
 * declarations say it, and which of them have no sentence.
 *
 * A field counts where it shows: those that come by an intersection or a `Pick` too, and those of objects inside an
 * object. A type that is only referred to has its own place. TypeScript 7 has no interface for programs yet, so the
 * older one that the workspace for generated clients brings along reads the declarations.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type * as TypeScript from "../openapi-client/node_modules/typescript/lib/typescript.js";

const ts: typeof TypeScript = createRequire(join(import.meta.dirname, "../openapi-client/package.json"))("typescript");

/** Names and fields without a sentence, such as `Client.url`, by the entry of the package they come from. */
export function undocumented(root: string, typeRoots: string): Map<string, string[]> {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = Object.entries<{ types?: string }>(exports).flatMap(([name, { types }]) =>
    types === undefined ? [] : [[name, join(root, types)] as const],
  );
  const program = ts.createProgram(
    entries.map(([, file]) => file),
    {
      ...{ module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2024, strict: true, skipLibCheck: true },
      ...{ lib: ["lib.es2024.d.ts", "lib.esnext.disposable.d.ts"], types: ["node"], typeRoots: [typeRoots] },
    },
  );
  const checker = program.getTypeChecker();
  return new Map(
    entries.map(([name, file]) => {
      // What is the core's is counted there, whoever else exports it.
      const isOurs = (path: string): boolean =>
        path.startsWith(join(root, "dist/")) && (name === "./core" || !path.startsWith(join(root, "dist/core/")));
      return [name, silentIn(checker, program.getSourceFile(file), isOurs)];
    }),
  );
}

function silentIn(
  checker: TypeScript.TypeChecker,
  file: TypeScript.SourceFile | undefined,
  isOurFile: (path: string) => boolean,
): string[] {
  const silent = new Set<string>();
  const seen = new Set<unknown>();
  const isOurs = (symbol: TypeScript.Symbol): boolean =>
    symbol.declarations?.some((one) => isOurFile(one.getSourceFile().fileName)) === true;
  const hasWords = (symbol: TypeScript.Symbol): boolean => symbol.getDocumentationComment(checker).length > 0;

  function lookAtType(type: TypeScript.Type, path: string): void {
    if (seen.has(type)) return;
    seen.add(type);
    if (type.isUnion()) for (const one of type.types) lookAtType(one, path);
    else for (const field of checker.getPropertiesOfType(type)) lookAtField(field, path);
  }
  function lookAtField(field: TypeScript.Symbol, path: string): void {
    const isPrivate = field.declarations?.some((one) => ts.getCombinedModifierFlags(one) & ts.ModifierFlags.Private);
    // Every error has a name, and says by it only what it is called.
    if (!isOurs(field) || isPrivate || /^(__|#|prototype$|name$)/.test(field.name)) return;
    const at = `${path}.${field.name}`;
    if (!hasWords(field)) silent.add(at);
    const type = checker.getNonNullableType(checker.getTypeOfSymbol(field));
    for (const one of type.isUnion() ? type.types : [type])
      if (one.aliasSymbol === undefined && one.symbol?.name === "__type" && isOurs(one.symbol)) lookAtType(one, at);
  }
  function lookAt(exported: TypeScript.Symbol, path: string): void {
    const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0;
    const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported;
    if (symbol.flags & ts.SymbolFlags.Module) {
      for (const inner of checker.getExportsOfModule(symbol)) lookAt(inner, `${path}${exported.name}.`);
      return;
    }
    if (!isOurs(symbol)) return;
    if (!hasWords(symbol)) silent.add(`${path}${exported.name}`);
    if (symbol.flags & ts.SymbolFlags.Type)
      lookAtType(checker.getDeclaredTypeOfSymbol(symbol), `${path}${exported.name}`);
  }
  const module = file && checker.getSymbolAtLocation(file);
  if (module !== undefined) for (const exported of checker.getExportsOfModule(module)) lookAt(exported, "");
  return [...silent];
}
