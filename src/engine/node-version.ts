/**
 * Drover on a Node that is too old says so, in one sentence, the moment it is imported.
 *
 * Otherwise the first function that this Node lacks would answer with a TypeError from somewhere inside. The front
 * doors import this file before anything else; it imports nothing, so that it can always be read.
 */
const NODE_MAJOR_MIN = 24;

/** What is wrong with this version of Node; null if nothing is. */
export function complaintAbout(version: string): string | null {
  return Number.parseInt(version, 10) < NODE_MAJOR_MIN
    ? `Drover needs Node ${NODE_MAJOR_MIN} or newer, this is ${version}`
    : null;
}

const complaint = complaintAbout(process.versions.node);
if (complaint !== null) throw new Error(complaint);
