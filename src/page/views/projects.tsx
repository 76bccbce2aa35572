/**
 * Projects: what each gets against what its weight entitles it to, its budget, and its weight, to be changed with a
 * preview of what that does to the others.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { History, ProjectView } from "../../protocol/generated/index.ts";
import { RUNS_OUT } from "../../protocol/wire/index.ts";
import { ask } from "../data/ask.ts";
import { doing } from "../data/say.ts";
import { type Called, useCall } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { brief, count, percent, tokensOf } from "../data/words.ts";
import type { Line } from "../parts/chart.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { later } from "../parts/later.tsx";
import {
  Empty,
  fillTone,
  Loaded,
  Meter,
  Missing,
  MoreIn,
  Name,
  Panel,
  ProjectName,
  State,
  TableBox,
  View,
} from "../parts/pieces.tsx";

const Chart = later(() => import("../parts/chart.tsx"));
const COLORS = ["running", "done", "queued", "parked", "assigned", "failed", "skipped", "waiting"];

export default function Projects(): JSX.Element {
  const projects = useCall("projects", {}, { agesMs: 5000 });
  const history = useCall("history", { query: { step: 30_000 } }, { everyMs: 10_000, agesMs: 30_000 });
  const [edited, setEdited] = useState<string | null>(null);
  const all = projects.data?.projects ?? [];
  const project = all.find(({ id }) => id === edited);
  return (
    <View title="Projects">
      {project === undefined ? null : <Weight project={project} all={all} onClose={() => setEdited(null)} />}
      <Panel isFlush>
        <Loaded from={projects}>
          {() =>
            all.length === 0 ? (
              <Empty hint="The first task of a project makes it, or PUT /projects/ID.">No project yet.</Empty>
            ) : (
              <Table all={all} onEdit={setEdited} />
            )
          }
        </Loaded>
      </Panel>
      <div class="grid is-wide">
        <SharesOverTime history={history} />
        <Budgets history={history} projects={projects} />
      </div>
    </View>
  );
}

function Table({ all, onEdit }: { all: readonly ProjectView[]; onEdit: (id: string) => void }): JSX.Element {
  const { mayManage } = useRights();
  return (
    <TableBox label="Projects">
      <table class="table is-cards">
        <thead>
          <tr>
            <th>Project</th>
            <th class="number">Weight</th>
            <th>Share against target</th>
            <th class="number">Runs</th>
            <th class="number">Waits</th>
            <th>Budget</th>
            <th class="number">Tokens</th>
            <th>
              <span class="for-readers">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {all.map((project) => (
            <ProjectRow key={project.id} project={project} onEdit={mayManage ? onEdit : null} />
          ))}
        </tbody>
      </table>
    </TableBox>
  );
}

function ProjectRow({ project, onEdit }: { project: ProjectView; onEdit: ((id: string) => void) | null }): JSX.Element {
  const {
    id,
    status,
    weight,
    share,
    target,
    inFlight,
    maxConcurrent,
    queued,
    usage,
    budget,
    spent,
    reserved,
    freesAt,
  } = project;
  const part = budget.limit === null ? 0 : (spent + reserved) / budget.limit;
  const isPaused = status === "paused";
  const turn = (): Promise<boolean> =>
    doing(
      () => ask(isPaused ? "resume" : "pause", { body: { project: id } }),
      `${id} ${isPaused ? "goes on" : "is paused"}.`,
    );
  return (
    <tr>
      <td class="name">
        <ProjectName id={id} />
        {isPaused ? <State state="paused" /> : null}
      </td>
      <td class="number" data-is="Weight">
        {weight}
      </td>
      <td data-is="Share">
        <Meter part={share} mark={target} label={`Share of ${id}`} text={`${percent(share)} of ${percent(target)}`} />
      </td>
      <td class="number" data-is="Runs">
        {count(inFlight)}{" "}
        <span class="faint">
          {inFlight > maxConcurrent ? "limit" : "of"} {count(maxConcurrent)}
        </span>
      </td>
      <td class="number" data-is="Waits">
        {count(queued)}
      </td>
      <td data-is="Budget">
        {budget.limit === null ? (
          <span class="faint">no limit</span>
        ) : (
          <Meter
            part={part}
            tone={fillTone(part, "good")}
            label={`Budget of ${id}`}
            text={`${brief(spent + reserved)} of ${brief(budget.limit)}`}
          />
        )}
        {freesAt === undefined || part < RUNS_OUT ? null : <MoreIn at={freesAt} />}
      </td>
      <td class="number" data-is="Tokens">
        {usage === undefined ? "" : brief(tokensOf(usage))}
      </td>
      <td>
        {onEdit === null ? null : (
          <span class="actions plan-acts">
            <button type="button" class="button is-small" onClick={() => onEdit(id)}>
              Weight
            </button>
            <button type="button" class="button is-small" onClick={turn}>
              {isPaused ? "Resume" : "Pause"}
            </button>
          </span>
        )}
      </td>
    </tr>
  );
}

function Weight({
  project,
  all,
  onClose,
}: {
  project: ProjectView;
  all: readonly ProjectView[];
  onClose: () => void;
}): JSX.Element {
  const [text, setText] = useState(String(project.weight));
  const weight = Number(text);
  const isRight = weight > 0 && weight <= 1_000_000;
  const weightOf = (one: ProjectView): number => (one.id === project.id && isRight ? weight : one.weight);
  const sum = all.reduce((total, one) => total + weightOf(one), 0);
  async function save(): Promise<void> {
    const isDone = await doing(
      () => ask("putProject", { params: { id: project.id }, body: { weight } }),
      `${project.id} has weight ${weight}.`,
    );
    if (isDone) onClose();
  }
  return (
    <Dialog label={`Weight of ${project.id}`} onClose={onClose} onSubmit={() => isRight && void save()}>
      <h1>
        Weight of <Name>{project.id}</Name>
      </h1>
      <label class="field">
        <span>Weight</span>
        <input
          class="input"
          name="weight"
          type="number"
          min="0.001"
          max="1000000"
          step="any"
          required
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <span class="hint">Its share among the projects that have work. Others' targets move with it:</span>
      </label>
      <ul class="lines preview">
        {all.slice(0, 12).map((one) => (
          <li key={one.id}>
            <span class="clip">
              <Name>{one.id}</Name>
            </span>
            <Meter
              part={weightOf(one) / sum}
              mark={one.target}
              label={`Target of ${one.id}`}
              text={percent(weightOf(one) / sum)}
            />
            <span class="small muted right nowrap">now {percent(one.target)}</span>
          </li>
        ))}
      </ul>
      <footer>
        <button type="button" class="button" onClick={onClose}>
          Close
        </button>
        <button type="submit" class="button is-main" disabled={!isRight}>
          Change it
        </button>
      </footer>
    </Dialog>
  );
}

/** Each of these projects with its line. */
function linesOf(
  history: History,
  ids: readonly string[],
  of: (sample: History["samples"][number]["projects"][number]) => number,
): Line[] {
  return ids.map((id, index) => ({
    label: id,
    color: COLORS[index % COLORS.length] as string,
    values: history.samples.map(({ projects }) => {
      const found = projects.find((one) => one.id === id);
      return found === undefined ? null : of(found);
    }),
  }));
}

