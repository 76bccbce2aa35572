/**
 * The version of the rules.
 *
 * Written into the log when an engine starts, so that a range of the log says under which rules it was
 * decided. It changes when the same state and command would give other events.
 */

export const CORE_VERSION = "7";
