/**
 * The task as a child reads it: one JSON document on stdin, and the same in the file DROVER_TASK_FILE.
 *
 * What decides when and where a task runs (priority, needs, locks, …) is not the child's business and is left out.
 */
import type { ExecTask } from "./contract.ts";

export function taskDocument(task: ExecTask, attempt: number, workspace: string): string {
  const { taskId, action, type, params, payload, ref, selector, tabId } = task;
  const { deadline, timeoutMs, estimatedTokens, project, agentId } = task;
  return `${JSON.stringify({
    taskId,
    attempt,
    action,
    type,
    params,
    payload,
    ref,
    selector,
    tabId,
    deadline,
    timeoutMs,
    estimatedTokens,
    project,
    agentId,
    workspace,
  })}\n`;
}
