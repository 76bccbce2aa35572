/**
 * What a task waits for and what waits for it, part by part: there may be ten thousand of them.
 */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { TaskView as Task, TaskLink, TaskLinks } from "../../protocol/generated/index.ts";
import { useCall } from "../data/use-call.ts";
import { count } from "../data/words.ts";
import { Failure, Missing, Panel, State, TaskName } from "../parts/pieces.tsx";

const SHOWN_MAX = 50;
const KINDS = { parent: "parent", need: "needs", child: "child", dependent: "waits for it" } as const;

export function Ties({ task: { taskId: id, state } }: { task: Task }): JSX.Element | null {
  const [upSkip, setUpSkip] = useState(0);
  const [downSkip, setDownSkip] = useState(0);
  const query = { limit: SHOWN_MAX, upSkip, downSkip };
  const { data, error } = useCall("links", state === "rejected" ? null : { params: { id }, query }, { everyMs: 2000 });
  // Until the next part has come, the last one stays.
  const last = useRef<TaskLinks | null>(null);
  last.current = data ?? last.current;
  if (last.current === null)
    return error === null ? null : (
      <Panel title="Dependencies">
        <Missing error={error} />
      </Panel>
    );
  const { up, down, upTotal, downTotal } = last.current;
  if (upTotal + downTotal === 0) return null;
  return (
    <Panel title="Dependencies" actions={<span class="small">{`${count(upTotal)} up, ${count(downTotal)} down`}</span>}>
      <Failure error={error} />
      <Tied title="Waits for" links={up} total={upTotal} skip={upSkip} go={setUpSkip} />
      <Tied title="Waited for by" links={down} total={downTotal} skip={downSkip} go={setDownSkip} />
    </Panel>
  );
}

function Tied({
  title,
  links,
  total,
  skip,
  go,
}: {
  title: string;
  links: readonly TaskLink[];
  total: number;
  skip: number;
  go: (skip: number) => void;
}): JSX.Element | null {
  if (total === 0) return null;
  return (
    <div class="tied-part">
      <p class="small muted tied-title">
        {title}
        {total <= SHOWN_MAX && skip === 0 ? null : (
          <span class="actions">
            <button
              type="button"
              class="button is-small"
              aria-label={`${title}: before these`}
              disabled={skip === 0}
              onClick={() => go(Math.max(0, skip - SHOWN_MAX))}
            >
              ←
            </button>
            {count(Math.min(total, skip + 1))}–{count(Math.min(total, skip + SHOWN_MAX))} of {count(total)}
            <button
              type="button"
              class="button is-small"
              aria-label={`${title}: behind these`}
              disabled={skip + SHOWN_MAX >= total}
              onClick={() => go(skip + SHOWN_MAX)}
            >
              →
            </button>
          </span>
        )}
      </p>
      <ul class="tied">
        {links.map(({ taskId, state, kind }) => (
          <li key={kind + taskId}>
            <State state={state} />
            <span class="clip">
              <TaskName id={taskId} />
            </span>
            <span class="faint small">{KINDS[kind]}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
