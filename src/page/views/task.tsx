/**
 * One task: where it stands and why, its story with reasons, its attempts, what it wrote, what it is tied to, what it
 * cost.
 */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import type { EventJson, TaskView as Task, TaskLink, TaskLinks } from "../../protocol/generated/index.ts";
import { told } from "../data/event-words.ts";
import { to } from "../data/links.ts";
import { attemptsIn, type TaskEvents, useTaskEvents } from "../data/task-events.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { ago, bytes, count, dateOf, money, plural, span, timeOf, tokensOf } from "../data/words.ts";
import { Answers, isAsking } from "../parts/approvals.tsx";
import { Empty, Failure, Loaded, Name, Panel, State, TableBox, TaskName, View } from "../parts/pieces.tsx";
import { cancelAll, retry } from "../parts/task-acts.ts";
import { WhyPanel } from "./why.tsx";

const ENDED = new Set(["done", "failed", "cancelled", "skipped", "rejected"]);

export function TaskView(): JSX.Element {
  const { params } = useRoute();
  const id = params.id ?? "";
  const task = useCall("task", { params: { id } });
  const events = useTaskEvents(id, task.data?.createdAt);
  const { data } = task;
  return (
    <View
      title={<bdi class="mono">{id}</bdi>}
      note={data === null ? undefined : <State state={data.state} />}
      actions={data === null ? undefined : <Acts task={data} />}
    >
      {data === null && task.error !== null ? (
        <p>
          <a href={to.tasks()}>All tasks</a>
        </p>
      ) : null}
      <Loaded from={task}>
        {(found) => (
          <>
            {isAsking(found) ? (
              <div class="question">
                <bdi>{found.approval?.question ?? "Somebody must approve it."}</bdi>
                <Answers task={found} />
              </div>
            ) : null}
            {found.error === undefined ? null : (
              <p class="failure">
                <bdi>{found.error}</bdi>
              </p>
            )}
            <div class="task-grid">
              <div class="column">
                {found.state === "rejected" ? null : (
                  <WhyPanel id={id} events={events.events} isOver={ENDED.has(found.state)} />
                )}
                <Story events={events} />
                <Log id={id} task={found} />
                <Bodies task={found} />
              </div>
              <div class="column">
                <Facts task={found} />
                <Attempts task={found} events={events.events} />
                <Ties id={id} task={found} />
              </div>
            </div>
          </>
        )}
      </Loaded>
    </View>
  );
}

