/**
 * One example for each shape people meet first. They are published with the schemas, and a test reads each of them by
 * the schema it explains.
 */
const AT = "2026-01-31T12:00:00.000Z";

export const EXAMPLES: Readonly<Record<string, readonly unknown[]>> = {
  BatchBody: [
    {
      agentId: "ann",
      project: "site",
      tasks: [
        { id: "plan-1", action: "exec", params: { command: "echo plan" }, type: "plan" },
        { id: "code-1", action: "exec", params: { command: "echo code" }, type: "code", needs: ["plan-1"] },
      ],
    },
  ],
  Submitted: [{ taskId: "tsk_17", state: "queued", position: 3, createdAt: AT }],
  BatchAnswer: [
    {
      tasks: [
        { taskId: "plan-1", state: "queued", position: 1 },
        { taskId: "code-1", state: "waiting" },
      ],
      submitted: 2,
      accepted: 2,
      rejected: 0,
    },
  ],
  Task: [
    {
      agentId: "ann",
      action: "exec",
      params: { command: "echo hello" },
      taskId: "tsk_17",
      project: "default",
      state: "done",
      attempt: 1,
      createdAt: AT,
      runnableAt: AT,
      startedAt: AT,
      completedAt: "2026-01-31T12:00:01.500Z",
      latencyMs: 1500,
      worker: "local",
      result: { exitCode: 0, output: "hello" },
    },
  ],
  Why: [
    {
      task: "code-1",
      state: "waiting",
      summary: "It waits because need plan-1 is running (and 1 more condition).",
      conditions: [
        { code: "fleet-paused", ok: true, detail: "the fleet is not paused", numbers: {} },
        { code: "dependency", ok: false, detail: "need plan-1 is running", numbers: { need: "plan-1" } },
        { code: "no-workers", ok: false, detail: "no worker is there", numbers: { workers: 0 } },
      ],
      ahead: { count: 1, next: [{ task: "plan-1", agent: "ann", reason: "it was submitted first" }] },
    },
  ],
  Joined: [{ workerId: "mac-1", session: "s_8f2c", leaseMs: 10_000, maxWorktrees: 50 }],
  SyncBody: [
    { session: "s_8f2c", n: 1, want: 2, waitMs: 20_000, running: [] },
    {
      session: "s_8f2c",
      n: 2,
      running: [{ taskId: "tsk_18", attempt: 1, progress: { step: 2 } }],
      results: [{ taskId: "tsk_17", attempt: 1, outcome: "done", result: { text: "hello" } }],
    },
  ],
  SyncAnswer: [
    {
      assignments: [
        {
          taskId: "tsk_17",
          attempt: 1,
          task: { taskId: "tsk_17", state: "assigned", attempt: 1, agentId: "ann", action: "echo" },
          leaseUntil: "2026-01-31T12:00:10.000Z",
        },
      ],
      cancel: [],
      results: [{ taskId: "tsk_16", attempt: 2, accepted: true }],
      leaseUntil: "2026-01-31T12:00:10.000Z",
      leaseMs: 10_000,
      maxWorktrees: 50,
    },
  ],
  Permit: [
    { permitId: "call-17", gate: "anthropic/default", status: "granted", expiresAt: "2026-01-31T12:10:00.000Z" },
    { permitId: "call-18", gate: "anthropic/default", status: "queued", position: 2 },
  ],
  SettleBody: [{ ok: true, usage: { inputTokens: 1200, outputTokens: 300 } }],
  Error: [
    {
      error: 'priority is "soon", and must be critical, high, normal, low or a whole number',
      code: "bad_request",
      details: { field: "priority", value: '"soon"', expected: "critical, high, normal, low or a whole number" },
    },
    {
      error: "the queue is full: 100000 of scheduler.maxQueue 100000 tasks; try again later",
      code: "queue_full",
      retryable: true,
      details: { agentId: "ann", queued: 100_000, maxQueue: 100_000, maxPerAgent: 10_000, taskId: "rej_1" },
    },
  ],
};
