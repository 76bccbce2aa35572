/**
 * The last touch on an outcome before it leaves: where work was kept, no secrets, small enough.
 */

import { isRecord } from "../../core/base/index.ts";
import type { Usage } from "../../protocol/index.ts";
import { shorten } from "../output/lines.ts";
import type { Redactor } from "../output/redact.ts";
import type { WorkspaceReport } from "../worktree/worktree.ts";
import type { ExecOutcome } from "./contract.ts";
import { bounded } from "./result.ts";

/** With room for the mark of what was cut off: 4096 is what the wire keeps. */
const ERROR_MAX = 4000;
const FILES_LISTED_MIN = 20;

export function finishedOutcome(
  outcome: ExecOutcome,
  extras: { readonly workspace: WorkspaceReport | null; readonly usage: Usage | null; readonly redact: Redactor },
): ExecOutcome {
  const { workspace, usage, redact } = extras;
  const placed = workspace === null ? outcome : withWorkspace(outcome, workspace);
  return {
    ...placed,
    ...(placed.result === undefined ? {} : { result: redact.value(placed.result) }),
    ...(placed.error === undefined ? {} : { error: shorten(redact.line(placed.error), ERROR_MAX).toWellFormed() }),
    ...(usage === null ? {} : { usage }),
  };
}

/** Beside what the child returned, under a name of its own; and in the error, since failures are read there. */
function withWorkspace(outcome: ExecOutcome, workspace: WorkspaceReport): ExecOutcome {
  const { isKept, path, branch } = workspace;
  const hint = isKept ? `; its work is kept in ${path} on branch ${branch}` : "";
  const error = outcome.error === undefined ? {} : { error: `${outcome.error}${hint}` };
  if (outcome.outcome !== "done" && !isKept) return outcome;
  const full = besides(outcome.result, workspace);
  const isSmallEnough = bounded(full, "result").kind === "value";
  const shortList = { ...workspace, changedFiles: workspace.changedFiles.slice(0, FILES_LISTED_MIN) };
  return { ...outcome, ...error, result: isSmallEnough ? full : fitting(outcome.result, shortList) };
}

function besides(result: unknown, workspace: WorkspaceReport): unknown {
  if (result === undefined) return { workspace };
  return isRecord(result) && !("workspace" in result) ? { ...result, workspace } : { result, workspace };
}

/** A result that just fits by itself goes before the place of the work, which is in the log too. */
function fitting(result: unknown, workspace: WorkspaceReport): unknown {
  const both = besides(result, workspace);
  return bounded(both, "result").kind === "value" ? both : result;
}
