/**
 * What a config may not lose while a server runs under it.
 *
 * A file that is gone, or that says nothing any more, is nearly always one that is being saved, stashed, or was removed
 * by mistake. Taken at its word it would drop every token, budget and gate of a server that others can reach. So it is
 * a bad file, and the old config stays in force until the file is back. In the same way the last token is never taken
 * away from a server that has some: a door that is opened for everybody is opened by a restart.
 */
import { BadConfig, type ConfigProblem } from "./problem.ts";
import type { ServerConfig } from "./settings.ts";

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
