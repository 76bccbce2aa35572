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

type No<Type extends string, Fields> = Readonly<
  {
    /** Which refusal it is. */
    type: Type;
  } & Fields
>;
type OfField = {
  /** The path of the field, such as `tasks[1].action`. */
  field: string;
};
type OfTask = {
  /** The id of the task. */
  task: string;
};
type OfState = {
  /** The state of the task. */
  state: string;
};
type OfDependency = {
  /** The id of the dependency. */
  dependency: string;
};
type OfAgent = {
  /** The agent that asks. */
  agent: string;
};
type OfProject = {
  /** The project. */
  project: string;
};
type OfWorker = {
  /** The id of the worker. */
  worker: string;
};
type OfGate = {
  /** The name of the gate. */
  gate: string;
};
type OfPermit = {
  /** The id of the permit. */
  permit: string;
};
type Most = {
  /** The maximum. */
  max: number;
};
type Kept = {
  /** How much is kept for those that have little; absent if that was not the reason. */
  kept?: number;
};

/** Why something was refused, as data. Its `type` says which fields it has; `sentence` puts it into words. */
export type Refusal =
  | No<
      "bad-field",
      OfField & {
        /** The value, shortened. */
        value: string;
        /** What would be right. */
        expected: string;
      }
    >
  | No<
      "unknown-field",
      OfField & {
        /** The fields that are known there. */
        known: readonly string[];
      }
    >
  | No<
      "past-deadline",
      OfField & {
        /** The instant that was given, in milliseconds since 1970. */
        deadline: number;
        /** The instant of the command, in milliseconds since 1970. */
        now: number;
      }
    >
  | No<
      "cycle",
      {
        /** The ids of the tasks that wait for each other, in order. */
        path: readonly string[];
      }
    >
  | No<"dependency-unknown", OfField & OfDependency>
  | No<"dependency-refused", OfField & OfDependency>
  | No<"task-unknown", OfTask>
  | No<"task-exists", OfTask>
  | No<
      "task-ended",
      OfTask &
        OfState & {
          /** Its record has expired; absent if it has not. */
          expired?: true;
        }
    >
  | No<"task-not-ended", OfTask & OfState>
  | No<
      "queue-full",
      OfAgent &
        Kept & {
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
        }
    >
  | No<
      "backpressure",
      OfAgent & {
        /** How full the fleet is; 1 is full. */
        usage: number;
        /** The usage from which tasks are refused. */
        rejectThreshold: number;
      }
    >
  | No<"no-workers", OfAgent>
  | No<
      "batch-too-large",
      Most & {
        /** How many tasks the batch has. */
        submitted: number;
      }
    >
  | No<"project-unknown", OfProject>
  | No<
      "too-many",
      Most &
        Kept & {
          /** What there is too much of, in the plural. */
          what: string;
          /** How much of it is taken, where what was asked for is more than what is left. */
          used?: number;
          /** What the caller can do; absent if nothing. */
          remedy?: string;
        }
    >
  | No<
      "bytes-per-minute",
      OfProject &
        Most & {
          /** Set where the agent has stored as much, in all its projects without settings of their own. */
          agent?: string;
          /** Bytes stored in the last minute. */
          stored: number;
          /** When to try again, in milliseconds from now. */
          retryAfterMs: number;
        }
    >
  | No<
      "log-full",
      Most &
        Kept & {
          /** The size of the log in bytes. */
          bytes: number;
          /** The project, where what is left is kept for those that have stored less. */
          project?: string;
        }
    >
  | No<"gate-unknown", OfGate>
  | No<"gate-configured", OfGate>
  | No<
      "gate-in-use",
      OfGate & {
        /** How many calls are out. */
        running: number;
        /** How many calls wait. */
        queued: number;
      }
    >
  | No<"worker-unknown", OfWorker>
  | No<"worker-exists", OfWorker>
  | No<
      "attempt-stale",
      OfTask & {
        /** The number of the attempt that was named. */
        attempt: number;
        /** The number of the attempt that counts; null if none is live. */
        current: number | null;
      }
    >
  | No<"session-lost", OfWorker>
  | No<
      "sync-stale",
      OfWorker & {
        /** The number of the sync. */
        n: number;
        /** The number of the last sync that counted. */
        last: number;
      }
    >
  | No<"permit-exists", OfPermit>
  | No<"permit-unknown", OfPermit>
  | No<
      "schedule-unknown",
      {
        /** The id of the schedule. */
        schedule: string;
      }
    >
  | No<
      "budget-exhausted",
      OfProject & {
        /** The tokens it may use. */
        limit: number;
        /** The tokens it used. */
        used: number;
      }
    >
  | No<"dependency-failed", OfTask & OfDependency & OfState>;

