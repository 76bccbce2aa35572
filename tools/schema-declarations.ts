/**
 * src/protocol/generated: the types of what people write and read, written from the schemas.
 *
 *     npx node tools/schema-declarations.ts        writes every file anew
 *
 * A schema holds each field, its kind, its default and its sentence. A type kept by hand beside it says the same a
 * second time, and without the sentence an editor has nothing to show. A test compares the files with the schemas.
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { EVENT_KINDS } from "../src/core/model/index.ts";
import { planSchema, taskSection } from "../src/plan/schema.ts";
import { notesOf, oneOf, type Schema } from "../src/protocol/schema/schema.ts";
import { coreSections } from "../src/protocol/settings/schema.ts";
import * as approvals from "../src/protocol/shapes/approvals.ts";
import * as bulk from "../src/protocol/shapes/bulk.ts";
import * as cluster from "../src/protocol/shapes/cluster.ts";
import * as events from "../src/protocol/shapes/events.ts";
import * as files from "../src/protocol/shapes/files.ts";
import * as groups from "../src/protocol/shapes/groups.ts";
import * as loops from "../src/protocol/shapes/loops.ts";
import * as permits from "../src/protocol/shapes/permits.ts";
import * as plans from "../src/protocol/shapes/plans.ts";
import * as projects from "../src/protocol/shapes/projects.ts";
import * as scheduler from "../src/protocol/shapes/scheduler.ts";
import * as schedules from "../src/protocol/shapes/schedules.ts";
import * as taskCalls from "../src/protocol/shapes/task-calls.ts";
import * as tasks from "../src/protocol/shapes/tasks.ts";
import * as usage from "../src/protocol/shapes/usage.ts";
import * as watching from "../src/protocol/shapes/watching.ts";
import * as workerLogs from "../src/protocol/shapes/worker-logs.ts";
import * as workers from "../src/protocol/shapes/workers.ts";
import { TASK_STATES } from "../src/protocol/wire/task-state.ts";
import type { Shown } from "../test/kits/shown-schema.ts";

const ROOT = join(import.meta.dirname, "..");
const WIDTH = 100;

/** The name of a type by the structure of its schema, so that a shape that is used twice is declared once. */
type Names = ReadonlyMap<string, string>;
type Named = readonly [name: string, schema: Schema];

const ABOUT_A_USE = new Set(["description", "default", "examples", "expected", "~optional"]);
const structure = (schema: Schema): string =>
  JSON.stringify(schema, function (key, value) {
    return ABOUT_A_USE.has(key) && this === schema ? undefined : value;
  });
const namesOf = (named: readonly Named[]): Names =>
  new Map(named.toReversed().map(([name, schema]) => [structure(schema), name]));

/** The type of a schema: its name if it has one, unless it is just that one which is declared. */
function typeOf(schema: Shown, names: Names, ownName?: string): string {
  const { shownAs } = notesOf(schema);
  if (shownAs !== undefined) return typeOf(shownAs as Shown, names);
  const name = ownName === undefined ? names.get(structure(schema)) : undefined;
  if (name !== undefined) return name;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return union(schema.enum.map((value) => JSON.stringify(value)));
  if (schema.anyOf !== undefined) return union(schema.anyOf.map((one) => typeOf(one, names)));
  switch (schema.type) {
    case "integer":
      return "number";
    case "array":
      return `readonly ${inBrackets(typeOf(schema.items as Shown, names))}[]`;
    case "object":
      return objectType(schema, names, ownName);
    default:
      return schema.type ?? "unknown";
  }
}

const union = (types: readonly string[]): string => [...new Set(types)].join(" | ");
const inBrackets = (type: string): string => (type.includes(" | ") && !type.startsWith("{") ? `(${type})` : type);

