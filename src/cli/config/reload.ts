/**
 * A server's config while it runs: read again when a file changes and on SIGHUP, taken as a whole or not at all.
 *
 * A bad file must never stop a server that runs well, so it is complained of and the old config stays in force.
 * A file that is gone, or that says nothing any more, is nearly always one that is being saved, stashed, or was removed
 * by mistake; taken at its word it would drop every token, budget and gate of a server that others can reach. So it is
 * a bad file too, and so is one that takes away the last token: a door that is opened for everybody is opened by a
 * restart.
 *
 * Readings come one after another: two quick saves cannot overtake each other. A file that was saved without a change
 * is not reported, except to the person who sent a SIGHUP and waits for an answer, and after a complaint: who mended
 * the file wants to hear that it is mended.
 */

import type { Terminal } from "../shell/terminal.ts";
import type { ServerConfig } from "./load.ts";
import { BadConfig, type ConfigProblem } from "./problem.ts";
import { type ConfigWatch, realWorld, type WatchWorld, watchFiles } from "./watch.ts";

type Loaded = { readonly given: unknown; readonly files: readonly string[] };

type ReloadHooks<Config extends Loaded> = {
  /** All layers anew, to take over from the config in force; throws `BadConfig`. */
  readonly load: (inForce: Config) => Config;
  /** Puts a changed config in force. What it throws is complained of like a bad file. */
  readonly apply: (config: Config) => Promise<void>;
  readonly say: (message: string) => void;
  readonly complain: (message: string) => void;
  /** A config that was refused, though its author believes it is in force. */
  readonly alarm: (message: string) => void;
};

export type Reloading<Config> = {
  /** What was read last and taken. */
  readonly inForce: () => Config;
  /** Reads it now, in its turn, and puts it in force if it has changed; rejects with what is wrong with it. */
  readonly now: () => Promise<void>;
  readonly stop: () => void;
  /** Resolves when every change noticed so far has been dealt with. */
  readonly settled: () => Promise<void>;
};

export function keepReloading<Config extends Loaded>(
  first: Config,
  hooks: ReloadHooks<Config>,
  terminal: Pick<Terminal, "onSignal">,
  world: WatchWorld = realWorld,
): Reloading<Config> {
  let inForce = first;
  /** Whether what was read last was not taken. */
  let isBad = false;
  let line: Promise<void> = Promise.resolve();

  /** Whether there was anything to say. */
  async function takeOver(): Promise<boolean> {
    const config = hooks.load(inForce);
    const hasChanged = JSON.stringify(config.given) !== JSON.stringify(inForce.given);
    if (hasChanged) await hooks.apply(config);
    // Also where it says the same: it may be another file that says it.
    inForce = config;
    const isGoodAgain = isBad;
    isBad = false;
    if (!hasChanged && isGoodAgain) hooks.say("the config is good again; nothing in it has changed");
    if (!hasChanged) return isGoodAgain;
    hooks.say("the config has changed and is in force");
    return true;
  }

  async function reload(isAsked: boolean): Promise<void> {
    try {
      if (!(await takeOver()) && isAsked) hooks.say("the config has not changed");
    } catch (error) {
      const reason = (error as Error).message;
      isBad = true;
      hooks.alarm(`the new config is not taken, the old one stays in force\n${reason}`);
    }
  }

  const ask = (isAsked: boolean): void => {
    line = line.then(() => reload(isAsked));
  };
  function now(): Promise<void> {
    const taken = line.then(takeOver);
    line = taken.then(
      () => {},
      () => {},
    );
    return taken.then(() => {});
  }
  const watch: ConfigWatch = watchFiles(first.files, { onChange: () => ask(false), onWarning: hooks.complain }, world);
  // A change between the first reading and this moment was not seen by the watch.
  ask(false);
  const stopHearing = terminal.onSignal(["SIGHUP"], () => ask(true));
  return {
    inForce: () => inForce,
    now,
    stop: () => {
      stopHearing();
      watch.stop();
    },
    settled: () => line,
  };
}

type Comparable = Pick<ServerConfig, "filesRead" | "filesWithSettings"> & {
  readonly settings: { readonly server: Pick<ServerConfig["settings"]["server"], "tokens"> };
};

/** Throws what is missing from the config that is to follow the one in force. */
export function checkNothingLost(inForce: Comparable, next: Comparable): void {
  const problems: ConfigProblem[] = [];
  const complain = (message: string): void => void problems.push({ message, origin: null });
  for (const file of inForce.filesRead) {
    if (!next.filesRead.includes(file))
      complain(`${file} is gone; put it back, or restart the server to go on without it`);
    else if (inForce.filesWithSettings.includes(file) && !next.filesWithSettings.includes(file))
      complain(`${file} is empty; write it again, or restart the server to go on without what it said`);
  }
  const tokens = inForce.settings.server.tokens.length;
  if (tokens > 0 && next.settings.server.tokens.length === 0)
    complain(
      `server.tokens would be empty: without a token everybody may do everything, and the server has ${tokens} now; ` +
        "keep at least one, or restart the server",
    );
  if (problems.length > 0) throw new BadConfig(problems);
}
