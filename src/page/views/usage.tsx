/**
 * Who spends: tokens and cost by project, agent, type or day.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { UsageReport } from "../../protocol/generated/index.ts";
import { to } from "../data/links.ts";
import { useCall } from "../data/use-call.ts";
import { count, money, percent, tokensOf } from "../data/words.ts";
import { Empty, Loaded, Meter, Name, Panel, Segments, Stat, TableBox, View } from "../parts/pieces.tsx";

type By = "project" | "agent" | "type" | "day";
const CHOICES: readonly (readonly [By, string])[] = [
  ["project", "Project"],
  ["agent", "Agent"],
  ["type", "Type"],
  ["day", "Day"],
];
const FILTERS: Readonly<Partial<Record<By, string>>> = { project: "project", agent: "agentId", type: "type" };

export default function Usage(): JSX.Element {
  const [by, setBy] = useState<By>("project");
  const report = useCall("usage", { query: { by, limit: 200 } }, { everyMs: 3000 });
  return (
    <View title="Usage" actions={<Segments label="Summed up by" choices={CHOICES} chosen={by} onChoose={setBy} />}>
      <Loaded from={report}>
        {(found) => (
          <>
            <Sums report={found} />
            <Panel isFlush>{found.rows.length === 0 ? <NothingYet /> : <Table report={found} by={by} />}</Panel>
          </>
        )}
      </Loaded>
    </View>
  );
}

const NothingYet = (): JSX.Element => (
  <Empty hint="Workers say what an attempt used when it ends.">No attempt has said what it used.</Empty>
);

function Sums({ report: { total } }: { report: UsageReport }): JSX.Element {
  const { inputTokens, outputTokens, cachedTokens, cost } = total.usage;
  return (
    <dl class="stats">
      <Stat
        label="Tokens in"
        value={count(inputTokens)}
        hint={cachedTokens === 0 ? undefined : `and ${count(cachedTokens)} from caches`}
      />
      <Stat label="Tokens out" value={count(outputTokens)} />
      <Stat label="Cost" value={cost === undefined ? "–" : money(cost)} hint="in the currency of the workers" />
      <Stat label="Attempts" value={count(total.attempts)} hint="that said what they used" />
    </dl>
  );
}

function Table({ report: { rows, total, omitted }, by }: { report: UsageReport; by: By }): JSX.Element {
  const all = tokensOf(total.usage);
  const filter = FILTERS[by];
  return (
    <TableBox label="Usage">
      <table class="table is-cards">
        <thead>
          <tr>
            <th>{CHOICES.find(([choice]) => choice === by)?.[1]}</th>
            <th>Part of all tokens</th>
            <th class="number">In</th>
            <th class="number">Out</th>
            <th class="number">Cached</th>
            <th class="number">Cost</th>
            <th class="number">Attempts</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, attempts, usage }) => {
            const part = all === 0 ? 0 : tokensOf(usage) / all;
            return (
              <tr key={key}>
                <td class="name">
                  {filter === undefined ? (
                    key
                  ) : (
                    <a href={to.tasks({ [filter]: key })}>
                      <Name>{key}</Name>
                    </a>
                  )}
                </td>
                <td>
                  <Meter part={part} label={`Part of ${key}`} text={percent(part)} />
                </td>
                <td class="number" data-is="In">
                  {count(usage.inputTokens)}
                </td>
                <td class="number" data-is="Out">
                  {count(usage.outputTokens)}
                </td>
                <td class="number" data-is="Cached">
                  {count(usage.cachedTokens)}
                </td>
                <td class="number" data-is="Cost">
                  {usage.cost === undefined ? "" : money(usage.cost)}
                </td>
                <td class="number" data-is="Attempts">
                  {count(attempts)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {omitted === undefined || omitted === 0 ? null : <p class="loading">… {count(omitted)} more</p>}
    </TableBox>
  );
}
