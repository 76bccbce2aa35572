/**
 * All gates: what is out, how full the windows are, what holds the next call.
 */
import type { JSX } from "preact";
import type { GateJson } from "../../protocol/generated/index.ts";
import { to } from "../data/links.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { plural } from "../data/words.ts";
import { Empty, Loaded, Name, Panel, View } from "../parts/pieces.tsx";
import { GateState, Windows } from "./gate-windows.tsx";

export default function Gates(): JSX.Element {
  const gates = useCall("gates", {}, { agesMs: 2000 });
  return (
    <View title="Gates">
      <Loaded from={gates}>
        {({ gates: all }) =>
          all.length === 0 ? (
            <Panel>
              <Empty hint="A gate appears with the first call through it, or when the config names it.">
                No gate yet.
              </Empty>
            </Panel>
          ) : (
            <div class="cards">
              {all.map((gate) => (
                <GateCard key={gate.id} gate={gate} />
              ))}
            </div>
          )
        }
      </Loaded>
    </View>
  );
}

function GateCard({ gate }: { gate: GateJson }): JSX.Element {
  const now = useNow();
  return (
    <Panel
      title={
        <a href={to.gate(gate.id)}>
          <Name>{gate.id}</Name>
        </a>
      }
      actions={<GateState gate={gate} now={now} />}
    >
      <Windows gate={gate} />
      <p class="small muted gate-foot">
        {plural(gate.queued, "call")} in line
        {gate.held === null || gate.held === "blocked" ? "" : ` · held by ${gate.held}`}
      </p>
    </Panel>
  );
}
