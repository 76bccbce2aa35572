/**
 * One task: where it stands and why, its story with reasons, its attempts, what it wrote, what it is tied to, what it
 * cost.
 */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso";
import type { EventJson, TaskView as Task } from "../../protocol/generated/index.ts";
import { givenBackIn, told } from "../data/event-words.ts";
import { to } from "../data/links.ts";
import { type TaskEvents, useTaskEvents } from "../data/task-events.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { ago, bytes, count, dateOf, money, plural, span, timeOf, tokensOf } from "../data/words.ts";
import { Answers, isAsking } from "../parts/approvals.tsx";
import { Empty, Failure, Loaded, Name, Panel, State, View } from "../parts/pieces.tsx";
import { cancelAll, retry } from "../parts/task-acts.ts";
import { Attempts, Output } from "./task-attempts.tsx";
import { Ties } from "./task-links.tsx";
import { type Moment, WhyPanel } from "./why.tsx";

const ENDED = new Set(["done", "failed", "cancelled", "skipped", "rejected"]);

export function TaskView(): JSX.Element {
  const { params } = useRoute();
  const { query } = useLocation();
  const isChosen = query.attempt !== undefined;
  const id = params.id ?? "";
  const task = useCall("task", { params: { id } });
  const events = useTaskEvents(id, task.data?.createdAt);
  const [moment, setMoment] = useState<Moment | null>(null);
  useEffect(() => setMoment(null), [id]);
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
            {found.error === undefined || found.state !== "rejected" ? null : (
              <p class="failure">
                <bdi>{found.error}</bdi>
              </p>
            )}
            <div class="task-grid">
              <div class="column">
                {found.state === "rejected" ? null : (
                  <WhyPanel
                    key={id}
                    id={id}
                    events={events.events}
                    isOver={ENDED.has(found.state)}
                    error={found.error}
                    moment={moment}
                    setMoment={setMoment}
                  />
                )}
                <Story events={events} moment={moment} setMoment={setMoment} />
                <Output key={id} task={found} attempt={attemptOf(query.attempt, found.attempt)} isChosen={isChosen} />
                <Bodies task={found} />
              </div>
              <div class="column">
                <Facts task={found} />
                <Attempts
                  task={found}
                  events={events}
                  shown={isChosen ? attemptOf(query.attempt, found.attempt) : null}
                />
                <Ties key={id} task={found} />
              </div>
            </div>
          </>
        )}
      </Loaded>
    </View>
  );
}

/** Which attempt the address names; else the last one. */
function attemptOf(text: string | undefined, last: number): number {
  const number = Number(text ?? last);
  return Number.isInteger(number) && number > 0 && number < last ? number : last;
}

function Acts({ task }: { task: Task }): JSX.Element | null {
  const { mayAct } = useRights();
  const { taskId, state, group, children } = task;
  return (
    <>
      {children === undefined && task.parent === undefined ? null : (
        <a class="button" href={to.graph("tree", task.parent ?? taskId)}>
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
              {timeOf(task.completedAt)}
              {task.createdAt === undefined || task.state === "rejected"
                ? ""
                : ` · after ${span(Date.parse(task.completedAt) - Date.parse(task.createdAt))}`}
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
            <code>
              <Name>{task.branch}</Name>
            </code>
          </Fact>
        )}
        {resources === undefined ? null : <Fact name="Needs">{resourceWords(resources)}</Fact>}
        {capabilities.length + locks.length === 0 ? null : (
          <Fact name="Wants">
            <span class="tags">
              {[...capabilities, ...locks.map((lock) => `lock ${lock}`)].map((one) => (
                <span key={one} class="tag">
                  <Name>{one}</Name>
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
                  <Name>{key}</Name>=<Name>{value}</Name>
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
            <code>
              <Name>{JSON.stringify(progress)}</Name>
            </code>
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

function Story({
  events: { events, error, isWhole },
  moment,
  setMoment,
}: {
  events: TaskEvents;
  moment: Moment | null;
  setMoment: (moment: Moment) => void;
}): JSX.Element {
  const givenBack = givenBackIn(events);
  const choose = ({ at, seq }: EventJson): void => {
    setMoment({ at: Date.parse(at), seq });
    document.querySelector(".why")?.scrollIntoView({ block: "nearest" });
  };
  return (
    <Panel title="Story" actions={<span class="small">{plural(events.length, "event")}</span>}>
      <Failure error={error} />
      {events.length === 0 ? (
        <Empty>{isWhole ? "Its events are no longer in the log." : "Reading the log…"}</Empty>
      ) : (
        <ol class="story">
          {events.map((event, index) => (
            <StoryLine
              key={event.seq}
              event={event}
              before={events[index - 1]}
              givenBack={givenBack}
              isChosen={moment?.seq === event.seq}
              onChoose={() => choose(event)}
            />
          ))}
        </ol>
      )}
    </Panel>
  );
}

function StoryLine({
  event,
  before,
  givenBack,
  isChosen,
  onChoose,
}: {
  event: EventJson;
  before: EventJson | undefined;
  givenBack: ReadonlySet<string>;
  isChosen: boolean;
  onChoose: () => void;
}): JSX.Element {
  const { text, tone } = told(event, givenBack);
  const since = before === undefined ? 0 : Date.parse(event.at) - Date.parse(before.at);
  return (
    <li class={`is-${tone}`}>
      <time class="muted" datetime={event.at} title={`event ${event.seq}, ${dateOf(event.at)}`}>
        {timeOf(event.at)}
      </time>
      <button type="button" class="story-text" aria-pressed={isChosen} title="Why at that moment" onClick={onChoose}>
        <bdi>{text}</bdi>
      </button>
      <span class="faint small right nowrap">{since < 1 ? "" : `+${span(since)}`}</span>
    </li>
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
                  <td class="mono">
                    <Name>{path}</Name>
                  </td>
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
