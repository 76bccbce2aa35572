/**
 * Every way Drover says no.
 *
 * A refusal names what was asked, which value was wrong and what would be right. It is data, so that
 * each face (library, HTTP, CLI) can put it in its own words and no face can forget one: the server
 * maps this union to status codes with a table that does not compile when a variant is missing.
 */
import { instantText } from "./instant-text.ts";
import { nearest } from "./nearest.ts";
import { isPlainObject, THROWS } from "./plain-object.ts";

/** What refusals are about, each described once. */
type Facts = {
  /** The path of the field, such as `tasks[1].action`. */
  field: string;
  /** The value, shortened. */
  value: string;
  /** What would be right. */
  expected: string;
  /** The fields that are known there. */
  known: readonly string[];
  /** The instant that was given, in milliseconds since 1970. */
  deadline: number;
  /** The instant of the command, in milliseconds since 1970. */
  now: number;
  /** The ids of the tasks that wait for each other, in order. */
  path: readonly string[];
  /** The id of the task. */
  task: string;
  /** The state of the task. */
  state: string;
  /** The id of the dependency. */
  dependency: string;
  /** Its record has expired; absent if it has not. */
  expired?: true;
  /** The agent that asks. */
  agent: string;
  /** The project. */
  project: string;
  /** The id of the worker. */
  worker: string;
  /** The id of the group. */
  group: string;
  /** The name of the plan. */
  plan: string;
  /** The name of the gate. */
  gate: string;
  /** The id of the permit. */
  permit: string;
  /** The id of the schedule. */
  schedule: string;
  /** The maximum. */
  max: number;
  /** How much is kept for those that have little; absent if that was not the reason. */
  kept?: number;
  /** How full the fleet is; 1 is full. */
  usage: number;
  /** The usage from which tasks are refused. */
  rejectThreshold: number;
  /** How many tasks the batch has. */
  submitted: number;
};
type Of<Names extends keyof Facts> = Pick<Facts, Names>;

type RefusalFields = {
  "bad-field": Of<"field" | "value" | "expected">;
  "unknown-field": Of<"field" | "known">;
  "past-deadline": Of<"field" | "deadline" | "now">;
  cycle: Of<"path">;
  "dependency-unknown": Of<"field" | "dependency">;
  "dependency-refused": Of<"field" | "dependency">;
  "task-unknown": Of<"task">;
  "group-unknown": Of<"group">;
  "plan-unknown": Of<"plan">;
  "plan-live": Of<"plan">;
  "task-exists": Of<"task">;
  "task-ended": Of<"task" | "state" | "expired">;
  "task-not-ended": Of<"task" | "state">;
  "task-not-parked": Of<"task" | "state">;
  "approval-late": Of<"task" | "deadline" | "now">;
  "queue-full": Of<"agent" | "kept"> & {
    /** The limit that was reached. */
    limit: "maxQueue" | "maxPerAgent";
    /** How many tasks wait or are queued under that limit. */
    queued: number;
    /** The limit of the whole fleet. */
    maxQueue: number;
    /** The limit of each agent. */
    maxPerAgent: number;
    /** The project, where what is left is kept for those that have less. */
    project?: string;
    /** How many tasks the project has queued. */
    ofProject?: number;
    /** How many tasks the agent has queued. */
    ofAgent?: number;
  };
  backpressure: Of<"agent" | "usage" | "rejectThreshold">;
  "no-workers": Of<"agent">;
  "batch-too-large": Of<"max" | "submitted">;
  "project-unknown": Of<"project">;
  "too-many": Of<"max" | "kept"> & {
    /** What there is too much of, in the plural. */
    what: string;
    /** How much of it is taken, where what was asked for is more than what is left. */
    used?: number;
    /** What the caller can do; absent if nothing. */
    remedy?: string;
  };
  "bytes-per-minute": Of<"project" | "max"> & {
    /** Set where the agent has stored as much, in all its projects without settings of their own. */
    agent?: string;
    /** Bytes stored in the last minute. */
    stored: number;
    /** When to try again, in milliseconds from now. */
    retryAfterMs: number;
  };
  "log-full": Of<"max" | "kept"> & {
    /** The size of the log in bytes. */
    bytes: number;
    /** The project, where what is left is kept for those that have stored less. */
    project?: string;
  };
  "gate-unknown": Of<"gate">;
  "gate-configured": Of<"gate">;
  "gate-in-use": Of<"gate"> & {
    /** How many calls are out. */
    running: number;
    /** How many calls wait. */
    queued: number;
  };
  "worker-unknown": Of<"worker">;
  "worker-local": Of<"worker">;
  "worker-exists": Of<"worker">;
  "attempt-stale": Of<"task"> & {
    /** The number of the attempt that was named. */
    attempt: number;
    /** The number of the attempt that counts; null if none is live. */
    current: number | null;
  };
  "session-lost": Of<"worker">;
  "sync-stale": Of<"worker"> & {
    /** The number of the sync. */
    n: number;
    /** The number of the last sync that counted. */
    last: number;
  };
  "permit-exists": Of<"permit">;
  "permit-settled": Of<"permit">;
  "permit-unknown": Of<"permit">;
  "schedule-unknown": Of<"schedule">;
  "budget-exhausted": Of<"project"> & {
    /** The tokens it may use. */
    limit: number;
    /** The tokens it used. */
    used: number;
  };
  "dependency-failed": Of<"task" | "dependency" | "state">;
};
/** Why something was refused, as data. Its `type` says which fields it has; `sentence` puts it into words. */
export type Refusal = RefusalOf<keyof RefusalFields>;
type RefusalOf<Types extends keyof RefusalFields> = {
  [Type in Types]: Readonly<
    {
      /** Which refusal it is. */
      type: Type;
    } & RefusalFields[Type]
  >;
}[Types];

