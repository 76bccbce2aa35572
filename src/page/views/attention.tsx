/**
 * What needs a person: questions, blocked gates, budgets that run out, lost nodes and workers, work that can never run.
 */
import type { JSX } from "preact";
import type {
  GateJson,
  ProjectList,
  ProjectView,
  StuckTask,
  TaskView,
  WorkerView,
} from "../../protocol/generated/index.ts";
import { Refused } from "../data/ask.ts";
import { to } from "../data/links.ts";
import { live } from "../data/live.ts";
import { useStore } from "../data/store.ts";
import { type Called, useCall, useNow } from "../data/use-call.ts";
import { brief, clock, percent, plural, span, timeOf } from "../data/words.ts";
import { Answers } from "../parts/approvals.tsx";
import { Failure, fillTone, Missing, MoreIn, Name, Panel, TaskName } from "../parts/pieces.tsx";

const LISTED_MAX = 20;
/** Few enough that what else needs a person is seen too. */
const QUESTIONS_MAX = 10;

type Row = { readonly key: string; readonly tone: "warn" | "bad"; readonly what: string; readonly text: JSX.Element };
type Spending = Pick<ProjectView, "budget" | "spent" | "reserved" | "freesAt">;
type Seen = {
  readonly gates: Called<{ readonly gates: readonly GateJson[] }>;
  readonly projects: Called<Pick<ProjectList, "projects" | "fleet">>;
  readonly workers: Called<{ readonly workers: readonly WorkerView[] }>;
};

/** What is not for the token is nothing that its holder must see to. */
const isForOthers = (error: Error | null): boolean => error instanceof Refused && error.status === 403;

export function Attention({ gates, projects, workers }: Seen): JSX.Element {
  const now = useNow();
  const asking = useCall(
    "tasks",
    { query: { asking: true, order: "newest", limit: QUESTIONS_MAX } },
    { everyMs: 2000 },
  );
  const stuck = useCall("stuck", {}, { everyMs: 5000, agesMs: 10_000 });
  const { pulse } = useStore(live);
  const calls = [asking, stuck, gates, projects, workers];
  const error = calls.find((call) => call.error !== null && !isForOthers(call.error))?.error ?? null;
  const isKnown = calls.every((call) => call.data !== null || isForOthers(call.error));
  const { tasks = [], total = 0 } = asking.data ?? {};
  const rows = [
    ...(pulse?.node?.trouble === undefined ? [] : [troubleRow]),
    ...(pulse?.node?.down ?? []).map(downRow),
    ...(total > tasks.length ? [questionsRow(total)] : []),
    ...tasks.map(questionRow),
    ...(stuck.data?.tasks ?? []).map(stuckRow),
    ...(gates.data?.gates ?? []).flatMap((gate) => gateRow(gate, now)),
    ...(projects.data?.fleet === undefined ? [] : budgetRow(projects.data.fleet, null)),
    ...(projects.data?.projects ?? []).flatMap((project) => budgetRow(project, project.id)),
    ...(workers.data?.workers.length === 0 && (pulse?.queued ?? 0) > 0 ? [nobodyRow] : []),
    ...(workers.data?.workers ?? []).flatMap(workerRow),
  ];
  return (
    <Panel
      title="Needs a person"
      actions={<span class="small">{rows.length === 0 ? "" : plural(rows.length, "thing")}</span>}
      isFlush
    >
      {rows.length === 0 && !isKnown ? null : <Failure error={error} />}
      {rows.length === 0 && !isKnown ? (
        <Missing error={error} />
      ) : rows.length === 0 ? (
        <p class="all-well">
          <span class="good">✓</span> Nothing does: no question is open, no gate is blocked, no budget runs out.
        </p>
      ) : (
        <ul class="attention">
          {rows.slice(0, LISTED_MAX).map(({ key, tone, what, text }) => (
            <li key={key}>
              <span class={`what ${tone}`}>{what}</span>
              {text}
            </li>
          ))}
          {rows.length > LISTED_MAX ? <li class="muted">… {rows.length - LISTED_MAX} more</li> : null}
        </ul>
      )}
    </Panel>
  );
}

