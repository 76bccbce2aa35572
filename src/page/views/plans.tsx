/**
 * Plans, the one put last first: how far each is, with pause, resume, cancel and retry.
 */
import type { JSX } from "preact";
import type { PlanSummary } from "../../protocol/generated/index.ts";
import { ask } from "../data/ask.ts";
import { to } from "../data/links.ts";
import { doing } from "../data/say.ts";
import { useCall, useNow } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { ago, brief, count, money, tokensOf } from "../data/words.ts";
import { asked } from "../parts/dialog.tsx";
import { Empty, Loaded, Name, Panel, ProjectName, State, TableBox, View } from "../parts/pieces.tsx";

export default function Plans(): JSX.Element {
  const plans = useCall("plans", { query: { limit: 200 } });
  return (
    <View title="Plans">
      <Panel isFlush>
        <Loaded from={plans}>
          {({ plans: all, nextCursor }) =>
            all.length === 0 ? (
              <Empty
                hint={
                  <>
                    A plan file is run by <code>drover run plan.yml</code>, or put by <code>PUT /plans/ID</code>.
                  </>
                }
              >
                No plan yet.
              </Empty>
            ) : (
              <>
                <Table plans={all} />
                {nextCursor === undefined ? null : (
                  <p class="loading">There are more: these are the {count(all.length)} that were put last.</p>
                )}
              </>
            )
          }
        </Loaded>
      </Panel>
    </View>
  );
}

function Table({ plans }: { plans: readonly PlanSummary[] }): JSX.Element {
  const now = useNow(5000);
  return (
    <TableBox label="Plans">
      <table class="table is-cards">
        <thead>
          <tr>
            <th>Plan</th>
            <th>State</th>
            <th>Progress</th>
            <th class="number">Failed</th>
            <th class="number">Parked</th>
            <th class="number">Tokens</th>
            <th class="number">Cost</th>
            <th>Put</th>
            <th>
              <span class="for-readers">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {plans.map((plan) => (
            <tr key={plan.id}>
              <td class="name">
                <a href={to.graph("plan", plan.id)}>
                  <Name>{plan.id}</Name>
                </a>
                <div class="small muted">
                  <ProjectName id={plan.project} />
                </div>
              </td>
              <td>
                <State state={plan.state} />
              </td>
              <td>
                <Progress plan={plan} />
              </td>
              <td class="number bad" data-is="Failed">
                {some(plan.counts.failed)}
              </td>
              <td class="number warn" data-is="Parked">
                {some(plan.counts.parked)}
              </td>
              <td class="number" data-is="Tokens">
                {plan.usage === undefined ? "" : brief(tokensOf(plan.usage))}
              </td>
              <td class="number" data-is="Cost">
                {plan.usage?.cost === undefined ? "" : money(plan.usage.cost)}
              </td>
              <td class="muted nowrap" data-is="Put">
                {ago(plan.putAt, now)}
              </td>
              <td>
                <PlanActs plan={plan} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableBox>
  );
}

const some = (value: number | undefined): string => (value === undefined || value === 0 ? "" : count(value));

const PARTS = ["done", "failed", "cancelled", "skipped", "running", "assigned", "parked", "queued", "waiting"] as const;

/** Its tasks by state, as one bar. */
export function Progress({ plan: { counts, total } }: { plan: Pick<PlanSummary, "counts" | "total"> }): JSX.Element {
  const done = counts.done ?? 0;
  const parts = PARTS.filter((state) => (counts[state] ?? 0) > 0);
  const words = parts.map((state) => `${counts[state]} ${state}`).join(", ");
  return (
    <div class="progress">
      <div class="stack" role="img" aria-label={words} title={words}>
        {parts.map((state) => (
          <i key={state} class={`is-${state}`} style={{ flexGrow: counts[state] ?? 0 }} />
        ))}
      </div>
      <span class="muted nowrap">
        {count(done)} of {count(total)}
      </span>
    </div>
  );
}

async function cancelPlan(id: string): Promise<void> {
  const reason = await asked({
    title: "Cancel this plan?",
    text: `All of ${id} that has not ended is cancelled; what runs is stopped.`,
    yes: "Cancel it",
    note: "Reason (may stay empty)",
    isDanger: true,
  });
  if (reason === null) return;
  const body = reason === "" ? {} : { reason };
  await doing(() => ask("cancelPlan", { params: { id }, body }), `${id} is cancelled.`);
}

export function PlanActs({ plan: { id, state, endedAt, counts } }: { plan: PlanSummary }): JSX.Element | null {
  const { mayAct } = useRights();
  if (!mayAct) return null;
  const params = { id };
  const mayRetry = (counts.failed ?? 0) + (counts.cancelled ?? 0) + (counts.skipped ?? 0) > 0;
  return (
    <span class="actions plan-acts">
      {endedAt === undefined && state !== "paused" ? (
        <button
          type="button"
          class="button is-small"
          onClick={() => doing(() => ask("pausePlan", { params }), `${id} is paused: what runs may end.`)}
        >
          Pause
        </button>
      ) : null}
      {state === "paused" ? (
        <button
          type="button"
          class="button is-small"
          onClick={() => doing(() => ask("resumePlan", { params }), `${id} goes on.`)}
        >
          Resume
        </button>
      ) : null}
      {mayRetry ? (
        <button
          type="button"
          class="button is-small"
          onClick={() => doing(() => ask("retryPlan", { params }), `What did not go well of ${id} is queued again.`)}
        >
          Retry
        </button>
      ) : null}
      {endedAt === undefined ? (
        <button type="button" class="button is-small is-danger" onClick={() => cancelPlan(id)}>
          Cancel
        </button>
      ) : null}
    </span>
  );
}