/** Of those that got most: what each got, and what its weight entitled it to. */
function shareLines(history: History): Line[] {
  const got = new Map<string, number>();
  for (const { id, share } of history.samples.flatMap(({ projects }) => projects))
    got.set(id, (got.get(id) ?? 0) + share);
  const most = [...got].sort(([, left], [, right]) => right - left).slice(0, COLORS.length);
  // By name, so that a line keeps its colour while the order changes.
  const ids = most.map(([id]) => id).sort();
  const targets = linesOf(history, ids, ({ target }) => target);
  return [
    ...linesOf(history, ids, ({ share }) => share),
    ...targets.map((line) => ({ ...line, label: `target of ${line.label}`, isDashed: true })),
  ];
}

function SharesOverTime({ history }: { history: Called<History> }): JSX.Element {
  return (
    <Panel title="Share against target" actions={<span class="small">last hour; dashed: target</span>}>
      {history.data === null ? (
        <Missing error={history.error} />
      ) : history.data.samples.length < 2 ? (
        <Empty hint="A sample is taken every ten seconds.">Nothing to draw yet.</Empty>
      ) : (
        <Chart
          label="Share of each project against its target over the last hour"
          times={history.data.samples.map(({ at }) => Date.parse(at))}
          lines={shareLines(history.data)}
          shown={percent}
        />
      )}
    </Panel>
  );
}

function Budgets({
  history,
  projects,
}: {
  history: Called<History>;
  projects: Called<{ readonly projects: readonly ProjectView[] }>;
}): JSX.Element {
  const all = (projects.data?.projects ?? []).filter(({ budget }) => budget.limit !== null);
  const limited = all.slice(0, COLORS.length);
  const limits = new Map(limited.map(({ id, budget }) => [id, budget.limit ?? 0]));
  return (
    <Panel title="Budget left" actions={<span class="small">tokens, last hour</span>}>
      {history.data === null || projects.data === null ? (
        <Missing error={history.error ?? projects.error} />
      ) : history.data.samples.length < 2 || limited.length === 0 ? (
        <Empty hint="A project with a budget shows here how it burns down.">
          {limited.length === 0 ? "No project has a budget." : "Nothing to draw yet."}
        </Empty>
      ) : (
        <Chart
          label="What is left of each budget over the last hour"
          times={history.data.samples.map(({ at }) => Date.parse(at))}
          lines={linesOf(history.data, [...limits.keys()], ({ id, spent }) =>
            Math.max(0, (limits.get(id) ?? 0) - spent),
          )}
        />
      )}
      {all.length === limited.length ? null : <p class="loading">… {count(all.length - limited.length)} more</p>}
    </Panel>
  );
}