const troubleRow: Row = {
  key: "node",
  tone: "bad",
  what: "journal",
  text: (
    <span class="grow">
      This node is cut off from the log that the nodes share, or that log is full: see{" "}
      <a href={to.cluster}>the cluster</a>
    </span>
  ),
};

/** Of more questions than are listed. */
const questionsRow = (total: number): Row => ({
  key: "questions",
  tone: "warn",
  what: "asks",
  text: (
    <span class="grow">
      <a href={to.tasks({ asking: "true" })}>{plural(total, "task")} wait</a> for somebody's word; the newest are here
    </span>
  ),
});

const downRow = ({ id, since }: { readonly id: string; readonly since: string }): Row => ({
  key: `down ${id}`,
  tone: "bad",
  what: "down",
  text: (
    <span class="grow">
      Node <Name>{id}</Name> is down: nothing was heard of it since {timeOf(since)}. See{" "}
      <a href={to.cluster}>the cluster</a>
    </span>
  ),
});

function questionRow(task: TaskView): Row {
  return {
    key: `asks ${task.taskId}`,
    tone: "warn",
    what: "asks",
    text: (
      <>
        <span class="grow">
          <TaskName id={task.taskId} /> <bdi>{task.approval?.question ?? "Somebody must approve it."}</bdi>
        </span>
        <Answers task={task} />
      </>
    ),
  };
}

function stuckRow({ taskId, why, waitMs, count: like }: StuckTask): Row {
  const others = like > 1 ? ` and ${plural(like - 1, "task")} like it` : "";
  return {
    key: `${why} ${taskId}`,
    tone: "bad",
    what: why === "overdue" ? "overdue" : "never fits",
    text: (
      <span class="grow">
        <TaskName id={taskId} />
        {others}: {why === "overdue" ? `waiting for ${span(waitMs)}` : "no worker here could ever run it"}
      </span>
    ),
  };
}

function gateRow({ id, blockedUntil, throttles, queued }: GateJson, now: number): Row[] {
  if (blockedUntil === undefined || Date.parse(blockedUntil) <= now) return [];
  return [
    {
      key: `gate ${id}`,
      tone: "bad",
      what: "blocked",
      text: (
        <span class="grow">
          Gate{" "}
          <a href={to.gate(id)}>
            <Name>{id}</Name>
          </a>{" "}
          opens in {clock(Date.parse(blockedUntil) - now)}: {plural(throttles, "throttle")} in a row,{" "}
          {plural(queued, "call")} in line
        </span>
      ),
    },
  ];
}

/** Of a project, or of all of them together. */
function budgetRow({ budget, spent, reserved, freesAt }: Spending, id: string | null): Row[] {
  if (budget.limit === null) return [];
  const part = (spent + reserved) / budget.limit;
  const tone = fillTone(part, "quiet");
  if (tone === "quiet") return [];
  return [
    {
      key: id === null ? "budget" : `budget ${id}`,
      tone,
      what: "budget",
      text: (
        <span class="grow">
          <a href={to.projects}>{id === null ? "All projects together" : <Name>{id}</Name>}</a>{" "}
          {id === null ? "have" : "has"} used {percent(part)} of {brief(budget.limit)} tokens in {span(budget.window)}
          {freesAt === undefined ? null : (
            <>
              , <MoreIn at={freesAt} />
            </>
          )}
        </span>
      ),
    },
  ];
}

const nobodyRow: Row = {
  key: "nobody",
  tone: "bad",
  what: "no worker",
  text: (
    <span class="grow">
      What is queued waits for a worker, and <a href={to.workers}>none is here</a>: start one with{" "}
      <code>drover worker --commands</code>
    </span>
  ),
};

function workerRow({ id, status, note, inFlight }: WorkerView): Row[] {
  if (status !== "unreachable" && note === undefined) return [];
  return [
    {
      key: `worker ${id}`,
      tone: status === "unreachable" ? "bad" : "warn",
      what: status === "unreachable" ? "lost" : "worker",
      text: (
        <span class="grow">
          Worker{" "}
          <a href={to.workers}>
            <Name>{id}</Name>
          </a>{" "}
          {status === "unreachable" ? `does not answer; ${plural(inFlight, "task")} on it` : (note ?? "")}
        </span>
      ),
    },
  ];
}
