/**
 * A task from flags: every field of the wire has one, and nothing is checked twice.
 *
 * Flags only turn text into the right kind of value; what is right for a field is the server's to say, and it names the
 * field when it is not. Instants may be given as a span from now, which is shorter to type than an RFC 3339 time
 * for "in half an hour".
 */
import { readFileSync, statSync } from "node:fs";
import { userInfo } from "node:os";
import { resolve } from "node:path";
import { ClientError } from "../../client/index.ts";
import type { TaskBody } from "../../protocol/index.ts";
import { usageProblem } from "../shell/problem.ts";
import type { Terminal } from "../shell/terminal.ts";
import type { FlagSpec } from "../shell/verb.ts";
import { byteCount, cpuMillicores, given, label, milliseconds, number, several, wholeNumber } from "../shell/verb.ts";
import { COMMAND_ACTION } from "../worker/verb.ts";

/** Flags that are a field of the wire as they stand: what it is and belongs to, and how it is tried. */
const ABOUT = ["project", "type", "parent", "zone", "provider", "callbackUrl", "ref", "selector"] as const;
const TRIES = ["iteration", "maxAttempts", "onDependencyFailure", "onLoss"] as const;
type Field = (typeof ABOUT | typeof TRIES)[number];
type TextFlag = "agent" | "command" | "params" | "payload" | "priority" | "notBefore" | "artifact" | "tab" | "until";
type NumberFlag = "cpu" | "memory" | "tokens" | "timeout" | "maxRounds";
type ListFlag = "capability" | "lock" | "label" | "needs" | "output";
type Switches = { readonly approval?: string | true; readonly waitChildren?: boolean };
export type TaskFlags = Pick<TaskBody, Field> &
  Switches &
  Readonly<Partial<Record<TextFlag, string> & Record<NumberFlag, number> & Record<ListFlag, readonly string[]>>>;
export type SubmitFlags = TaskFlags & { readonly id?: string; readonly deadline?: string };

export const PRIORITIES: readonly string[] = ["critical", "high", "normal", "low"];

/** Those of a task that may be given without an id of its own and without a deadline: also of a schedule. */
export const TASK_FLAGS: readonly FlagSpec[] = [
  {
    flags: "-a, --agent <name>",
    about: "who submits; the unit of fairness in a project (default: the agent of your token, or your user name)",
  },
  { flags: "-p, --project <name>", about: "who pays (default: default)" },
  { flags: "-t, --type <name>", about: "a kind of work, with a base score and perhaps a limit, such as plan or code" },
  {
    flags: "--command <line>",
    about:
      `a command for the local worker of serve: params.command (action: ${COMMAND_ACTION}); ` +
      "once another worker has joined it goes to that one, which must know what to do with it",
  },
  { flags: "--params <json>", about: "arguments of the action: JSON, @file, or - for standard input" },
  { flags: "--payload <json>", about: "any JSON for the worker that runs it: JSON, @file, or - for standard input" },
  {
    flags: "--priority <n>",
    about: "critical, high, normal, low, or a whole number: lower is sooner",
    words: PRIORITIES,
  },
  {
    flags: "--not-before <when>",
    about: "the earliest start: an instant (2026-01-31T12:00:00Z), or a span from now (2h)",
  },
  { flags: "--callback-url <url>", about: "where the task is posted when it has ended" },
  { flags: "--parent <id>", about: "the task it belongs to; it waits for it" },
  {
    flags: "--needs <ids>",
    about: "tasks that must be done first, as id or name=id; with commas, or given again",
    read: several,
  },
  {
    flags: "--artifact <path>",
    about: "what must exist before it may start: a file that its parent leaves, or one under artifacts.root",
  },
  {
    flags: "--output <paths>",
    about: "files that an exec worker keeps of its workspace: paths or patterns; with commas, or given again",
    read: several,
  },
  { flags: "--cpu <cores>", about: "cores it needs: 2, 0.5 or 500m", read: cpuMillicores },
  { flags: "--memory <size>", about: "memory it needs: 512MiB, 2GB", read: byteCount },
  { flags: "--capability <names>", about: "what a worker must offer; with commas, or given again", read: several },
  { flags: "--lock <names>", about: "keys that no two running tasks hold at once", read: several },
  { flags: "--zone <name>", about: "its preferred zone" },
  { flags: "--provider <gate>", about: "the gate whose block also holds this task, such as anthropic/default" },
  {
    flags: "--tokens <n>",
    about: "an estimate of the tokens it will use; 0: none, so it waits for no budget",
    read: number(0, 1e12),
  },
  { flags: "--iteration <n>", about: "which iteration this is; 1 is the first", read: wholeNumber(0, 1_000_000) },
  {
    flags: "--max-attempts <n>",
    about: "own failures it may have (default: 3; with --tab, 1)",
    read: wholeNumber(1, 1_000_000),
  },
  { flags: "--timeout <span>", about: "how long one attempt may take: 30s, 10m", read: milliseconds },
  { flags: "--tab <id>", about: "the browser tab it is for" },
  { flags: "--ref <text>", about: "what in the tab it is about" },
  { flags: "--selector <text>", about: "where in the tab, such as #buy" },
  {
    flags: "--on-dependency-failure <what>",
    about: "when a parent or need does not end as done",
    choices: ["skip", "run"],
  },
  {
    flags: "--on-loss <what>",
    about:
      "when an attempt that had begun is lost: run it again (the default), or fail, its outcome unknown (with --tab)",
    choices: ["retry", "fail"],
  },
  { flags: "--approval [question]", about: "somebody must approve it before it starts: drover approve ID" },
  { flags: "--wait-children", about: "it is done only when all has ended that it submits while it runs" },
  { flags: "--until <line>", about: "with --max-rounds: the check of its loop, a shell line for the exec worker" },
  {
    flags: "--max-rounds <n>",
    about: "run it again until its work is good, so often at most",
    read: wholeNumber(1, 1000),
  },
  { flags: "--label <key=value>", about: "what it is found by; given again for more", read: label },
];

