/**
 * All tasks, newest first: filtered, selected, cancelled or run again in bulk.
 *
 * The filter stands in the address, so a link to what somebody sees can be shared.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { TasksQuery, TaskView } from "../../protocol/generated/index.ts";
import { TASK_STATES } from "../../protocol/wire/index.ts";
import { to } from "../data/links.ts";
import { type TaskList, useTaskPages } from "../data/task-pages.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { brief, count, dateOf, plural, since, tokensOf } from "../data/words.ts";
import { isAsking } from "../parts/approvals.tsx";
import { Empty, Failure, Name, State, TaskName, View } from "../parts/pieces.tsx";
import { cancelAll, retryAll } from "../parts/task-acts.ts";
import { Rows } from "../parts/virtual.tsx";
import { SubmitForm } from "./submit.tsx";

const ROW_HEIGHT = 36;
const TYPED_MS = 250;
const FIELDS = ["state", "project", "agentId", "type", "label", "q"] as const;
type Filter = Partial<Record<(typeof FIELDS)[number], string>>;

export function Tasks(): JSX.Element {
  const { query, route } = useLocation();
  const { mayAct } = useRights();
  const filter: Filter = Object.fromEntries(FIELDS.flatMap((key) => (query[key] ? [[key, query[key]]] : [])));
  const list = useTaskPages(queryOf(filter));
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isSubmitting, setSubmitting] = useState(false);
  const change = (next: Filter): void => route(to.tasks({ ...filter, ...next }), true);
  const isFiltered = Object.keys(filter).length > 0;
  const known = list.tasks.filter(({ taskId }) => chosen.has(taskId));
  return (
    <View
      title="Tasks"
      actions={
        mayAct ? (
          <button type="button" class="button is-main" onClick={() => setSubmitting(true)}>
            Submit a task
          </button>
        ) : undefined
      }
    >
      {isSubmitting ? <SubmitForm onClose={() => setSubmitting(false)} /> : null}
      <Filters filter={filter} change={change} />
      <Failure error={list.error} />
      <section class="panel task-list">
        <Selection chosen={known} isFiltered={isFiltered} clear={() => setChosen(new Set())} list={list} />
        <Heads />
        <List list={list} chosen={chosen} choose={setChosen} isFiltered={isFiltered} mayAct={mayAct} />
      </section>
    </View>
  );
}

function queryOf({ state, ...rest }: Filter): TasksQuery {
  return { ...rest, ...(state === undefined ? {} : { state: state.split(",") }) } as TasksQuery;
}

function Filters({ filter, change }: { filter: Filter; change: (next: Filter) => void }): JSX.Element {
  const projects = useCall("projects", {}, { everyMs: 10_000 });
  const states = new Set((filter.state ?? "").split(",").filter(Boolean));
  const turn = (state: string): void => {
    const next = new Set(states);
    if (!next.delete(state)) next.add(state);
    change({ state: [...next].join(",") });
  };
  return (
    <div class="filters">
      <div class="chips" role="group" aria-label="States">
        {TASK_STATES.map((state) => (
          <button
            key={state}
            type="button"
            class={`chip is-${state}`}
            aria-pressed={states.has(state)}
            onClick={() => turn(state)}
          >
            {state}
          </button>
        ))}
      </div>
      <div class="filter-fields">
        <Typed
          label="Search"
          placeholder="Id, action, agent, label…"
          value={filter.q ?? ""}
          onTyped={(q) => change({ q })}
          isWide
        />
        <select
          class="select"
          aria-label="Project"
          value={filter.project ?? ""}
          onChange={(event) => change({ project: event.currentTarget.value })}
        >
          <option value="">All projects</option>
          {(projects.data?.projects ?? []).map(({ id }) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </select>
        <Typed
          label="Agent"
          placeholder="Agent"
          value={filter.agentId ?? ""}
          onTyped={(agentId) => change({ agentId })}
        />
        <Typed label="Type" placeholder="Type" value={filter.type ?? ""} onTyped={(type) => change({ type })} />
        <Typed
          label="Label"
          placeholder="label=value"
          value={filter.label ?? ""}
          onTyped={(label) => change({ label })}
        />
        {Object.keys(filter).length === 0 ? null : (
          <a class="button is-plain" href={to.tasks()}>
            Clear
          </a>
        )}
      </div>
    </div>
  );
}

/** A text that holds a moment after the last letter. */
function Typed({
  label,
  placeholder,
  value,
  onTyped,
  isWide = false,
}: {
  label: string;
  placeholder: string;
  value: string;
  onTyped: (text: string) => void;
  isWide?: boolean;
}): JSX.Element {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = window.setTimeout(() => onTyped(text.trim()), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <input
      class={isWide ? "input is-wide" : "input"}
      type="search"
      aria-label={label}
      placeholder={placeholder}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
    />
  );
}

const isOver = ({ state }: TaskView): boolean => ["done", "failed", "cancelled", "skipped", "rejected"].includes(state);
const mayRetry = ({ state }: TaskView): boolean => ["failed", "cancelled", "skipped"].includes(state);

