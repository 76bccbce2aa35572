/**
 * Files that tasks leave, on the wire: their names, and how their contents come and go.
 */

import { SHA256_PATTERN } from "../../core/base/index.ts";
import { FILE_BYTES_MAX } from "../../core/config/index.ts";
import { isSafePath, PATH_LENGTH_MAX } from "../../std/index.ts";
import type * as wire from "../generated/files.ts";
import * as s from "../schema/schema.ts";

const ATTEMPT_MAX = 1_000_000_000;
const SESSION_LENGTH_MAX = 256;
const OUTPUTS_MAX = 64;
/** Of one report: what is more than this is no list of files any more. */
const LISTED_MAX = 10_000;

const hash = (): s.Schema<string> => s.matching(SHA256_PATTERN, "a SHA-256 as 64 hex digits");
const A_PATH = `a relative path of at most ${PATH_LENGTH_MAX} characters that stays in its directory, with slashes`;
export const outputPath = (): s.Schema<string> => s.refined(s.text(1, PATH_LENGTH_MAX), isSafePath, A_PATH);

export const fileRef: s.Schema<wire.FileRef> = s.namedObject("FileRef", {
  path: s.described(outputPath(), "Where it lay in the workspace of its task."),
  hash: s.described(hash(), "The SHA-256 of its content."),
  size: s.described(s.whole(0, FILE_BYTES_MAX), "In bytes."),
});
export const fileRefs = (): s.Schema<readonly wire.FileRef[]> => s.list(fileRef, { max: LISTED_MAX });

/** What an exec worker collects. */
export const outputs = (): s.Schema<readonly string[]> =>
  s.noted(s.list(outputPath(), { max: OUTPUTS_MAX }), {
    expected: `a list of at most ${OUTPUTS_MAX} relative paths or patterns such as report/**`,
  });

export const fileName: s.Schema<wire.FileName> = s.object({ hash: s.described(hash(), "The SHA-256 of the content.") });
const attempt = {
  task: s.optional(s.name(), "The task of the attempt that asks."),
  attempt: s.optional(s.whole(1, ATTEMPT_MAX), "The number of that attempt."),
  session: s.optional(s.text(1, SESSION_LENGTH_MAX), "As joining gave it. A worker token must say it."),
};
export const putFileQuery: s.Schema<wire.PutFileQuery> = s.object(attempt);
export const fileQuery: s.Schema<wire.FileQuery> = s.object({
  ...attempt,
  task: s.optional(
    s.name(),
    "Of this task, or of one that it needs: then a result that was too large to be handed along is found too. A " +
      "worker token must name an attempt that it runs.",
  ),
});
export const storedFile: s.Schema<wire.StoredFile> = s.answer({
  hash: s.described(hash(), "The SHA-256 of the content."),
  size: s.described(s.whole(0), "In bytes."),
});
