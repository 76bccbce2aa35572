/**
 * Events as sentences: what happened, and why, where the log says so.
 */
import type { EventJson } from "../../protocol/generated/index.ts";
import { givenBackInWords, NOT_BEGUN, reasonInWords } from "../../protocol/wire/index.ts";
import { isGivenBack, isHandedBack, isPutBack } from "./outcomes.ts";
import { count, plural, span, steady } from "./words.ts";

export type Told = { readonly text: string; readonly tone: string };

type Payload = EventJson["payload"];
type Of<Kind extends Payload["kind"]> = Extract<Payload, { kind: Kind }>;
type Teller<Kind extends Payload["kind"]> = (event: Of<Kind>, at: number) => string;

function becauseOf({ reason, rank }: Of<"task-assigned">): string {
  const numbers = `first of its agent with priority ${rank.priority}, score ${Number(rank.score.toFixed(1))}`;
  return `${reasonInWords(reason)}; ${numbers}`;
}

function lossOf(payload: Of<"attempt-lost">): string {
  const { cause, reason } = payload;
  return givenBackInWords(payload) ?? `lost: ${cause}${reason === null || reason === "" ? "" : `, ${reason}`}`;
}

const tokens = (used: number | null): string => (used === null || used === 0 ? "" : `, ${count(used)} tokens`);
const rest = (until: number, at: number): string =>
  until > at ? `; runs again in ${span(until - at)}` : "; runs again";

const TOLD: { readonly [Kind in Payload["kind"]]?: Teller<Kind> } = {
  "task-submitted": ({ agent, project, type, parent, needs }) =>
    `submitted by ${agent} to ${project} as ${type}${parent === null ? "" : `, below ${parent}`}${
      needs.length === 0
        ? ""
        : `, after ${needs.slice(0, 3).join(", ")}${needs.length > 3 ? ` and ${needs.length - 3} more` : ""}`
    }`,
  "task-queued": () => "queued: nothing but its turn is in the way",
  "task-assigned": (event) => `given to ${event.worker}, ${becauseOf(event)}`,
  "attempt-started": ({ attempt }) => `attempt ${attempt} has begun`,
  "attempt-usage": ({ attempt, inputTokens, outputTokens }) =>
    `attempt ${attempt} used ${count(inputTokens)} tokens in, ${count(outputTokens)} out`,
  "attempt-used": ({ attempt, tokens: used }) => `attempt ${attempt} has used ${count(used)} tokens so far`,
  "attempt-stopping": ({ attempt, cause }) => `attempt ${attempt} is told to stop: ${cause}`,
  "attempt-stopped": ({ attempt, tokens: used, unbegun }) =>
    `attempt ${attempt} ${unbegun ? `was ${NOT_BEGUN}` : `has stopped${tokens(used)}`}`,
  "attempt-failed": ({ attempt, error, tokens: used, restUntil }, at) =>
    `attempt ${attempt} failed: ${error}${tokens(used)}${rest(restUntil, at)}`,
  "attempt-lost": (event, at) => `attempt ${event.attempt} was ${lossOf(event)}${rest(event.restUntil, at)}`,
  "attempt-done": ({ attempt }) => `attempt ${attempt} is done; its children have not ended`,
  "task-done": ({ tokens: used }) => `done${tokens(used)}`,
  "task-failed": ({ reason, expired }) => `failed: ${reason}${expired ? " (its deadline passed)" : ""}`,
  "task-cancelled": ({ reason }) => `cancelled${reason === "" ? "" : `: ${reason}`}`,
  "task-skipped": ({ reason }) => `skipped: ${reason}`,
  "task-retried": () => "somebody runs it again",
  "task-patched": ({ priority }) => `changed: priority ${priority}`,
  "task-parked": () => "parked: somebody is asked",
  "task-approved": () => "approved",
  "round-ended": () => "a round has ended; the next begins",
  "dependents-notified": ({ count: told }) => `${plural(told, "task")} that waited for it heard of its end`,
  "hold-placed": ({ worker }) => `${worker} is kept free for it`,
  "hold-released": ({ worker }) => `${worker} is no longer kept free for it`,
  "pin-released": () => "it need not run on the same worker any more",
  "worker-joined": ({ worker, workerKind, slots }) =>
    `worker ${worker} joined: ${workerKind}, ${plural(slots, "slot")}`,
  "worker-changed": ({ worker, status }) => `worker ${worker} is ${status}`,
  "worker-left": ({ worker, lost }) => `worker ${worker} ${lost ? "is lost" : "has left"}`,
  "node-joined": ({ node, url, leads }) => `node ${node} ${leads ? "leads" : "joined"}: ${url}`,
  "gate-throttled": ({ gate, retryAfterMs }) => `gate ${gate}: the provider said to wait ${span(retryAfterMs)}`,
  "gate-opened": ({ gate }) => `gate ${gate} opens again`,
  "gate-reset": ({ gate }) => `gate ${gate} was reset`,
  "permit-asked": ({ gate, project }) => `a call of ${project} asks at gate ${gate}`,
  "permit-granted": ({ gate }) => `a call passes gate ${gate}`,
  "permit-settled": ({ gate, ok, tokens: used }) =>
    `a call came back to gate ${gate}${ok ? "" : ", failed"}${tokens(used)}`,
  "project-put": ({ project, settings }) => `project ${project}: weight ${settings.weight}`,
  "pause-changed": ({ scope, id, paused }) =>
    `${scope === "fleet" ? "the fleet" : `${scope} ${id}`} ${paused ? "is paused" : "goes on"}`,
  "config-changed": ({ patch }) => (patch === null ? "the config was read" : "the config was changed by a patch"),
  "engine-started": ({ coreVersion }) => `the engine has started, core ${coreVersion}`,
};

const TONES: Readonly<Record<string, string>> = {
  "task-submitted": "waiting",
  "task-queued": "queued",
  "task-assigned": "assigned",
  "attempt-started": "running",
  "task-done": "done",
  "attempt-done": "done",
  "task-approved": "done",
  "task-failed": "failed",
  "attempt-failed": "failed",
  "attempt-lost": "failed",
  "task-cancelled": "cancelled",
  "task-skipped": "skipped",
  "task-parked": "parked",
  "attempt-stopping": "parked",
  "gate-throttled": "failed",
  "gate-opened": "done",
  "worker-left": "parked",
  "worker-joined": "done",
  "node-joined": "done",
};

/** Which attempts among these events were given back before they began. */
export const givenBackIn = (events: readonly EventJson[]): ReadonlySet<string> =>
  new Set(events.filter(isGivenBack).map(nameOf));

const nameOf = ({ task, attempt }: EventJson): string => `${attempt} ${task}`;

/**
 * An event as a sentence. The log has an attempt as begun once its worker has it; of one among those that were given
 * back it is said as it was.
 */
export function told(event: EventJson, givenBack: ReadonlySet<string> = NONE): Told {
  const { kind, payload, at } = event;
  if (payload.kind === "attempt-started" && givenBack.has(nameOf(event)))
    return { text: `attempt ${payload.attempt} is with its worker`, tone: "waiting" };
  const teller = TOLD[kind as Payload["kind"]] as ((event: Payload, at: number) => string) | undefined;
  const text = teller?.(payload, Date.parse(at)) ?? kind.replaceAll("-", " ");
  return {
    text: steady(text),
    tone: isGivenBack(event) || isHandedBack(event) || isPutBack(event) ? "waiting" : (TONES[kind] ?? "waiting"),
  };
}

const NONE: ReadonlySet<string> = new Set();
