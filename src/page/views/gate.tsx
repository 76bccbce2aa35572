/**
 * One gate: its windows filling, its calls in order, its strikes, and the way to open it by hand.
 */
import type { JSX } from "preact";
import { useRoute } from "preact-iso";
import type { GateDetail } from "../../protocol/generated/index.ts";
import { ask } from "../data/ask.ts";
import { to } from "../data/links.ts";
import { doing } from "../data/say.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { count, plural, span } from "../data/words.ts";
import { asked } from "../parts/dialog.tsx";
import { Empty, Loaded, Name, Panel, ProjectName, Stat, State, TableBox, TaskName, View } from "../parts/pieces.tsx";
import { GateState, isBlocked, Windows } from "./gate-windows.tsx";

const SHOWN_MAX = 200;

export default function Gate(): JSX.Element {
  const { params } = useRoute();
  const id = params.id ?? "";
  const gate = useCall("gate", { params: { id } }, { agesMs: 2000 });
  const { data } = gate;
  return (
    <View
      title={<Name>{id}</Name>}
      note={data === null ? undefined : <Note gate={data} />}
      actions={data === null ? <a href={to.gates}>All gates</a> : <Reset gate={data} />}
    >
      <Loaded from={gate}>
        {(found) => (
          <>
            <Totals gate={found} />
            <div class="task-grid">
              <Calls gate={found} />
              <Panel title="Windows">
                <Windows gate={found} />
              </Panel>
            </div>
          </>
        )}
      </Loaded>
    </View>
  );
}

function Note({ gate }: { gate: GateDetail }): JSX.Element {
  const now = useNow();
  return <GateState gate={gate} now={now} />;
}

function Reset({ gate }: { gate: GateDetail }): JSX.Element | null {
  const { mayManage } = useRights();
  const now = useNow();
  if (!mayManage || !isBlocked(gate, now)) return null;
  async function reset(): Promise<void> {
    const yes = await asked({
      title: "Open this gate?",
      text: `The block of ${gate.id} is lifted, and one call goes out as a probe. Its provider may say no again.`,
      yes: "Open it",
    });
    if (yes !== null) await doing(() => ask("resetGate", { params: { id: gate.id } }), `${gate.id} is not blocked.`);
  }
  return (
    <button type="button" class="button" onClick={reset}>
      Open it now
    </button>
  );
}

function Totals({ gate: { stats, throttles, queued, running } }: { gate: GateDetail }): JSX.Element {
  const mean = (total: number, of: number): string => (of === 0 ? "–" : span(total / of));
  return (
    <dl class="stats">
      <Stat label="Out" value={count(running)} hint={`peak ${count(stats.peakRunning)}`} />
      <Stat label="Wait" value={count(queued)} hint={`peak ${count(stats.peakQueued)}`} />
      <Stat label="Came back" value={count(stats.completed)} hint={`${count(stats.scheduled)} went out`} />
      <Stat
        label="Throttles in a row"
        value={count(throttles)}
        hint={`${count(stats.rateLimited)} calls met a limit`}
      />
      <Stat label="Mean wait" value={mean(stats.waitMs, stats.scheduled)} />
      <Stat label="Mean service" value={mean(stats.serviceMs, stats.completed)} />
    </dl>
  );
}

function Calls({ gate: { calls } }: { gate: GateDetail }): JSX.Element {
  return (
    <Panel title="Calls in order" actions={<span class="small">{plural(calls.length, "call")}</span>} isFlush>
      {calls.length === 0 ? (
        <Empty>No call is out, and none waits.</Empty>
      ) : (
        <>
          <TableBox label="Calls">
            <table class="table is-cards calls">
              <thead>
                <tr>
                  <th>State</th>
                  <th>Class</th>
                  <th>Project</th>
                  <th>Task</th>
                  <th class="number">For</th>
                </tr>
              </thead>
              <tbody>
                {calls.slice(0, SHOWN_MAX).map((call) => (
                  <tr key={call.id}>
                    <td>
                      <State state={call.state} />
                    </td>
                    <td data-is="Class">{call.class}</td>
                    <td class="clip" data-is="Project">
                      <ProjectName id={call.project} />
                    </td>
                    <td class="clip">
                      {call.task === undefined ? <span class="faint">no task</span> : <TaskName id={call.task} />}
                    </td>
                    <td class="number" data-is="For">
                      {span(call.seconds * 1000)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </TableBox>
          {calls.length <= SHOWN_MAX ? null : <p class="loading">… {count(calls.length - SHOWN_MAX)} more</p>}
        </>
      )}
    </Panel>
  );
}
