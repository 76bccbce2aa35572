/**
 * The overview: what runs, who waits, who gets how much, what is limited, and what needs a person.
 */
import type { JSX } from "preact";
import type { GateJson, History, ProjectView, Sample, WorkerView } from "../../protocol/generated/index.ts";
import { to } from "../data/links.ts";
import { live } from "../data/live.ts";
import { useStore } from "../data/store.ts";
import { type Called, useCall, useNow } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { clock, count, outOf, percent, plural, span } from "../data/words.ts";
import type { Line } from "../parts/chart.tsx";
import { later } from "../parts/later.tsx";
import { Empty, Loaded, Meter, Missing, Name, NoWorkers, Panel, ProjectName, Stat, View } from "../parts/pieces.tsx";
import { Attention } from "./attention.tsx";

const Chart = later(() => import("../parts/chart.tsx"));
const LISTED_MAX = 8;
const RATE_SAMPLES = 3;

export function Overview(): JSX.Element {
  const history = useCall("history", { query: { projects: false } }, { everyMs: 5000, agesMs: 10_000 });
  const projects = useCall("projects", {}, { everyMs: 2000, agesMs: 5000 });
  const workers = useCall("workers", {}, { everyMs: 2000 });
  const gates = useCall("gates", {}, { everyMs: 2000, agesMs: 5000 });
  const samples = history.data?.samples ?? [];
  const { isScoped } = useRights();
  return (
    <View
      title="Overview"
      note={isScoped ? <span class="small muted">Numbers and charts are of the whole fleet.</span> : undefined}
    >
      <Numbers samples={samples} />
      <Attention gates={gates} projects={projects} workers={workers} />
      <div class="grid is-narrow">
        <Charts history={history} />
      </div>
      <div class="grid is-narrow">
        <Shares from={projects} />
        <Gates from={gates} />
        <Workers from={workers} />
      </div>
    </View>
  );
}

/** What happened in a second, on average of the last samples. */
function rateOf(samples: readonly Sample[], of: (sample: Sample) => number): number | null {
  const few = rates(samples.slice(-RATE_SAMPLES - 1), of).filter((rate) => rate !== null);
  return few.length === 0 ? null : few.reduce((sum, rate) => sum + rate, 0) / few.length;
}

const orDash = (value: number | null | undefined, shown: (value: number) => string): string =>
  value === null || value === undefined ? "–" : shown(value);
const rateText = (rate: number): string => (rate >= 100 ? count(rate) : rate.toFixed(rate >= 10 ? 1 : 2));

function Numbers({ samples }: { samples: readonly Sample[] }): JSX.Element {
  const { pulse } = useStore(live);
  const last = samples.findLast(({ waitP50Ms }) => waitP50Ms !== undefined);
  const failed = rateOf(samples, (sample) => sample.failed);
  return (
    <dl class="stats">
      <Stat
        label="In flight"
        value={orDash(pulse?.inFlight, count)}
        of={pulse === null ? undefined : `of ${count(pulse.maxInFlight)}`}
      />
      <Stat label="Queued" value={orDash(pulse?.queued, count)} hint="for their turn" />
      <Stat label="Waiting" value={orDash(pulse?.waiting, count)} hint="for other tasks" />
      <Stat
        label="Parked"
        value={orDash(pulse?.parked, count)}
        hint={pulse === null ? undefined : `${count(pulse.asking)} for somebody's word`}
      />
      <Stat
        label="Done per second"
        value={orDash(
          rateOf(samples, (sample) => sample.done),
          rateText,
        )}
        hint={failed === null || failed === 0 ? undefined : `${rateText(failed)} failed`}
      />
      <Stat
        label="Wait, median"
        value={orDash(last?.waitP50Ms, span)}
        hint={last?.waitP95Ms === undefined ? undefined : `95 % within ${span(last.waitP95Ms)}`}
      />
    </dl>
  );
}

/** By how much a total rose in each second, sample by sample. */
function rates(samples: readonly Sample[], of: (sample: Sample) => number): (number | null)[] {
  return samples.map((sample, index) => {
    const before = samples[index - 1];
    if (before === undefined) return null;
    const ms = Date.parse(sample.at) - Date.parse(before.at);
    // A server that was away has no rate, and a log that was begun anew has no past.
    return ms > 120_000 || of(sample) < of(before) ? null : (1000 * (of(sample) - of(before))) / Math.max(1, ms);
  });
}