/** Types of which a caller knows more than the schema: their parameters, and the fields these stand for. */
const GENERIC: Readonly<Record<string, readonly string[]>> = {
  TaskBody: ["Params"],
  TaskView: ["Params", "Result"],
  Input: ["Result"],
  AssignedView: ["Params", "Result", "Needed"],
};
const PARAMETERS: Readonly<Record<string, { readonly field: string; readonly text: string }>> = {
  Params: { field: "params", text: "Params extends object = Readonly<Record<string, unknown>>" },
  Result: { field: "result", text: "Result = unknown" },
  Needed: { field: "inputs", text: "Needed extends object = Inputs" },
};
const parametersOf = (name: string): string => {
  const texts = (GENERIC[name] ?? []).map((one) => PARAMETERS[one]?.text);
  return texts.length === 0 ? "" : `<${texts.join(", ")}>`;
};

function objectType(schema: Shown, names: Names, ownName: string = ""): string {
  const { properties, required = [], additionalProperties: rest } = schema;
  const item = typeof rest === "object" ? typeOf(rest, names) : "unknown";
  if (properties === undefined) return `Readonly<Record<string, ${item}>>`;
  const entries = Object.entries(properties).map(([key, field]) => {
    const parameter = GENERIC[ownName]?.find((one) => PARAMETERS[one]?.field === key);
    return { key, field, type: parameter ?? typeOf(field, names) };
  });
  const fields = entries.map(
    ({ key, field, type }) => `${comment(field)}readonly ${key}${required.includes(key) ? "" : "?"}: ${type};`,
  );
  // What stands under a name of its own is also one of all names, as far as the compiler can say.
  const all = union([item, ...entries.map(({ type }) => type), "undefined"]);
  const others = typeof rest === "object" ? [`/** Others, each by its name. */\nreadonly [name: string]: ${all};`] : [];
  return `{\n${[...fields, ...others].join("\n")}\n}`;
}

/** The sentence of a schema, with its default, as people see it on a field. */
function comment(schema: Schema, fallback: string = ""): string {
  const { description = fallback, default: value } = notesOf(schema);
  const shown = typeof value === "string" ? value : JSON.stringify(value);
  const said = [description, value === undefined ? "" : `Default: ${shown}.`].filter((part) => part !== "").join(" ");
  if (said === "") return "";
  const lines = wrapped(said.replaceAll("*/", "*\\/"));
  return lines.length === 1 ? `/** ${lines[0]} */\n` : `/**\n${lines.map((line) => ` * ${line}\n`).join("")} */\n`;
}

