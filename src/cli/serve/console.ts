/**
 * How a server speaks while it runs: to a person in sentences, to a log in lines of JSON, and not both in one stream.
 *
 * Standard output has the welcome and nothing else. Standard error is a person's where it is a terminal, and where
 * nothing is to be logged; anywhere else it is a log, which a collector reads line by line. Only
 * why it could not start, or had to end, is a sentence everywhere, as with every other verb.
 */
import { type Logger, pino } from "pino";
import { plainLines } from "../shell/text.ts";
import type { Call } from "../shell/verb.ts";

export type ServerConsole = {
  readonly logger: Logger;
  /** Good to know. */
  readonly say: (text: string) => void;
  /** Not as it should be, though the server goes on. */
  readonly complain: (text: string) => void;
  /** Something that was asked for is not done. */
  readonly alarm: (text: string) => void;
};

export function consoleFor({
  flags,
  terminal,
  output,
}: Pick<Call<{ logLevel?: string }>, "flags" | "terminal" | "output">): ServerConsole {
  const level = flags.logLevel ?? (terminal.isErrorTerminal ? "warn" : "info");
  const logger = pino({ level, base: null }, { write: (line: string) => terminal.err(line) });
  if (!terminal.isErrorTerminal && level !== "silent")
    return {
      logger,
      say: (text) => logger.info(text),
      complain: (text) => logger.warn(text),
      alarm: (text) => logger.error(text),
    };
  return {
    logger,
    say: (text) => (output.isJson ? undefined : terminal.err(`${text}\n`)),
    complain: (text) => terminal.err(`warning: ${plainLines(text)}\n`),
    alarm: (text) => terminal.err(`error: ${plainLines(text)}\n`),
  };
}