function Charts({ history }: { history: Called<History> }): JSX.Element {
  const samples = history.data?.samples ?? [];
  const times = samples.map(({ at }) => Date.parse(at));
  const line = (label: string, color: string, values: Line["values"], isFilled = false): Line => ({
    label,
    color,
    values,
    isFilled,
  });
  const charts: readonly (readonly [string, readonly Line[], ((value: number) => string)?])[] = [
    [
      "Tasks",
      [
        line(
          "in flight",
          "running",
          samples.map(({ inFlight }) => inFlight),
          true,
        ),
        line(
          "queued",
          "queued",
          samples.map(({ queued }) => queued),
        ),
        line(
          "waiting",
          "waiting",
          samples.map(({ waiting }) => waiting),
        ),
      ],
    ],
    [
      "Ended per second",
      [
        line(
          "done",
          "done",
          rates(samples, ({ done }) => done),
          true,
        ),
        line(
          "failed",
          "failed",
          rates(samples, ({ failed }) => failed),
        ),
      ],
    ],
    [
      "Wait for a start",
      [
        line(
          "median",
          "assigned",
          samples.map(({ waitP50Ms }) => waitP50Ms ?? null),
        ),
        line(
          "95 %",
          "parked",
          samples.map(({ waitP95Ms }) => waitP95Ms ?? null),
        ),
      ],
      span,
    ],
  ];
  return (
    <>
      {charts.map(([title, lines, shown]) => (
        <Panel key={title} title={title} actions={<span class="small">last hour</span>}>
          {history.data === null ? (
            <Missing error={history.error} />
          ) : samples.length < 2 ? (
            <Empty hint="A sample is taken every ten seconds, and kept over restarts.">Nothing to draw yet.</Empty>
          ) : (
            <Chart
              label={`${title}, over the last hour`}
              times={times}
              lines={lines}
              {...(shown === undefined ? {} : { shown })}
            />
          )}
        </Panel>
      ))}
    </>
  );
}

const more = (all: number, href: string): JSX.Element | null =>
  all > LISTED_MAX ? (
    <p class="small muted">
      <a href={href}>… {all - LISTED_MAX} more</a>
    </p>
  ) : null;

function Shares({ from }: { from: Called<{ readonly projects: readonly ProjectView[] }> }): JSX.Element {
  return (
    <Panel title={<a href={to.projects}>Shares against weights</a>} actions={<span class="small">mark: target</span>}>
      <Loaded from={from}>
        {({ projects }) => {
          if (projects.length === 0) return <Empty hint="The first task makes one.">No project yet.</Empty>;
          const order = [...projects].sort((left, right) => right.target - left.target || right.share - left.share);
          return (
            <>
              <ul class="lines">
                {order.slice(0, LISTED_MAX).map(({ id, share, target, queued, status }) => (
                  <li key={id}>
                    <span class="clip" title={id}>
                      <ProjectName id={id} />
                      {status === "paused" ? <span class="warn small"> paused</span> : null}
                    </span>
                    <Meter
                      part={share}
                      mark={target}
                      label={`Share of ${id}`}
                      text={percent(share)}
                      tone={share > target * 1.25 + 0.02 ? "warn" : "info"}
                    />
                    <span class="small muted right nowrap">{count(queued)} wait</span>
                  </li>
                ))}
              </ul>
              {more(projects.length, to.projects)}
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

export function GateLine({ gate, now }: { gate: GateJson; now: number }): JSX.Element {
  const { id, running, limit, queued, blockedUntil } = gate;
  const isBlocked = blockedUntil !== undefined && Date.parse(blockedUntil) > now;
  return (
    <li>
      <a class="clip" href={to.gate(id)} title={id}>
        <Name>{id}</Name>
      </a>
      <Meter
        part={limit === 0 ? 0 : running / limit}
        label={`Calls out at ${id}`}
        text={outOf(running, limit)}
        tone={isBlocked ? "bad" : running > limit ? "warn" : "info"}
      />
      <span class={isBlocked ? "small bad right nowrap" : "small muted right nowrap"}>
        {isBlocked ? `blocked ${clock(Date.parse(blockedUntil) - now)}` : `${count(queued)} wait`}
      </span>
    </li>
  );
}

function Gates({ from }: { from: Called<{ readonly gates: readonly GateJson[] }> }): JSX.Element {
  const now = useNow();
  return (
    <Panel title={<a href={to.gates}>Gates</a>} actions={<span class="small">calls that are out</span>}>
      <Loaded from={from}>
        {({ gates }) =>
          gates.length === 0 ? (
            <Empty hint="A gate appears with the first call through it.">No call has passed a gate.</Empty>
          ) : (
            <>
              <ul class="lines">
                {gates.slice(0, LISTED_MAX).map((gate) => (
                  <GateLine key={gate.id} gate={gate} now={now} />
                ))}
              </ul>
              {more(gates.length, to.gates)}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Workers({ from }: { from: Called<{ readonly workers: readonly WorkerView[] }> }): JSX.Element {
  return (
    <Panel
      title={<a href={to.workers}>Workers</a>}
      actions={<span class="small">{from.data === null ? "" : plural(from.data.workers.length, "worker")}</span>}
    >
      <Loaded from={from}>
        {({ workers }) =>
          workers.length === 0 ? (
            <NoWorkers />
          ) : (
            <>
              <ul class="lines">
                {workers.slice(0, LISTED_MAX).map(({ id, status, inFlight, slots }) => (
                  <li key={id}>
                    <span class="clip" title={id}>
                      <Name>{id}</Name>
                    </span>
                    <Meter
                      part={slots === 0 ? 0 : inFlight / slots}
                      label={`Slots in use at ${id}`}
                      text={outOf(inFlight, slots)}
                    />
                    <span class={`badge is-${status} small`}>{status}</span>
                  </li>
                ))}
              </ul>
              {more(workers.length, to.workers)}
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}