const SHOWN_MAX = 80;

/** A value as it is shown in a refusal: short, one line, never a whole payload. What is no plain data says its kind. */
export function shown(value: unknown, lengthMax: number = SHOWN_MAX): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "bigint") return `a BigInt (${clip(`${value}n`, lengthMax)})`;
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  if (value === undefined) return "nothing";
  if (typeof value === "string" && value.length > lengthMax)
    return `${JSON.stringify(value.slice(0, lengthMax).toWellFormed())}${lengthMark(value)}`;
  const kind = kindShown(value);
  if (kind === THROWS) return kind;
  let text: string;
  try {
    text = JSON.stringify(value) ?? typeof value;
  } catch (error) {
    const isDeep = error instanceof RangeError;
    text = isDeep ? `${Array.isArray(value) ? "a list" : "an object"} too deep to show` : "something that is not JSON";
  }
  if (kind !== "") return text === "{}" || text.length > lengthMax ? kind : `${kind} (${text})`;
  return typeof value === "string" ? text : clip(text, lengthMax);
}

const clip = (text: string, lengthMax: number): string =>
  text.length <= lengthMax ? text : `${text.slice(0, lengthMax)}${lengthMark(text)}`;
const lengthMark = (text: string): string => `… (${text.length} characters)`;

/** The class of what JSON would pass off as something else, such as a Map; empty for plain data. */
export function kindShown(value: unknown): string {
  try {
    return kindOf(value);
  } catch {
    return THROWS;
  }
}

function kindOf(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "";
  let kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  if (kind === "Object") {
    if (isPlainObject(value)) return "";
    const { name = "" } = value.constructor ?? {};
    if (name === "" || name === "Object") return "an object with a prototype of its own";
    kind = String(name);
  }
  return `${/^[AEIOU]/.test(kind) ? "an" : "a"} ${kind.slice(0, SHOWN_MAX)}`;
}

/** What is of a class is an object too: that a plain one is meant is said where it matters. */
function plainly(expected: string, value: unknown): string {
  if (!expected.startsWith(AN_OBJECT) || kindShown(value) === "") return expected;
  return `a plain object${expected.slice(AN_OBJECT.length)}`;
}
const AN_OBJECT = "an object";