function Selection({
  chosen,
  isFiltered,
  clear,
  list,
}: {
  chosen: readonly TaskView[];
  isFiltered: boolean;
  clear: () => void;
  list: TaskList;
}): JSX.Element {
  const open = chosen.filter((task) => !isOver(task));
  const again = chosen.filter(mayRetry);
  const shown = `${count(list.tasks.length)}${list.hasMore ? "+" : ""}`;
  return (
    <header>
      {chosen.length === 0 ? (
        <span class="muted" role="status">
          {list.isLoading
            ? "Loading…"
            : `${shown} ${list.tasks.length === 1 ? "task" : "tasks"}${isFiltered ? " match" : ""}`}
        </span>
      ) : (
        <>
          <strong>{plural(chosen.length, "task")} selected</strong>
          <span class="actions">
            <button
              type="button"
              class="button is-small is-danger"
              disabled={open.length === 0}
              onClick={() => cancelAll(open).then(clear)}
            >
              Cancel {open.length}
            </button>
            <button
              type="button"
              class="button is-small"
              disabled={again.length === 0}
              onClick={() => retryAll(again).then(clear)}
            >
              Retry {again.length}
            </button>
            <button type="button" class="button is-small is-plain" onClick={clear}>
              Clear the selection
            </button>
          </span>
        </>
      )}
      {list.hasNews && chosen.length === 0 ? (
        <span class="actions">
          <button type="button" class="button is-small" onClick={list.restart}>
            Show new tasks
          </button>
        </span>
      ) : null}
    </header>
  );
}

const COLUMNS = ["", "Task", "State", "Action", "Project", "Agent", "Type", "Tokens", "Took", "Age"];

const NUMBERS: ReadonlySet<string> = new Set(["Tokens", "Took", "Age"]);

const Heads = (): JSX.Element => (
  <div class="task-row task-heads" aria-hidden="true">
    {COLUMNS.map((title) => (
      <span key={title} class={NUMBERS.has(title) ? "right" : ""}>
        {title}
      </span>
    ))}
  </div>
);

function List({
  list,
  chosen,
  choose,
  isFiltered,
  mayAct,
}: {
  list: TaskList;
  chosen: ReadonlySet<string>;
  choose: (next: ReadonlySet<string>) => void;
  isFiltered: boolean;
  mayAct: boolean;
}): JSX.Element {
  const now = useNow(5000);
  const { tasks } = list;
  if (tasks.length === 0)
    return list.isLoading ? (
      <p class="loading">Loading…</p>
    ) : isFiltered ? (
      <Empty hint="Ended tasks are listed for a while, and found by their id for longer.">No task matches.</Empty>
    ) : (
      <Empty
        hint={
          <>
            Or on the command line: <code>drover submit --agent me -- echo hello</code>
          </>
        }
      >
        No task yet. Submit one.
      </Empty>
    );
  const turn = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    choose(next);
  };
  return (
    <Rows
      label="Tasks"
      length={tasks.length}
      rowHeight={ROW_HEIGHT}
      onSeen={({ first, last }) => list.see(first, last)}
    >
      {(index) => {
        const task = tasks[index];
        return task === undefined ? null : (
          <Row
            task={task}
            now={now}
            isChosen={chosen.has(task.taskId)}
            onTurn={mayAct ? () => turn(task.taskId) : null}
          />
        );
      }}
    </Rows>
  );
}

function Row({
  task,
  now,
  isChosen,
  onTurn,
}: {
  task: TaskView;
  now: number;
  isChosen: boolean;
  onTurn: (() => void) | null;
}): JSX.Element {
  const { taskId, state, action = "", project = "", agentId = "", type = "", error } = task;
  const { createdAt, startedAt, completedAt } = task;
  const note = isAsking(task) ? (task.approval?.question ?? "Somebody must approve it.") : error;
  const tokens = tokensOf(task.usage);
  return (
    <div class="task-row">
      <span role="cell">
        {onTurn === null ? null : (
          <input type="checkbox" aria-label={`Select ${taskId}`} checked={isChosen} onChange={onTurn} />
        )}
      </span>
      <span role="cell" class="clip">
        <TaskName id={taskId} />
      </span>
      <span role="cell">
        <State state={state} />
      </span>
      <span role="cell" class="clip" title={note ?? action}>
        <Name>{action}</Name>
        {note === undefined ? null : <span class={state === "parked" ? "warn" : "bad"}> · {note}</span>}
      </span>
      <span role="cell" class="clip" title={project}>
        <Name>{project}</Name>
      </span>
      <span role="cell" class="clip" title={agentId}>
        <Name>{agentId}</Name>
      </span>
      <span role="cell" class="clip muted">
        <Name>{type}</Name>
      </span>
      <span role="cell" class="right muted">
        {tokens === 0 ? "" : brief(tokens)}
      </span>
      <span role="cell" class="right muted nowrap">
        {startedAt === undefined ? "" : since(startedAt, completedAt === undefined ? now : Date.parse(completedAt))}
      </span>
      <span role="cell" class="right muted nowrap" title={createdAt === undefined ? "" : dateOf(createdAt)}>
        {createdAt === undefined ? "" : since(createdAt, now)}
      </span>
    </div>
  );
}
