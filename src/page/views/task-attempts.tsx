/**
 * The attempts of a task, each with why it ended, and what one of them wrote: the last one, or that of the row which
 * somebody chose. Which one stands in the address, so a link to it can be shared.
 */
import { Fragment, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { TaskView as Task } from "../../protocol/generated/index.ts";
import { Refused } from "../data/ask.ts";
import { type AttemptStory, attemptsIn } from "../data/attempts.ts";
import { to } from "../data/links.ts";
import { toneOf } from "../data/outcomes.ts";
import type { TaskEvents } from "../data/task-events.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { count, span, steady, tokensOf } from "../data/words.ts";
import { Empty, Loaded, Name, Panel, TableBox } from "../parts/pieces.tsx";

export function Attempts({
  task,
  events: { events, isWhole },
  shown,
}: {
  task: Task;
  events: TaskEvents;
  /** Whose output somebody has asked for. */
  shown: number | null;
}): JSX.Element | null {
  const attempts = attemptsIn(events, task.attempt, isWhole ? "not known" : "…");
  if (attempts.length === 0) return null;
  return (
    <Panel title="Attempts" isFlush>
      <TableBox label="Attempts">
        <table class="table attempts">
          <thead>
            <tr>
              <th class="number">#</th>
              <th>Outcome</th>
              <th class="number">Took</th>
              <th class="number">Tokens</th>
              <th>
                <span class="for-readers">Output</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {attempts.map((attempt) => (
              <Attempt
                key={attempt.number}
                task={task}
                attempt={attempt}
                isWhole={isWhole}
                isShown={attempt.number === shown}
              />
            ))}
          </tbody>
        </table>
      </TableBox>
    </Panel>
  );
}

function Attempt({
  task,
  attempt,
  isWhole,
  isShown,
}: {
  task: Task;
  attempt: AttemptStory;
  /** All of the log has been looked through. */
  isWhole: boolean;
  isShown: boolean;
}): JSX.Element {
  const now = useNow();
  const { number, worker, startedAt, endedAt, outcome, error } = attempt;
  const usage = task.attempts?.find((one) => one.attempt === number)?.usage;
  const tokens = usage === undefined ? attempt.tokens : tokensOf(usage);
  const [word, ...more] = outcome.split(", ");
  const until = endedAt === undefined ? now : Date.parse(endedAt);
  return (
    <Fragment>
      <tr>
        <td class="number">{number}</td>
        <td>
          <span class={`badge is-${toneOf(outcome)}`}>{word}</span>
        </td>
        <td class="number nowrap">{startedAt === undefined ? "" : span(until - Date.parse(startedAt))}</td>
        <td class="number">{tokens === undefined ? "" : count(tokens)}</td>
        <td>
          <a
            class="button is-small"
            aria-label={`Output of attempt ${number}`}
            aria-current={isShown ? "true" : undefined}
            href={to.attempt(task.taskId, number)}
          >
            Output
          </a>
        </td>
      </tr>
      <tr class="attempt-more">
        <td />
        <td colSpan={4}>
          {worker !== undefined ? <Name>{worker}</Name> : isWhole ? "its worker is not in the log any more" : "…"}
          {more.map((part) => `, ${part}`).join("")}
          {error === undefined ? null : <bdi class="attempt-error">{steady(error)}</bdi>}
        </td>
      </tr>
    </Fragment>
  );
}

/** An attempt that has just begun may not have written yet; after so many looks, its worker keeps no log. */
const LOG_MISSES_MAX = 5;
const LOOK_MS = 2000;
const LINES = 500;

/** Workers that run commands keep what these write; others have nothing to show, so it is asked for on demand. */
export function Output({
  task,
  attempt,
  isChosen,
}: {
  task: Task;
  attempt: number;
  isChosen: boolean;
}): JSX.Element | null {
  const { taskId: id, attempt: last } = task;
  const box = useRef<HTMLDivElement>(null);
  const [isAsked, setAsked] = useState(task.action === "exec");
  const isWanted = (isAsked || isChosen) && last > 0;
  const isGrowing = attempt === last && task.completedAt === undefined;
  const logs = useCall("logs", isWanted ? { params: { id }, query: { tail: LINES, attempt } } : null, {
    everyMs: LOOK_MS,
    missesMax: LOG_MISSES_MAX,
    isStill: !isGrowing,
    agesMs: isGrowing ? LOOK_MS : undefined,
  });
  useEffect(() => {
    if (isChosen) box.current?.scrollIntoView({ block: "nearest" });
  }, [attempt, isChosen]);
  if (last === 0) return null;
  if (!isWanted)
    return (
      <p>
        <button type="button" class="button" onClick={() => setAsked(true)}>
          Show what it wrote
        </button>
      </p>
    );
  return (
    <div ref={box} class="output">
      <Panel
        title="Output"
        actions={
          <span class="small">
            attempt {attempt}
            {last > 1 ? ` of ${last}` : ""}
            {logs.data?.truncated === true ? ", its end" : ""}
          </span>
        }
      >
        {logs.data === null && logs.error instanceof Refused && logs.error.code === "not_found" ? (
          <Empty>{steady(logs.error.message)}</Empty>
        ) : (
          <Loaded from={logs}>
            {({ text }) =>
              text === "" ? (
                <Empty>{isGrowing ? "Nothing was written yet." : "It wrote nothing."}</Empty>
              ) : (
                <Tail key={attempt} text={text} />
              )
            }
          </Loaded>
        )}
      </Panel>
    </div>
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