export const badField = (field: string, value: unknown, expected: string): Refusal => ({
  type: "bad-field",
  field,
  value: `${shown(withoutUser(value))}${brokenness(value)}`,
  expected: plainly(expected, value),
});

/** A URL is shown without user and password: what is refused stands on screens and in logs. */
const withoutUser = (value: unknown): unknown =>
  typeof value === "string" ? value.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^\s"]*@/i, "$1…@") : value;

/** What cannot be seen in text by looking at it, as the end of "it is …"; empty if there is no such thing. */
export const brokenness = (value: unknown): string =>
  typeof value === "string" && !value.isWellFormed() ? ", which holds half of a character (a lone surrogate)" : "";

/** The refusal in one sentence, for people. */
export const sentence = (refusal: Refusal): string => SENTENCES[refusal.type](refusal as never);

const SENTENCES: { readonly [Type in Refusal["type"]]: (refusal: RefusalOf<Type>) => string } = {
  "bad-field": ({ field, value, expected }) => `${field} is ${value}, and must be ${expected}`,
  "unknown-field": ({ field, known }) =>
    `${field} is not a known field${meant(field, known)}; known here: ${known.join(", ")}`,
  "past-deadline": ({ field, deadline, now }) =>
    `${field} ${instantText(deadline)} has passed (now is ${instantText(now)}); give one in the future`,
  cycle: ({ path }) => `these tasks wait for each other in a cycle: ${path.join(" → ")}`,
  "dependency-unknown": ({ field, dependency }) =>
    `${field} names ${dependency}, which no task has; submit it first or in the same batch`,
  "dependency-refused": ({ field, dependency }) => `${field} names ${dependency}, which was refused in the same batch`,
  "task-unknown": ({ task }) => `no task has the id ${task}`,
  "group-unknown": ({ group }) => `no group has the id ${group}, or the last record of its tasks has expired`,
  "plan-unknown": ({ plan }) => `no plan is called ${plan}, or it was forgotten (scheduler.planTtl, plansMax)`,
  "plan-live": ({ plan }) => `the plan ${plan} has not ended; cancel it first`,
  "task-exists": ({ task }) => `task ${task} exists with another body; use a new id, or send the same body again`,
  "task-ended": ({ task, state, expired }) => {
    if (state === "rejected") return `task ${task} was rejected and never let in; submit it again`;
    if (expired !== true) return `task ${task} has ended as ${state}; the first end counts`;
    const isFailure = state === "failed" || state === "skipped";
    const knobs = isFailure ? "scheduler.failedTtl, scheduler.failedMax" : "scheduler.resultTtl, scheduler.resultMax";
    const why = `its record has expired (${knobs})`;
    return `task ${task} ended as ${state}; ${why}; submit it under a new id`;
  },
  "task-not-ended": ({ task, state }) =>
    `task ${task} is ${state}; only a failed, cancelled or skipped task can run again`,
  "task-not-parked": ({ task, state }) =>
    `task ${task} is ${state}; only a task that is parked for an approval can have one, and the first answer counts`,
  "approval-late": ({ task, deadline, now }) =>
    `task ${task} was to be approved by ${instantText(deadline)}, and it is ${instantText(now)}: it has failed`,
  "queue-full": aboutQueue,
  backpressure: ({ usage, rejectThreshold }) =>
    `overloaded: usage ${usage} reached scheduler.backpressure.rejectThreshold ${rejectThreshold}; try again later`,
  "no-workers": () =>
    "no worker can take work, and scheduler.backpressure.acceptWithoutWorkers is false; start a worker first",
  "batch-too-large": ({ submitted, max }) =>
    `the batch has ${submitted} tasks; scheduler.maxBatch is ${max}: send them in parts`,
  "project-unknown": ({ project }) => `no project is called ${project}; register it, or name it in the config`,
  "too-many": aboutTooMany,
  "worker-unknown": ({ worker }) => `no worker is called ${worker}`,
  "worker-local": ({ worker }) => `worker ${worker} is part of the server, and leaves with it: stop the server`,
  "worker-exists": ({ worker }) => `a worker called ${worker} is here already`,
  "attempt-stale": ({ task, attempt, current }) =>
    current === null
      ? `attempt ${attempt} of ${task} is not running`
      : `attempt ${attempt} of ${task} lost its lease; attempt ${current} counts now`,
  "session-lost": ({ worker }) =>
    `worker ${worker} has joined again under another session; stop what runs and join anew`,
  "sync-stale": ({ worker, n, last }) => `sync ${n} of worker ${worker} came after sync ${last}; it is ignored`,
  "permit-exists": ({ permit }) => `permit ${permit} is queued or held already`,
  "permit-settled": ({ permit }) =>
    `the call of permit ${permit} is over and settled; ask under another id for another`,
  "permit-unknown": ({ permit }) => `no permit ${permit} is queued or held; it was settled, given up or ran out`,
  "bytes-per-minute": ({ project, agent, stored, max }) =>
    agent === undefined
      ? `project ${project} has stored ${stored} bytes in the last minute; its bytesPerMinute ` +
        `(projects.default.bytesPerMinute if it has none of its own) is ${max}: try again later`
      : `agent ${agent} has stored ${stored} bytes in the last minute, in all its projects; ` +
        `twice projects.default.bytesPerMinute is ${max}: try again later`,
  "log-full": ({ project, bytes, max, kept }) =>
    kept === undefined
      ? `the log has ${bytes} of log.maxBytes ${max} bytes; raise it, or lower log.retain`
      : `the last ${kept} of log.maxBytes ${max} bytes are kept for projects that have stored ` +
        `little; ${project} has stored more: raise it, or lower log.retain`,
  "gate-unknown": ({ gate }) => `no gate is called ${gate}`,
  "gate-configured": ({ gate }) => `gate ${gate} is named in the config; take it out of there first`,
  "gate-in-use": ({ gate, running, queued }) => `gate ${gate} is in use: ${running} calls are out and ${queued} wait`,
  "schedule-unknown": ({ schedule }) => `no schedule is called ${schedule}`,
  "budget-exhausted": ({ project, used, limit }) =>
    `project ${project} used ${used} of its ${limit} tokens; raise the limit or wait`,
  "dependency-failed": ({ task, dependency, state }) =>
    `${task} depends on ${dependency}, which is ${state}; run that one again first`,
};