function wrapped(text: string): string[] {
  const lines: string[] = [""];
  for (const word of text.split(" ")) {
    const last = lines.at(-1) as string;
    if (last !== "" && last.length + word.length >= WIDTH) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines;
}

const declared = ([name, schema]: Named, names: Names): string => {
  const type = typeOf(schema as Shown, names, name);
  return `${comment(schema, ABOUT[name])}export type ${name}${parametersOf(name)} = ${type};\n`;
};

// ------------------------------------------------------------------- config

/** The config as the engine takes it: the sections of the file without those that are for the service around it. */
function configInput(): string {
  const { log, ...sections } = coreSections;
  const { url: _, ...logKnobs } = (log as Shown).properties as Record<string, Schema>;
  const whole = {
    type: "object",
    description:
      "What differs from the defaults. Spans are milliseconds, or text with a unit: 250ms, 30s, 5m, 24h, 30d.",
    properties: { ...sections, log: { ...log, properties: logKnobs } },
  } as unknown as Schema;
  const parts: readonly Named[] = [
    ["SchedulerInput", coreSections.scheduler as Schema],
    ["ProjectInput", (coreSections.projects as Shown).additionalProperties as Schema],
    ["GateInput", (coreSections.gates as Shown).additionalProperties as Schema],
    ["BudgetInput", coreSections.budget as Schema],
  ];
  const names = namesOf(parts);
  const all: readonly Named[] = [...parts, ["ConfigInput", whole]];
  return all.map((named) => declared(named, names)).join("\n");
}

// -------------------------------------------------------------------- plans

/** A plan file as JSON. Sections that are also in drover.yml are those of the config. */
function planDocument(): string {
  const properties = (planSchema as Shown).properties as Record<string, Schema>;
  const known: readonly Named[] = [
    ["SchedulerInput", coreSections.scheduler as Schema],
    ["GateInput", (coreSections.gates as Shown).additionalProperties as Schema],
  ];
  const own: readonly Named[] = [
    ["PlanTaskDefaults", properties.defaults as Schema],
    ["PlanTaskDocument", taskSection as unknown as Schema],
    ["PlanDocument", planSchema as unknown as Schema],
  ];
  const names = namesOf([...known, ...own]);
  const imported = `import type { ${known.map(([name]) => name).join(", ")} } from "./config-input.ts";\n\n`;
  return imported + own.map((named) => declared(named, names)).join("\n");
}

// -------------------------------------------------------------------- wire

const MODULES = {
  tasks,
  "task-calls": taskCalls,
  groups,
  plans,
  workers,
  "worker-logs": workerLogs,
  permits,
  projects,
  schedules,
  scheduler,
  events,
  files,
  approvals,
  loops,
  usage,
  bulk,
  watching,
  cluster,
} as const;
type Module = keyof typeof MODULES;

/** Shapes inside others that have a name of their own, by their place; the module is that of the shape around them. */
const INNER: Readonly<Record<string, string>> = {
  PriorityName: "tasks taskBody.priority|1",
  Warning: "tasks submitted.warnings[]",
  BatchItem: "tasks batchAnswer.tasks[]",
  BulkItem: "bulk bulkAnswer.answers[]",
  WaitAnyItem: "bulk waitAnyAnswer.answers[]",
  UsageView: "usage attemptUsage.usage",
  UsageRow: "usage usageReport.rows[]",
  CancelFilter: "task-calls cancelWhereBody.filter",
  WhyCondition: "task-calls whyAnswer.conditions[]",
  WhyAhead: "task-calls whyAnswer.ahead.next[]",
  PlanState: "plans planSummary.state",
  WorkerResources: "workers joinBody.resources",
  AttemptRef: "workers syncAnswer.cancel[]",
  NamedAssignment: "workers syncAnswer.named[]",
  RunningReport: "workers syncBody.running[]",
  ResultReport: "workers syncBody.results[]",
  AttemptOutcome: "workers syncBody.results[].outcome",
  Assignment: "workers syncAnswer.assignments[]",
  ResultAnswer: "workers syncAnswer.results[]",
  WantedLog: "workers syncAnswer.logs[]",
  WorkerView: "workers workerList.workers[]",
  GateJson: "projects gateList.gates[]",
  GateStats: "projects gateDetail.stats",
  GateCall: "projects gateDetail.calls[]",
  ScheduleTask: "schedules scheduleBody.task",
  ClusterNode: "cluster clusterView.nodes[]",
  ClusterLog: "cluster clusterView.log",
  JournalMember: "cluster clusterView.log.members[]",
  TaskLink: "watching taskLinks.up[]",
  StuckTask: "watching stuck.tasks[]",
  SettingView: "watching settingsView.settings[]",
  LogPlace: "watching verified.head",
  VerifiedProblem: "watching verified.problems[]",
  Sample: "watching history.samples[]",
  ProjectSample: "watching history.samples[].projects[]",
  AgentTotals: "scheduler stats.metrics.agents{}",
  ProjectQueue: "scheduler queueView.projects[]",
  AgentQueue: "scheduler queueView.projects[].agents[]",
  QueuedTask: "scheduler queueView.projects[].agents[].next[]",
  LinePart: "scheduler lineView.tasks",
  LineEntry: "scheduler lineView.tasks.next[]",
  LineGate: "scheduler lineView.tasks.gates[]",
};
/** Types that TypeScript says better than a schema, and which are written by hand. */
const BY_HAND = ["planDocument", "eventJson", "eventPage", "schedulerSection", "schedulerConfig", "configPatchBody"];
const ELSEWHERE: readonly (readonly [name: string, schema: Schema, file: string])[] = [
  ["TaskState", oneOf(...TASK_STATES), "../wire/task-state.ts"],
  ["EventKind", oneOf(...EVENT_KINDS), "../../core/model/index.ts"],
  ["SchedulerRules", scheduler.schedulerSection, "../../core/config/index.ts"],
];

/** What each type is; a schema has a sentence of its own only where it needs one. */
const ABOUT: Readonly<Record<string, string>> = {
  PlanDocument: "A plan file as JSON.",
  PriorityName: "How urgent something is, by name.",
  Resources: "What a task takes of a machine.",
  TaskBody: "What a caller may say of a task.",
  BatchTask: "An item of a batch: its agent is the batch's, whether it says so or not.",
  BatchBody: "Many tasks of one agent.",
  Warning: "It will not go as asked: `never-fits`, `no-workers`, `over-budget` or `priority-clamped`.",
  Submitted: "What Drover answers to a task it has taken.",
  BatchItem: "What became of an item of a batch.",
  BatchAnswer: "What became of a batch.",
  TaskView: "A task as Drover shows it: the submitted fields, where it stands, how it ended. What is unset is absent.",
  Input: "How a task ended, for one that needs it.",
  ApprovalBody: "What somebody must approve.",
  ApprovalView: "What somebody is asked, or has answered.",
  ApproveBody: "What somebody answers.",
  Loop: "How often a task may run again, and until when.",
  UsageQuery: "Whose usage, and by what it is summed up.",
  UsageSum: "What some attempts used together.",
  UsageRow: "What was used, of one project, agent, type, label or day.",
  UsageReport: "What was used, row by row.",
  RoundUsage: "What a round of a loop used.",
  AttemptUsage: "What one attempt used.",
  Round: "A round of a loop that has ended.",
  CurrentRound: "Where a loop is.",
  Inputs: "How tasks ended, for one that needs them, by name.",
  AssignedView: "A task as its worker sees it.",
  LeanTask: "The same without what its worker knows without it.",
  TasksQuery: "Which tasks, and how many of them.",
  TaskPage: "A page of tasks.",
  PatchBody: "What to change of a task.",
  CancelBody: "Why a task is cancelled.",
  Cancelled: "A task was cancelled.",
  CancelFilter: "Which tasks to cancel.",
  CancelWhereBody: "Which tasks to cancel.",
  CancelledMany: "Tasks were cancelled.",
  PutPlanQuery: "How a plan is put.",
  PlanState: "Where a plan is.",
  PlanSummary: "A plan as it is listed.",
  PlanTaskView: "A task of a plan.",
  PlanView: "A plan as Drover shows it.",
  PlanPut: "What putting a plan came to.",
  PlanChanged: "Tasks of a plan were cancelled, or run again.",
  PlanQuery: "What else is told of a plan.",
  PlansQuery: "Which page of plans.",
  PlanPage: "A page of plans.",
  PlanStatus: "A plan was forgotten.",
  GroupView: "A group as Drover shows it.",
  GroupCancelled: "What lived of a group was cancelled.",
  GroupRetried: "What did not go well of a group runs again.",
  WhyQuery: "As of which event.",
  WaitQuery: "How long to wait.",
  LogsQuery: "What of the output.",
  TaskLogs: "The end of what an attempt wrote.",
  WhyCondition: "A condition between a task and its start.",
  WhyAhead: "A task that goes first.",
  WhyAnswer: "Why a task is not running.",
  UsageView: "What attempts used.",
  Usage: "The tokens that were used.",
  WorkerResources: "What a worker offers of its machine.",
  WorkerOptions: "What any worker says of itself.",
  JoinBody: "What a worker says of itself when it joins.",
  Joined: "A worker has joined.",
  AttemptRef: "An attempt of a task.",
  NamedAssignment: "Which attempt an assignment is of.",
  RunningReport: "An attempt that runs, as its worker reports it.",
  AttemptOutcome: "How an attempt ended.",
  ResultReport: "How an attempt ended, as its worker reports it.",
  SyncBody: "What a worker reports: what runs, what has ended, what it could take.",
  Assignment: "An attempt that a worker is to run.",
  ResultAnswer: "What became of a result.",
  WantedLog: "A caller wants to see the end of what an attempt wrote.",
  LogBody: "The end of what an attempt wrote, handed in.",
  LogStatus: "What became of a log that was handed in.",
  SyncAnswer: "What a worker is to run and to stop.",
  WorkerView: "A worker as Drover shows it.",
  WorkerList: "All workers.",
  LeaveQuery: "Which session leaves.",
  WorkerStatus: "A worker drains, or has left.",
  PermitBody: "A request for the right to make one call.",
  PermitView: "A permit, or the place of one that waits.",
  SettleBody: "What came of a call.",
  DropQuery: "Which session gives the permit up.",
  PermitStatus: "What became of a permit.",
  GateStatus: "What became of a gate.",
  ProjectBody: "Settings of a project. What is absent keeps its value.",
  ProjectView: "A project as Drover shows it.",
  ProjectList: "All projects.",
  GateJson: "A gate as Drover shows it.",
  GateStats: "What a gate has done altogether.",
  GateCall: "A call that is out or waits.",
  GateDetail: "A gate with its totals and its calls.",
  GateList: "All gates.",
  ScheduleTask: "A task without an id, since each instant has its own, and without a deadline, since that would pass.",
  ScheduleBody: "A recurring task.",
  ScheduleView: "A recurring task as Drover shows it.",
  SchedulesQuery: "How many recurring tasks.",
  SchedulePage: "A page of recurring tasks.",
  ScheduleStatus: "A recurring task was removed.",
  AgentTotals: "What became of the tasks of an agent.",
  Stats: "Queues, totals and the rules in force.",
  QueuedTask: "A task that waits for its turn.",
  AgentQueue: "The queue of an agent.",
  ProjectQueue: "The queues of a project.",
  QueueView: "Who waits.",
  LineQuery: "How much of each list.",
  LineEntry: "A task or a call that is out or waits for its turn.",
  LineGate: "What a gate lets out, and what waits at it.",
  LinePart: "What is out and what waits, in order, with totals.",
  LineView: "What runs and what starts next.",
  PauseBody: "What to pause; neither of them: the whole fleet.",
  PauseStatus: "What is paused, or goes on.",
  EventsQuery: "Which events, and how many of them.",
  LinksQuery: "Which links of a task, and how many of each direction.",
  Health: "The process is alive.",
  Readiness: "The server takes work.",
  WhoAmI: "Who a token speaks for.",
  Pulse: "Whether anything has happened.",
  TaskLink: "A task that another is tied to.",
  TaskLinks: "What a task is tied to.",
  StuckTask: "A queued task that needs a person.",
  Stuck: "Queued tasks that need a person.",
  SettingView: "A knob of the config, and who set it.",
  SettingsView: "The config in force.",
  LogPlace: "An event, and the hash of the chain there.",
  VerifiedProblem: "What is wrong with a log.",
  Verified: "Whether a log is what was written.",
  HistoryQuery: "Which samples.",
  ProjectSample: "How a project stood at an instant.",
  Sample: "How things stood at an instant.",
  History: "How things stood over a while.",
  ClusterNode: "A node of a cluster, as another one sees it.",
  ClusterLog: "The journal that the nodes of a cluster share.",
  JournalMember: "A server that keeps a journal.",
  ClusterView: "All nodes of a cluster, and their journal.",
  FileRef: "A file that a task left.",
  FileName: "The hash of a file.",
  PutFileQuery: "The attempt that leaves a file.",
  FileQuery: "By whom a file is asked for.",
  StoredFile: "A file is kept.",
  BulkCall: "A call that travels with others.",
  BulkBody: "Calls that travel together.",
  WaitAnyBody: "Tasks that are waited for together.",
  WaitPermitsBody: "Permits that are waited for together.",
  WaitPermitsAnswer: "Which of the permits wait no more.",
  BulkItem: "What a call of a bulk is answered.",
  WaitAnyItem: "What a wait for one of many tasks is answered.",
  BulkAnswer: "What calls that travelled together are answered.",
  WaitAnyAnswer: "What has ended of the tasks that are waited for.",
};

const capitalised = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
const isSchema = (value: unknown): value is Schema => typeof value === "object" && value !== null && "~check" in value;

function placeIn(schema: Schema, path: string): Schema {
  let found = schema as Shown;
  for (const [step] of path.matchAll(/\.\w+|\[\]|\{\}|\|\d/g)) {
    const { properties, items, anyOf, additionalProperties: rest } = found;
    const optional = { "[]": items, "{}": rest as Shown }[step];
    found = (optional ?? (step[0] === "|" ? anyOf?.[Number(step[1])] : properties?.[step.slice(1)])) as Shown;
  }
  return found;
}

function namedIn(module: Module): Named[] {
  const exported = Object.entries(MODULES[module]).filter(
    ([name, value]) => isSchema(value) && !BY_HAND.includes(name),
  );
  const inner = Object.entries(INNER).filter(([, at]) => at.startsWith(`${module} `));
  return [
    ...exported.map(([name, schema]): Named => [capitalised(name), schema as Schema]),
    ...inner.map(([name, at]): Named => {
      const [, root = "", path = ""] = /^\S+ (\w+)(.*)$/.exec(at) ?? [];
      return [name, placeIn((MODULES[module] as unknown as Record<string, Schema>)[root] as Schema, path)];
    }),
  ];
}

function shapesOf(module: Module): string {
  const sources = (Object.keys(MODULES) as Module[]).flatMap((one) =>
    namedIn(one).map(([name, schema]) => [name, schema, one === module ? "" : `./${one}.ts`] as const),
  );
  const all = [...sources, ...ELSEWHERE];
  const names = namesOf(all.map(([name, schema]) => [name, schema]));
  const text = namedIn(module)
    .map((named) => declared(named, names))
    .join("\n");
  const code = text.replaceAll(/\/\*\*.*?\*\//gs, "").replaceAll(/"[^"]*"/g, "");
  const imports = all
    .filter(([name, , file]) => file !== "" && new RegExp(`\\b${name}\\b`).test(code))
    .map(([name, , file]) => `import type { ${name} } from "${file}";\n`);
  return `${HEAD(`Types of the wire: those of shapes/${module}.ts.`)}${imports.sort().join("")}\n${text}`;
}

// -------------------------------------------------------------------- files

const HEAD = (what: string): string =>
  `/**\n * ${what}\n *\n * Written by tools/schema-declarations.ts from the schemas: change those, and run it.\n` +
  " */\n\n";

/** Every generated file with its text, as the formatter writes it. */
export const generatedFiles = (): ReadonlyMap<string, string> =>
  new Map(
    Object.entries({
      "config-input": HEAD("The config as people write it in TypeScript.") + configInput(),
      "plan-document": HEAD("A plan file as JSON, for the compiler.") + planDocument(),
      ...Object.fromEntries(Object.keys(MODULES).map((module) => [module, shapesOf(module as Module)])),
    }).map(([name, text]) => {
      const path = `src/protocol/generated/${name}.ts`;
      return [path, formatted(path, text)];
    }),
  );

function formatted(path: string, text: string): string {
  const biome = join(ROOT, "node_modules/.bin/biome");
  const done = spawnSync(biome, ["check", "--write", `--stdin-file-path=${path}`], {
    cwd: ROOT,
    input: text,
    encoding: "utf8",
  });
  if (done.status !== 0) throw new Error(`${path}: ${done.stderr}\n${text}`);
  return done.stdout;
}

if (import.meta.main) for (const [path, text] of generatedFiles()) writeFileSync(join(ROOT, path), text);