export const SUBMIT_FLAGS: readonly FlagSpec[] = [
  ...TASK_FLAGS,
  { flags: "--id <id>", about: "an id of your choice; the same id and body again is the same task" },
  { flags: "--deadline <when>", about: "when it has failed if it has not ended: an instant, or a span from now (30m)" },
];

export async function taskBodyFrom(
  action: string | undefined,
  flags: SubmitFlags,
  terminal: Terminal,
  /** The hint for a call that does not say what is to be done. */
  how: string = "drover submit ACTION, or drover submit --command 'echo hello'",
): Promise<TaskBody> {
  if (flags.params === "-" && flags.payload === "-")
    throw usageProblem("--params and --payload cannot both be standard input", "give one of them as @file");
  const chosen = action ?? (flags.command === undefined ? undefined : COMMAND_ACTION);
  if (chosen === undefined) throw usageProblem("what is to be done is missing", how);
  const params = await paramsFrom(flags, terminal);
  const payload = flags.payload === undefined ? undefined : await readJson("--payload", flags.payload, terminal);
  const resources = given({ cpuMillicores: flags.cpu, memoryBytes: flags.memory });
  const same = [...ABOUT, ...TRIES].map((field) => [field, flags[field]]);
  const others: { readonly [Key in Exclude<keyof TaskBody, Field>]-?: TaskBody[Key] | undefined } = {
    agentId: agentFrom(flags, terminal),
    action: chosen,
    id: flags.id,
    params,
    payload,
    priority: flags.priority === undefined ? undefined : priorityFrom(flags.priority),
    deadline: instantFrom("--deadline", flags.deadline, terminal),
    notBefore: instantFrom("--not-before", flags.notBefore, terminal),
    inputArtifact: flags.artifact,
    resources: Object.keys(resources).length === 0 ? undefined : resources,
    capabilities: flags.capability,
    locks: flags.lock,
    outputs: flags.output,
    estimatedTokens: flags.tokens,
    timeoutMs: flags.timeout,
    tabId: flags.tab,
    labels: flags.label === undefined ? undefined : pairsFrom(flags.label),
    needs: flags.needs === undefined ? undefined : needsFrom(flags.needs),
    loop: loopFrom(flags),
    approval: approvalFrom(flags.approval),
    wait: flags.waitChildren === true ? "children" : undefined,
  };
  return given({ ...others, ...Object.fromEntries(same) }) as TaskBody;
}

/** Of the person who calls, unless it is said. */
export const agentFrom = ({ agent }: { readonly agent?: string }, terminal: Terminal): string =>
  agent ?? (terminal.env.DROVER_AGENT || userName(terminal));

const approvalFrom = (given: string | true | undefined): TaskBody["approval"] =>
  given === undefined || given === true ? given : { question: given };

