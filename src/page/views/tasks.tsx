/**
 * All tasks, newest first: filtered, selected, cancelled or run again in bulk.
 *
 * The filter stands in the address, so a link to what somebody sees can be shared.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { TasksQuery, TaskView } from "../../protocol/generated/index.ts";
import { TASK_STATES } from "../../protocol/wire/index.ts";
import { to } from "../data/links.ts";
import { ALL_MAX, type TaskList, useTaskPages } from "../data/task-pages.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { brief, count, dateOf, plural, since, tokensOf, took } from "../data/words.ts";
import { isAsking } from "../parts/approvals.tsx";
import { Empty, Failure, Name, State, TaskName, View } from "../parts/pieces.tsx";
import { cancelAll, quietly, retryAll, type Stayed } from "../parts/task-acts.ts";
import { Rows } from "../parts/virtual.tsx";
import { SubmitForm } from "./submit.tsx";

const ROW_HEIGHT = 36;
const TYPED_MS = 250;
/** So far down is a row looked for that has moved. */
const MOVED_MAX = 400;
const toTop = (): void => document.querySelector(".rows")?.scrollTo({ top: 0 });
const FIELDS = ["state", "asking", "project", "agentId", "type", "label", "q"] as const;
/** What is selected, by its id; of one that is out of sight as it was last seen. */
type Chosen = ReadonlyMap<string, TaskView>;
const NONE: Chosen = new Map();
const chosenOf = (tasks: readonly TaskView[]): Chosen => new Map(tasks.map((task) => [task.taskId, task]));
/** Changes what is selected, from what it is by then. */
type Choose = (change: (now: Chosen) => Chosen) => void;
const none = (): Chosen => NONE;
type Filter = Partial<Record<(typeof FIELDS)[number], string>>;

const filterOf = (query: Readonly<Record<string, string>>): Filter =>
  Object.fromEntries(FIELDS.flatMap((key) => (query[key] ? [[key, query[key]]] : [])));
/** As the address says at this moment: what is shown may be a moment behind. */
const filterNow = (): Filter => filterOf(Object.fromEntries(new URLSearchParams(location.search)));

export function Tasks(): JSX.Element {
  const { query, route } = useLocation();
  const { mayAct } = useRights();
  const filter = filterOf(query);
  const list = useTaskPages(queryOf(filter));
  const [chosen, choose] = useChosen(JSON.stringify(filter));
  const [isSubmitting, setSubmitting] = useState(false);
  const change = (next: Filter): void => route(to.tasks({ ...filterNow(), ...next }), true);
  const isFiltered = Object.keys(filter).length > 0;
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
        <Selection chosen={chosen} isFiltered={isFiltered} choose={choose} list={list} />
        <Heads list={list} chosen={chosen} choose={mayAct ? choose : null} />
        <List list={list} chosen={chosen} choose={choose} isFiltered={isFiltered} mayAct={mayAct} />
      </section>
    </View>
  );
}

/** What is selected under a filter. It is no part of what another one shows, nor is what is read for it too late. */
function useChosen(key: string): [Chosen, Choose] {
  const [chosen, setChosen] = useState<Chosen>(NONE);
  const shown = useRef(key);
  shown.current = key;
  useEffect(() => setChosen(NONE), [key]);
  return [chosen, (change) => (shown.current === key ? setChosen(change) : undefined)];
}

function queryOf({ state, asking, ...rest }: Filter): TasksQuery {
  const states = state === undefined ? {} : { state: state.split(",") };
  return { ...rest, ...states, ...(asking === undefined ? {} : { asking: asking === "true" }) } as TasksQuery;
}

type Changing = { readonly filter: Filter; readonly change: (next: Filter) => void };

function Chips({ filter, change }: Changing): JSX.Element {
  const states = new Set((filter.state ?? "").split(",").filter(Boolean));
  const isAsked = filter.asking === "true";
  const turn = (state: string): void => {
    const next = new Set(states);
    if (!next.delete(state)) next.add(state);
    change({ state: [...next].join(",") });
  };
  return (
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
      <button
        type="button"
        class="chip is-parked"
        title="Waits for somebody's word"
        aria-pressed={isAsked}
        onClick={() => change({ asking: isAsked ? "" : "true" })}
      >
        asks
      </button>
    </div>
  );
}

function Filters({ filter, change }: Changing): JSX.Element {
  const projects = useCall("projects", {}, { everyMs: 10_000 });
  return (
    <div class="filters">
      <Chips filter={filter} change={change} />
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
  choose,
  list,
}: {
  chosen: Chosen;
  isFiltered: boolean;
  choose: Choose;
  list: TaskList;
}): JSX.Element {
  const seen = chosen.size === 0 ? NONE : chosenOf(list.known());
  const all = [...chosen].map(([id, task]) => seen.get(id) ?? task);
  const open = all.filter((task) => !isOver(task));
  const again = all.filter(mayRetry);
  /** What was not done stays selected. */
  const keep = (stayed: Stayed | null): void => {
    if (stayed !== null) choose((now) => new Map([...now].filter(([id]) => stayed.has(id))));
  };
  return (
    <header>
      {chosen.size === 0 ? (
        <span class="muted" role="status">
          {list.isLoading
            ? "Loading…"
            : list.isUnknown
              ? "Not known"
              : `${plural(list.length, "task")}${isFiltered ? (list.length === 1 ? " matches" : " match") : ""}`}
        </span>
      ) : (
        <>
          <strong>{plural(chosen.size, "task")} selected</strong>
          <span class="actions">
            <button
              type="button"
              class="button is-small is-danger"
              disabled={open.length === 0}
              onClick={() => cancelAll(open).then(keep)}
            >
              Cancel {open.length}
            </button>
            <button
              type="button"
              class="button is-small"
              disabled={again.length === 0}
              onClick={() => retryAll(again).then(keep)}
            >
              Retry {again.length}
            </button>
            <button type="button" class="button is-small is-plain" onClick={() => choose(none)}>
              Clear the selection
            </button>
          </span>
        </>
      )}
      {list.hasNews && chosen.size === 0 ? (
        <span class="actions">
          <button type="button" class="button is-small" onClick={toTop}>
            Show new tasks
          </button>
        </span>
      ) : null}
    </header>
  );
}

