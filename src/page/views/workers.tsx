/**
 * Workers: what each runs, what it has left, what it offers; and sending one away in good order.
 */
import type { JSX } from "preact";
import type { WorkerView } from "../../protocol/generated/index.ts";
import { ask } from "../data/ask.ts";
import { doing } from "../data/say.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { ago, bytes, cores, count, outOf, plural } from "../data/words.ts";
import { asked } from "../parts/dialog.tsx";
import { Loaded, Meter, Name, NoWorkers, Panel, Stat, State, TaskName, View } from "../parts/pieces.tsx";

const SHOWN_MAX = 8;

export default function Workers(): JSX.Element {
  const workers = useCall("workers", {});
  return (
    <View title="Workers">
      <Loaded from={workers}>
        {({ workers: all }) =>
          all.length === 0 ? (
            <Panel>
              <NoWorkers />
            </Panel>
          ) : (
            <>
              <Sum workers={all} />
              <div class="cards">
                {all.map((worker) => (
                  <Card key={worker.id} worker={worker} />
                ))}
              </div>
            </>
          )
        }
      </Loaded>
    </View>
  );
}

function Sum({ workers }: { workers: readonly WorkerView[] }): JSX.Element {
  const sum = (of: (worker: WorkerView) => number): number => workers.reduce((all, worker) => all + of(worker), 0);
  const lost = workers.filter(({ status }) => status === "unreachable").length;
  /** Of all workers together; of one that takes as much as comes there is no sum. */
  const room = (name: string, of: "cpuMillicores" | "memoryBytes", shown: (value: number) => string): JSX.Element => {
    const isKnown = workers.every(({ free, resources }) => free?.[of] !== undefined && resources?.[of] !== undefined);
    const left = sum(({ free }) => free?.[of] ?? 0);
    const all = shown(sum(({ resources }) => resources?.[of] ?? 0));
    return <Stat label={name} value={isKnown ? shown(left) : "any"} hint={isKnown ? `of ${all}` : undefined} />;
  };
  return (
    <dl class="stats">
      <Stat
        label="Workers"
        value={count(workers.length)}
        hint={lost === 0 ? "all are here" : <span class="bad">{lost} lost</span>}
      />
      <Stat
        label="Slots in use"
        value={count(sum(({ inFlight }) => inFlight))}
        of={`of ${count(sum(({ slots }) => slots))}`}
      />
      {room("Free CPU", "cpuMillicores", cores)}
      {room("Free memory", "memoryBytes", bytes)}
    </dl>
  );
}

async function drain(id: string): Promise<void> {
  const yes = await asked({
    title: "Drain this worker?",
    text: `${id} finishes what it runs, takes nothing more and leaves.`,
    yes: "Drain it",
  });
  if (yes !== null) await doing(() => ask("drainWorker", { params: { id }, query: {} }), `${id} drains.`);
}

function Card({ worker }: { worker: WorkerView }): JSX.Element {
  const { id, kind, status, slots, inFlight, capabilities, tasks, resources, free, note, zone, heldFor, joinedAt } =
    worker;
  const { mayManage } = useRights();
  const now = useNow(5000);
  const used = (of: "cpuMillicores" | "memoryBytes"): number => {
    const [all = 0, left = 0] = [resources?.[of], free?.[of]];
    return all === 0 ? 0 : (all - left) / all;
  };
  return (
    <Panel
      title={<Name>{id}</Name>}
      actions={
        <>
          <State state={status} />
          {mayManage && status !== "draining" && kind !== "local" ? (
            <button type="button" class="button is-small" onClick={() => drain(id)}>
              Drain
            </button>
          ) : null}
        </>
      }
    >
      <div class="card">
        <dl class="facts">
          <dt>Slots</dt>
          <dd>
            <Meter
              part={slots === 0 ? 0 : inFlight / slots}
              label={`Slots in use at ${id}`}
              text={outOf(inFlight, slots)}
            />
          </dd>
          {resources?.cpuMillicores === undefined ? null : (
            <>
              <dt>CPU</dt>
              <dd>
                <Meter
                  part={used("cpuMillicores")}
                  label={`CPU in use at ${id}`}
                  text={`${cores(free?.cpuMillicores ?? 0)} free`}
                />
              </dd>
            </>
          )}
          {resources?.memoryBytes === undefined ? null : (
            <>
              <dt>Memory</dt>
              <dd>
                <Meter
                  part={used("memoryBytes")}
                  label={`Memory in use at ${id}`}
                  text={`${bytes(free?.memoryBytes ?? 0)} free`}
                />
              </dd>
            </>
          )}
          <dt>Offers</dt>
          <dd class="tags">
            {capabilities.length === 0 ? <span class="faint">nothing special</span> : null}
            {capabilities.slice(0, 12).map((one) => (
              <span key={one} class="tag">
                <Name>{one}</Name>
              </span>
            ))}
          </dd>
          <dt>Runs</dt>
          <dd class="runs">
            {tasks.length === 0 ? <span class="faint">nothing now</span> : null}
            {tasks.slice(0, SHOWN_MAX).map((task) => (
              <span key={task} class="clip">
                <TaskName id={task} />
              </span>
            ))}
            {inFlight > SHOWN_MAX ? <span class="muted">… {plural(inFlight - SHOWN_MAX, "more", "more")}</span> : null}
          </dd>
        </dl>
        {note === undefined ? null : (
          <p class="warn">
            <Name>{note}</Name>
          </p>
        )}
        {heldFor === undefined ? null : (
          <p class="warn">
            Kept free for <TaskName id={heldFor} />
          </p>
        )}
        <p class="small faint">
          {kind === "local" ? "part of the server, and leaves with it" : kind}
          {zone === undefined ? null : (
            <>
              , zone <Name>{zone}</Name>
            </>
          )}
          , <span class="nowrap">joined {ago(joinedAt, now)}</span>
        </p>
      </div>
    </Panel>
  );
}