function loopFrom({ until, maxRounds }: TaskFlags): TaskBody["loop"] {
  if (maxRounds !== undefined) return { ...(until === undefined ? {} : { until }), max: maxRounds };
  if (until === undefined) return undefined;
  throw usageProblem("--until is the check of a loop", "say how many rounds there may be: --max-rounds 10");
}

const pairsFrom = (texts: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(texts.map((text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)]));

/** By name if any of them has one; one without is called by its id. */
const needsFrom = (needs: readonly string[]): NonNullable<TaskBody["needs"]> =>
  needs.some((need) => need.includes("="))
    ? pairsFrom(needs.map((need) => (need.includes("=") ? need : `${need}=${need}`)))
    : needs;

async function paramsFrom(
  { params, command }: TaskFlags,
  terminal: Terminal,
): Promise<Record<string, unknown> | undefined> {
  const given = params === undefined ? undefined : await readJsonObject("--params", params, terminal);
  if (command === undefined) return given;
  if (given?.command !== undefined)
    throw usageProblem("--params has a command already", "give the command once: --command, or command in --params");
  return { ...given, command };
}

/** The four names are the server's; a number is a number. */
export const priorityFrom = (text: string): TaskBody["priority"] & {} =>
  (/^-?\d+$/.test(text) ? Number(text) : text) as TaskBody["priority"] & {};

/** RFC 3339 as it stands; a span counts from now. */
export function instantFrom(flag: string, text: string | undefined, { now }: Terminal): string | undefined {
  if (text === undefined || /^\d{4}-\d\d-\d\d/.test(text)) return text;
  if (/^\+?\d+(ms|s|m|h|d)$/.test(text)) return new Date(now() + milliseconds(text.replace("+", ""))).toISOString();
  const hint = "give an instant such as 2026-01-31T12:00:00Z, or a span from now: 30s, 2h";
  throw usageProblem(`${flag} is "${text}"`, hint);
}

/**
 * Who has a token that speaks for one agent need not name it: where a person has named none, what was refused for the
 * name of the user is sent again for that agent.
 */
export async function asOwnAgent<Answer>(
  { flags, terminal }: { readonly flags: { readonly agent?: string }; readonly terminal: Terminal },
  agentId: string,
  send: (agentId: string) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await send(agentId);
  } catch (error) {
    const isNamed = flags.agent !== undefined || (terminal.env.DROVER_AGENT ?? "") !== "";
    const { field, allowed } = error instanceof ClientError && error.code === "forbidden" ? (error.details ?? {}) : {};
    if (isNamed || !String(field).endsWith("agentId") || typeof allowed !== "string") throw error;
    return send(allowed);
  }
}

function userName({ env }: Terminal): string {
  const named = env.USER || env.LOGNAME;
  if (named !== undefined && named !== "") return named;
  try {
    return userInfo().username;
  } catch {
    return "cli";
  }
}

// ------------------------------------- JSON on the command line, in a file (@file), or on standard input (-)

/** More than the server takes; what is larger belongs into a file whose path the task has. */
const BYTES_MAX = 16 * 1024 * 1024;

async function readJson(flag: string, given: string, terminal: Terminal): Promise<unknown> {
  const { text, from } = await textOf(flag, given, terminal);
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const hint = `such as ${flag} '{"path": "src"}', ${flag} @file.json, or ${flag} - for standard input`;
    throw usageProblem(`${flag}: ${from} is not JSON: ${error.message}`, hint);
  }
}

async function readJsonObject(flag: string, given: string, terminal: Terminal): Promise<Record<string, unknown>> {
  const value = await readJson(flag, given, terminal);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw usageProblem(`${flag} must be a JSON object, such as '{"path": "src"}'`);
}

export async function textOf(flag: string, given: string, terminal: Terminal): Promise<{ text: string; from: string }> {
  if (given === "-") return { text: await terminal.readInput(BYTES_MAX), from: "standard input" };
  if (!given.startsWith("@")) return { text: given, from: "its value" };
  const file = given.slice(1);
  try {
    const path = resolve(terminal.cwd, file);
    if (statSync(path).size > BYTES_MAX) throw usageProblem(`${flag}: ${file} is larger than ${BYTES_MAX} bytes`);
    return { text: readFileSync(path, "utf8"), from: file };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw usageProblem(`${flag}: ${file} cannot be read: ${code === "ENOENT" ? "there is no such file" : code}`);
  }
}