const COLUMNS = ["Task", "State", "Action", "Project", "Agent", "Type", "Tokens", "Took", "Age"];

const NUMBERS: ReadonlySet<string> = new Set(["Tokens", "Took", "Age"]);

function Heads({ list, chosen, choose }: { list: TaskList; chosen: Chosen; choose: Choose | null }): JSX.Element {
  const most = Math.min(list.length, ALL_MAX);
  const isAll = most > 0 && chosen.size >= most;
  const name = list.length > ALL_MAX ? `Select the newest ${count(ALL_MAX)}` : "Select all";
  const turn = async (): Promise<void> => {
    if (choose === null) return;
    if (isAll) return choose(none);
    await quietly(async () => {
      const all = chosenOf(await list.read(0, most - 1));
      choose(() => all);
    });
  };
  return (
    <div class="task-row task-heads">
      <span>
        {choose === null || list.length === 0 ? null : (
          <input
            type="checkbox"
            aria-label={name}
            title={name}
            checked={isAll}
            indeterminate={!isAll && chosen.size > 0}
            onChange={turn}
          />
        )}
      </span>
      {COLUMNS.map((title) => (
        <span key={title} class={NUMBERS.has(title) ? "right" : ""} aria-hidden="true">
          {title}
        </span>
      ))}
    </div>
  );
}

function List({
  list,
  chosen,
  choose,
  isFiltered,
  mayAct,
}: {
  list: TaskList;
  chosen: Chosen;
  choose: Choose;
  isFiltered: boolean;
  mayAct: boolean;
}): JSX.Element {
  const now = useNow(5000);
  const turned = useRef<{ readonly id: string; readonly row: number } | null>(null);
  if (list.length === 0)
    return list.isLoading ? (
      <p class="loading">Loading…</p>
    ) : list.isUnknown ? (
      <Empty>What tasks there are is not known until the server answers.</Empty>
    ) : isFiltered ? (
      <Empty hint="Ended tasks are listed for a while, and found by their id for longer.">No task matches.</Empty>
    ) : (
      <Empty
        hint={
          <>
            Or on the command line: <code>drover submit --command 'echo hello'</code>
          </>
        }
      >
        No task yet. Submit one.
      </Empty>
    );
  /** With Shift all from the one that was turned last, as that one is now. */
  const turn = async (row: number, { taskId }: TaskView, isRange: boolean): Promise<void> => {
    const last = isRange ? turned.current : null;
    const from = last === null ? row : rowOf(list, last);
    const isOn = last === null ? !chosen.has(taskId) : chosen.has(last.id);
    turned.current = { id: taskId, row };
    const between = chosenOf(await list.read(Math.min(from, row), Math.max(from, row)));
    choose((now) => new Map(isOn ? [...now, ...between] : [...now].filter(([id]) => !between.has(id))));
  };
  return (
    <Rows label="Tasks" length={list.length} rowHeight={ROW_HEIGHT} onSeen={({ first, last }) => list.see(first, last)}>
      {(row) => {
        const task = list.at(row);
        return task === undefined ? (
          <div class="task-row">
            <span />
            <span class="faint">…</span>
          </div>
        ) : (
          <Row
            task={task}
            now={now}
            isChosen={chosen.has(task.taskId)}
            onTurn={mayAct ? (isRange) => quietly(() => turn(row, task, isRange)) : null}
          />
        );
      }}
    </Rows>
  );
}

/** Where a task is now that was in a row: others may have come in above it. */
function rowOf(list: TaskList, { id, row }: { readonly id: string; readonly row: number }): number {
  for (let at = row; at < Math.min(list.length, row + MOVED_MAX); at++) if (list.at(at)?.taskId === id) return at;
  return row;
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
  onTurn: ((isRange: boolean) => void) | null;
}): JSX.Element {
  const { taskId, state, action = "", project = "", agentId = "", type = "", error } = task;
  const { createdAt, startedAt, completedAt } = task;
  const note = isAsking(task) ? (task.approval?.question ?? "Somebody must approve it.") : error;
  const tokens = tokensOf(task.usage);
  return (
    <div class="task-row">
      <span role="cell">
        {onTurn === null ? null : (
          <input
            type="checkbox"
            aria-label={`Select ${taskId}`}
            checked={isChosen}
            onClick={(event) => onTurn(event.shiftKey)}
          />
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
        {note === undefined ? null : (
          <span class={state === "parked" ? "warn" : "bad"}>
            {" · "}
            <Name>{note}</Name>
          </span>
        )}
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
        {startedAt === undefined ? "" : took(startedAt, completedAt, now)}
      </span>
      <span role="cell" class="right muted nowrap" title={createdAt === undefined ? "" : dateOf(createdAt)}>
        {createdAt === undefined ? "" : since(createdAt, now)}
      </span>
    </div>
  );
}
