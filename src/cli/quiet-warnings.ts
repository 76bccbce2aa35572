/**
 * Node calls its SQLite experimental and says so on the terminal of everybody who starts a server. That is a matter
 * between Node and us, so such warnings are left out; all others are shown. It must be imported before anything that
 * could warn.
 */

const emit = process.emitWarning.bind(process) as (warning: string | Error, ...rest: unknown[]) => void;

process.emitWarning = ((warning: string | Error, ...rest: unknown[]): void => {
  const [options] = rest;
  const type = typeof options === "string" ? options : (options as { type?: string } | undefined)?.type;
  const name = warning instanceof Error ? warning.name : type;
  if (name !== "ExperimentalWarning") emit(warning, ...rest);
}) as typeof process.emitWarning;