function Acts({ task }: { task: Task }): JSX.Element | null {
  const { mayAct } = useRights();
  const { taskId, state, group, children } = task;
  return (
    <>
      {children === undefined && task.parent === undefined ? null : (
        <a class="button" href={to.graph("tree", task.parent === undefined ? taskId : (task.parent ?? taskId))}>
          Tree
        </a>
      )}
      {group === undefined ? null : (
        <a class="button" href={to.graph("group", group)}>
          Batch
        </a>
      )}
      {mayAct && ["failed", "cancelled", "skipped"].includes(state) ? (
        <button type="button" class="button is-main" onClick={() => retry(taskId)}>
          Retry
        </button>
      ) : null}
      {mayAct && !ENDED.has(state) ? (
        <button type="button" class="button is-danger" onClick={() => cancelAll([task])}>
          Cancel
        </button>
      ) : null}
    </>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

const filtered = (key: string, value: string | undefined): JSX.Element | string =>
  value === undefined ? (
    "–"
  ) : (
    <a href={to.tasks({ [key]: value })}>
      <Name>{value}</Name>
    </a>
  );

function Facts({ task }: { task: Task }): JSX.Element {
  const now = useNow();
  const { labels = {}, usage, resources, capabilities = [], locks = [], progress } = task;
  const started = task.startedAt;
  return (
    <Panel title="Facts">
      <dl class="facts">
        <Fact name="Action">
          <Name>{task.action ?? "–"}</Name>
        </Fact>
        <Fact name="Project">{filtered("project", task.project)}</Fact>
        <Fact name="Agent">{filtered("agentId", task.agentId)}</Fact>
        {task.type === undefined ? null : <Fact name="Type">{filtered("type", task.type)}</Fact>}
        <Fact name="Priority">
          {String(task.priority ?? 0)}
          {task.score === undefined ? null : <span class="muted"> · score {Number(task.score.toFixed(1))}</span>}
        </Fact>
        {task.position === undefined ? null : <Fact name="Position">{count(task.position)}</Fact>}
        <Fact name="Submitted">
          {task.createdAt === undefined ? "–" : <span title={dateOf(task.createdAt)}>{ago(task.createdAt, now)}</span>}
        </Fact>
        {started === undefined ? null : (
          <Fact name="Started">
            <span title={dateOf(started)}>
              {timeOf(started)}
              {task.completedAt === undefined ? ` · runs for ${span(now - Date.parse(started))}` : ""}
            </span>
          </Fact>
        )}
        {task.completedAt === undefined ? null : (
          <Fact name="Ended">
            <span title={dateOf(task.completedAt)}>
              {timeOf(task.completedAt)} · after {span(task.latencyMs ?? 0)}
            </span>
          </Fact>
        )}
        {task.deadline === undefined ? null : <Fact name="Deadline">{dateOf(task.deadline)}</Fact>}
        {task.notBefore === undefined ? null : <Fact name="Not before">{dateOf(task.notBefore)}</Fact>}
        {task.worker === undefined ? null : (
          <Fact name="Worker">
            <a href={to.workers}>
              <Name>{task.worker}</Name>
            </a>
          </Fact>
        )}
        {task.branch === undefined ? null : (
          <Fact name="Branch">
            <code>{task.branch}</code>
          </Fact>
        )}
        {resources === undefined ? null : <Fact name="Needs">{resourceWords(resources)}</Fact>}
        {capabilities.length + locks.length === 0 ? null : (
          <Fact name="Wants">
            <span class="tags">
              {[...capabilities, ...locks.map((lock) => `lock ${lock}`)].map((one) => (
                <span key={one} class="tag">
                  {one}
                </span>
              ))}
            </span>
          </Fact>
        )}
        {Object.keys(labels).length === 0 ? null : (
          <Fact name="Labels">
            <span class="tags">
              {Object.entries(labels).map(([key, value]) => (
                <a key={key} class="tag" href={to.tasks({ label: `${key}=${value}` })}>
                  {key}={value}
                </a>
              ))}
            </span>
          </Fact>
        )}
        {usage === undefined ? null : (
          <Fact name="Cost">
            {count(tokensOf(usage))} tokens
            {usage.cost === undefined ? "" : ` · ${money(usage.cost)}`}
          </Fact>
        )}
        {progress === undefined ? null : (
          <Fact name="Progress">
            <code>{JSON.stringify(progress)}</code>
          </Fact>
        )}
      </dl>
    </Panel>
  );
}

const resourceWords = ({ cpuMillicores, memoryBytes }: NonNullable<Task["resources"]>): string =>
  [
    ...(cpuMillicores === undefined ? [] : [`${cpuMillicores / 1000} cores`]),
    ...(memoryBytes === undefined ? [] : [bytes(memoryBytes)]),
  ].join(", ");

function Story({ events: { events, error, isWhole } }: { events: TaskEvents }): JSX.Element {
  return (
    <Panel title="Story" actions={<span class="small">{plural(events.length, "event")}</span>}>
      <Failure error={error} />
      {events.length === 0 ? (
        <Empty>{isWhole ? "Its events are no longer in the log." : "Reading the log…"}</Empty>
      ) : (
        <ol class="story">
          {events.map((event, index) => (
            <StoryLine key={event.seq} event={event} before={events[index - 1]} />
          ))}
        </ol>
      )}
    </Panel>
  );
}

function StoryLine({ event, before }: { event: EventJson; before: EventJson | undefined }): JSX.Element {
  const { text, tone } = told(event);
  const since = before === undefined ? 0 : Date.parse(event.at) - Date.parse(before.at);
  return (
    <li class={`is-${tone}`}>
      <time class="muted" datetime={event.at} title={`event ${event.seq}, ${dateOf(event.at)}`}>
        {timeOf(event.at)}
      </time>
      <bdi>{text}</bdi>
      <span class="faint small right nowrap">{since < 1 ? "" : `+${span(since)}`}</span>
    </li>
  );
}

function Attempts({ task, events }: { task: Task; events: readonly EventJson[] }): JSX.Element | null {
  const now = useNow();
  const attempts = attemptsIn(events);
  if (attempts.length === 0) return null;
  const used = new Map((task.attempts ?? []).map(({ attempt, usage }) => [attempt, usage]));
  return (
    <Panel title="Attempts" isFlush>
      <TableBox label="Attempts">
        <table class="table">
          <thead>
            <tr>
              <th class="number">#</th>
              <th>Worker</th>
              <th>Outcome</th>
              <th class="number">Took</th>
              <th class="number">Tokens</th>
            </tr>
          </thead>
          <tbody>
            {attempts.map(({ number, worker, startedAt, endedAt, outcome }) => (
              <tr key={number}>
                <td class="number">{number}</td>
                <td>
                  <Name>{worker}</Name>
                </td>
                <td>
                  <span class={`badge is-${outcome === "lost" ? "failed" : outcome}`}>{outcome}</span>
                </td>
                <td class="number">
                  {span((endedAt === undefined ? now : Date.parse(endedAt)) - Date.parse(startedAt))}
                </td>
                <td class="number">{used.has(number) ? count(tokensOf(used.get(number))) : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableBox>
    </Panel>
  );
}

/** Workers that run commands keep what these write; others have nothing to show, so it is asked for on demand. */
function Log({ id, task }: { id: string; task: Task }): JSX.Element | null {
  const [isWanted, setWanted] = useState(task.action === "exec");
  const isAsked = isWanted && task.attempt > 0;
  const logs = useCall("logs", isAsked ? { params: { id }, query: { tail: 500 } } : null, {
    everyMs: 2000,
    agesMs: ENDED.has(task.state) ? undefined : 2000,
  });
  if (task.attempt === 0) return null;
  if (!isWanted)
    return (
      <p>
        <button type="button" class="button" onClick={() => setWanted(true)}>
          Show what it wrote
        </button>
      </p>
    );
  return (
    <Panel
      title="Output"
      actions={
        <span class="small">
          {logs.data === null ? "" : `attempt ${logs.data.attempt}${logs.data.truncated ? ", its end" : ""}`}
        </span>
      }
    >
      <Loaded from={logs}>
        {({ text }) => (text === "" ? <Empty>Nothing was written yet.</Empty> : <Tail text={text} />)}
      </Loaded>
    </Panel>
  );
}

/** The end of a text stays in sight as it grows, unless somebody has scrolled up. */
function Tail({ text }: { text: string }): JSX.Element {
  const keep = (box: HTMLPreElement | null): void => {
    if (box === null) return;
    const isAtEnd = box.dataset.isRead !== "true";
    if (isAtEnd) box.scrollTop = box.scrollHeight;
  };
  return (
    <pre
      class="block"
      ref={keep}
      tabIndex={0}
      onScroll={({ currentTarget: box }) => {
        box.dataset.isRead = String(box.scrollTop + box.clientHeight < box.scrollHeight - 20);
      }}
    >
      {text}
    </pre>
  );
}

const KINDS = { parent: "parent", need: "needs", child: "child", dependent: "waits for it" } as const;

function Ties({ id, task }: { id: string; task: Task }): JSX.Element | null {
  const links = useCall("links", task.state === "rejected" ? null : { params: { id } }, { everyMs: 2000 });
  if (links.data === null || links.data.up.length + links.data.down.length === 0) return null;
  const { up, down }: TaskLinks = links.data;
  return (
    <Panel title="Dependencies" actions={<span class="small">{`${up.length} up, ${down.length} down`}</span>}>
      <Tied title="Waits for" links={up} />
      <Tied title="Waited for by" links={down} />
    </Panel>
  );
}

function Tied({ title, links }: { title: string; links: readonly TaskLink[] }): JSX.Element | null {
  if (links.length === 0) return null;
  return (
    <>
      <p class="small muted tied-title">{title}</p>
      <ul class="tied">
        {links.slice(0, 100).map(({ taskId, state, kind }) => (
          <li key={kind + taskId}>
            <State state={state} />
            <span class="clip">
              <TaskName id={taskId} />
            </span>
            <span class="faint small">{KINDS[kind]}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function Bodies({ task }: { task: Task }): JSX.Element {
  const { params, payload, result, files = [] } = task;
  const blocks: readonly (readonly [string, unknown])[] = [
    ["Params", params],
    ["Payload", payload],
    ["Result", result],
  ];
  return (
    <>
      {blocks.map(([title, value]) =>
        value === undefined ? null : (
          <Panel key={title} title={title}>
            <pre class="block" tabIndex={0}>
              {typeof value === "string" ? value : JSON.stringify(value, null, 2)}
            </pre>
          </Panel>
        ),
      )}
      {files.length === 0 ? null : (
        <Panel title="Files" isFlush>
          <table class="table">
            <tbody>
              {files.map(({ path, size }) => (
                <tr key={path}>
                  <td class="mono">{path}</td>
                  <td class="number muted">{bytes(size)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Panel>
      )}
    </>
  );
}
