/**
 * What tasks ask somebody, with the buttons to answer.
 */
import type { JSX } from "preact";
import type { TaskView } from "../../protocol/generated/index.ts";
import { ask } from "../data/ask.ts";
import { doing } from "../data/say.ts";
import { useNow } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { clock } from "../data/words.ts";
import { asked } from "./dialog.tsx";

/** Whether it waits for somebody, and not for its children. */
export const isAsking = ({ state, approval }: TaskView): boolean =>
  state === "parked" && approval !== undefined && approval.at === undefined;

async function approve(id: string): Promise<void> {
  const note = await asked({
    title: "Approve this task?",
    text: `${id} goes on, and sees your note.`,
    yes: "Approve",
    note: "Note (may stay empty)",
  });
  if (note === null) return;
  await doing(() => ask("approve", { params: { id }, body: note === "" ? {} : { note } }), `${id} is approved.`);
}

async function deny(id: string): Promise<void> {
  const note = await asked({
    title: "Deny this task?",
    text: `${id} fails, with what you write as the reason.`,
    yes: "Deny",
    note: "Reason (may stay empty)",
    isDanger: true,
  });
  if (note === null) return;
  const body = note === "" ? { deny: true } : { deny: true, note };
  await doing(() => ask("approve", { params: { id }, body }), `${id} is denied.`);
}

export function Answers({ task }: { task: TaskView }): JSX.Element | null {
  const { mayApprove } = useRights();
  const now = useNow();
  const until = task.approval?.until;
  return (
    <span class="actions">
      {until === undefined ? null : (
        <span class="small warn nowrap" title="Nobody's answer until then is a no">
          {clock(Date.parse(until) - now)} left
        </span>
      )}
      {mayApprove ? (
        <>
          <button type="button" class="button is-small is-main" onClick={() => approve(task.taskId)}>
            Approve
          </button>
          <button type="button" class="button is-small is-danger" onClick={() => deny(task.taskId)}>
            Deny
          </button>
        </>
      ) : null}
    </span>
  );
}