const SHOWN_MAX = 80;

/** A value as it is shown in a refusal: short, one line, never a whole payload. What is no plain data says its kind. */
export function shown(value: unknown): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "bigint") return `a BigInt (${clip(`${value}n`)})`;
  if (typeof value === "function" || typeof value === "symbol") return `a ${typeof value}`;
  if (value === undefined) return "nothing";
  const kind = kindShown(value);
  if (kind === THROWS) return kind;
  let text: string;
  try {
    text = JSON.stringify(value) ?? typeof value;
  } catch (error) {
    const isDeep = error instanceof RangeError;
    text = isDeep ? `${Array.isArray(value) ? "a list" : "an object"} too deep to show` : "something that is not JSON";
  }
  if (kind !== "") return text === "{}" || text.length > SHOWN_MAX ? kind : `${kind} (${text})`;
  return clip(text);
}

const clip = (text: string): string =>
  text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}… (${text.length} characters)`;

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
  value: `${shown(value)}${brokenness(value)}`,
  expected: plainly(expected, value),
});

/** What cannot be seen in text by looking at it, as the end of "it is …"; empty if there is no such thing. */
export const brokenness = (value: unknown): string =>
  typeof value === "string" && !value.isWellFormed() ? ", which holds half of a character (a lone surrogate)" : "";

/** The refusal in one sentence, for people. */
export function sentence(refusal: Refusal): string {
  switch (refusal.type) {
    case "bad-field":
      return `${refusal.field} is ${refusal.value}, and must be ${refusal.expected}`;
    case "unknown-field":
      return `${refusal.field} is not a known field${meant(refusal)}; known here: ${refusal.known.join(", ")}`;
    case "past-deadline":
      return (
        `${refusal.field} ${instantText(refusal.deadline)} has passed (now is ${instantText(refusal.now)}); ` +
        "give one in the future"
      );
    case "cycle":
      return `these tasks wait for each other in a cycle: ${refusal.path.join(" → ")}`;
    case "dependency-unknown":
      return `${refusal.field} names ${refusal.dependency}, which no task has; submit it first or in the same batch`;
    case "dependency-refused":
      return `${refusal.field} names ${refusal.dependency}, which was refused in the same batch`;
    default:
      return aboutStanding(refusal);
  }
}

/** The known field that was probably meant: `inputTokens` for `input_tokens`, `payload` for `paylod`. */
function meant({ field, known }: Extract<Refusal, { type: "unknown-field" }>): string {
  const found = nearest(field.slice(field.lastIndexOf(".") + 1), known);
  return found === null ? "" : ` (did you mean ${found}?)`;
}

type Standing = Exclude<
  Refusal,
  { type: "bad-field" | "unknown-field" | "past-deadline" | "cycle" | "dependency-unknown" | "dependency-refused" }
>;

function aboutStanding(refusal: Standing): string {
  switch (refusal.type) {
    case "task-unknown":
      return `no task has the id ${refusal.task}`;
    case "task-exists":
      return `task ${refusal.task} exists with another body; use a new id, or send the same body again`;
    case "task-ended":
      if (refusal.state === "rejected") return `task ${refusal.task} was rejected and never let in; submit it again`;
      return refusal.expired === true
        ? `task ${refusal.task} ended as ${refusal.state}; its record has expired ` +
            "(scheduler.resultTtl, scheduler.resultMax); submit it under a new id"
        : `task ${refusal.task} has ended as ${refusal.state}; the first end counts`;
    case "task-not-ended":
      return `task ${refusal.task} is ${refusal.state}; only a failed, cancelled or skipped task can run again`;
    case "queue-full":
      if (refusal.kept !== undefined) return aboutKept(refusal);
      return refusal.limit === "maxQueue"
        ? `the queue is full: ${refusal.queued} of scheduler.maxQueue ${refusal.maxQueue} tasks; try again later`
        : `agent ${refusal.agent} has ${refusal.queued} tasks queued; scheduler.maxPerAgent is ` +
            `${refusal.maxPerAgent}: try again later`;
    case "backpressure":
      return (
        `overloaded: usage ${refusal.usage} reached scheduler.backpressure.rejectThreshold ` +
        `${refusal.rejectThreshold}; try again later`
      );
    case "no-workers":
      return "no worker can take work, and scheduler.backpressure.acceptWithoutWorkers is false; start a worker first";
    case "batch-too-large":
      return `the batch has ${refusal.submitted} tasks; scheduler.maxBatch is ${refusal.max}: send them in parts`;
    case "project-unknown":
      return `no project is called ${refusal.project}; register it, or name it in the config`;
    case "too-many":
      return aboutTooMany(refusal);
    default:
      return aboutHolders(refusal);
  }
}

function aboutTooMany({ what, max, used, kept, remedy }: Extract<Refusal, { type: "too-many" }>): string {
  const whatToDo = remedy === undefined ? "" : `: ${remedy}`;
  if (used !== undefined && used < max)
    return `there is no room for this: ${used} of at most ${max} ${what} are taken${whatToDo}`;
  if (kept === undefined) return `there are ${max} ${what} already, which is the maximum${whatToDo}`;
  const whom = remedy === undefined ? " for projects that have few" : "";
  return `of at most ${max} ${what} the last ${kept} are kept${whom}${whatToDo}`;
}

function aboutKept(refusal: Extract<Refusal, { type: "queue-full" }>): string {
  const { queued, maxQueue, kept, agent, project, ofProject = 0, ofAgent = 0 } = refusal;
  const who = ofProject >= ofAgent ? `project ${project} has ${ofProject}` : `agent ${agent} has ${ofAgent}`;
  return (
    `${queued} tasks are queued, and the last ${kept} places of scheduler.maxQueue ${maxQueue} are kept for projects ` +
    `and agents that have few; ${who}: try again later`
  );
}

type Holders = Extract<
  Refusal,
  {
    type:
      | ("worker-unknown" | "worker-exists" | "attempt-stale" | "session-lost" | "sync-stale")
      | ("permit-exists" | "permit-unknown" | "schedule-unknown")
      | ("gate-unknown" | "gate-configured" | "gate-in-use" | "bytes-per-minute" | "log-full")
      | ("budget-exhausted" | "dependency-failed");
  }
>;

function aboutHolders(refusal: Holders): string {
  switch (refusal.type) {
    case "worker-unknown":
      return `no worker is called ${refusal.worker}`;
    case "worker-exists":
      return `a worker called ${refusal.worker} is here already`;
    case "attempt-stale":
      return refusal.current === null
        ? `attempt ${refusal.attempt} of ${refusal.task} is not running`
        : `attempt ${refusal.attempt} of ${refusal.task} lost its lease; attempt ${refusal.current} counts now`;
    case "session-lost":
      return `worker ${refusal.worker} has joined again under another session; stop what runs and join anew`;
    case "sync-stale":
      return `sync ${refusal.n} of worker ${refusal.worker} came after sync ${refusal.last}; it is ignored`;
    case "permit-unknown":
      return `no permit ${refusal.permit} is queued or held; it was settled, given up or ran out`;
    case "bytes-per-minute":
      if (refusal.agent !== undefined)
        return (
          `agent ${refusal.agent} has stored ${refusal.stored} bytes in the last minute, in all its projects; ` +
          `twice projects.default.bytesPerMinute is ${refusal.max}: try again later`
        );
      return (
        `project ${refusal.project} has stored ${refusal.stored} bytes in the last minute; its bytesPerMinute ` +
        `(projects.default.bytesPerMinute if it has none of its own) is ${refusal.max}: try again later`
      );
    case "log-full":
      return refusal.kept === undefined
        ? `the log has ${refusal.bytes} of log.maxBytes ${refusal.max} bytes; raise it, or lower log.retain`
        : `the last ${refusal.kept} of log.maxBytes ${refusal.max} bytes are kept for projects that have stored ` +
            `little; ${refusal.project} has stored more: raise it, or lower log.retain`;
    case "gate-unknown":
      return `no gate is called ${refusal.gate}`;
    case "gate-configured":
      return `gate ${refusal.gate} is named in the config; take it out of there first`;
    case "gate-in-use":
      return `gate ${refusal.gate} is in use: ${refusal.running} calls are out and ${refusal.queued} wait`;
    case "schedule-unknown":
      return `no schedule is called ${refusal.schedule}`;
    case "permit-exists":
      return `permit ${refusal.permit} is queued or held already`;
    case "budget-exhausted":
      return `project ${refusal.project} used ${refusal.used} of its ${refusal.limit} tokens; raise the limit or wait`;
    case "dependency-failed":
      return `${refusal.task} depends on ${refusal.dependency}, which is ${refusal.state}; run that one again first`;
    default:
      return refusal satisfies never;
  }
}