/** The known field that was probably meant: `inputTokens` for `input_tokens`, `payload` for `paylod`. */
function meant(field: string, known: readonly string[]): string {
  const found = nearest(field.slice(field.lastIndexOf(".") + 1), known);
  return found === null ? "" : ` (did you mean ${found}?)`;
}

function aboutQueue(refusal: RefusalOf<"queue-full">): string {
  const { limit, queued, maxQueue, maxPerAgent, kept, agent, project, ofProject = 0, ofAgent = 0 } = refusal;
  if (kept !== undefined) {
    const who = ofProject >= ofAgent ? `project ${project} has ${ofProject}` : `agent ${agent} has ${ofAgent}`;
    return (
      `${queued} tasks are queued, and the last ${kept} places of scheduler.maxQueue ${maxQueue} are kept for ` +
      `projects and agents that have few; ${who}: try again later`
    );
  }
  return limit === "maxQueue"
    ? `the queue is full: ${queued} of scheduler.maxQueue ${maxQueue} tasks; try again later`
    : `agent ${agent} has ${queued} tasks queued; scheduler.maxPerAgent is ${maxPerAgent}: try again later`;
}

function aboutTooMany({ what, max, used, kept, remedy }: RefusalOf<"too-many">): string {
  const whatToDo = remedy === undefined ? "" : `: ${remedy}`;
  if (used !== undefined && used < max)
    return `there is no room for this: ${used} of at most ${max} ${what} are taken${whatToDo}`;
  if (kept === undefined) return `there are ${max} ${what} already, which is the maximum${whatToDo}`;
  const whom = remedy === undefined ? " for projects that have few" : "";
  return `of at most ${max} ${what} the last ${kept} are kept${whom}${whatToDo}`;
}
