/**
 * What may stand in a plan file, as a schema: editors complete and explain it, and the reader checks by it.
 *
 * The sections that are also in drover.yml (scheduler, projects, gates) are the same schemas, so a knob means the same
 * in both. What is new here is how work is written down: a task is a command line, or an object with the command and
 * what it waits for. Checks that need more than one value (needs that exist, cycles, commands) are in
 * tasks.ts.
 */

import {
  CAPABILITY_LENGTH_MAX,
  type PlanTaskDefaults,
  type PlanTaskDocument,
  priority,
  settingsSchema,
} from "../protocol/index.ts";
import * as s from "../protocol/schema/index.ts";
import {
  type Knobs,
  knob,
  namedSection,
  type Published,
  published,
  type Section,
  section,
  spanKnob,
  withUnits,
} from "../protocol/schema/index.ts";
import { labels, outputPath, outputs } from "../protocol/shapes/index.ts";
import { PRESET_NAMES } from "./work/work.ts";

const TASK_NAME = "^[A-Za-z_][A-Za-z0-9_.-]{0,99}$";
const VARIABLE_NAME = "^[A-Za-z_][A-Za-z0-9_]{0,99}$";
export const TASKS_MAX = 10_000;
export const KILL_GRACE_MS = 10_000;
const TEXT_MAX = 256 * 1024;
const WORDS_MAX = 1000;

const line = (): s.Schema<string> => s.text(1, TEXT_MAX);
const words = (): s.Schema<readonly string[]> => s.list(s.text(0, TEXT_MAX), { max: WORDS_MAX });
const said = (schema: s.Schema, description: string): s.Schema => s.described(schema, description);
/** One, or a list of them. */
const some = (one: s.Schema, expected: string): s.Schema =>
  s.either(one, s.list(one, { max: TASKS_MAX }), expected) as s.Schema;

const scalar: s.Schema = s.anyOf<unknown>(
  [s.text(0, TEXT_MAX), s.anyNumber(), s.flag()],
  "text, a number, true or false",
);
const named = (value: s.Schema, pattern: string, expected: string): s.Schema =>
  s.table(value, s.matching(pattern, expected));

const VARIABLE = "a name of letters, digits and _, such as API_URL";
const variables = (): s.Schema => named(scalar, VARIABLE_NAME, VARIABLE);

const worktree = (fields: Knobs, expected: string): s.Schema =>
  knob(
    s.either(s.flag(), section(fields), expected) as s.Schema,
    false,
    "A git worktree and branch of its own for each attempt.",
  );
const BASE = knob(s.text(1, 256), "HEAD", "The branch, tag or commit it begins from.");
const FLOW: Knobs = {
  base: BASE,
  from: said(s.text(1, 1024), "A need: it begins from the branch that need left."),
  merge: said(
    some(s.text(1, 1024), "the name of a need, or a list of names"),
    "Needs: the branches they left are merged into its base, in this order.",
  ),
};

const capability = s.name(CAPABILITY_LENGTH_MAX);

/** What a task may have and `defaults` may give to all of them. */
const shared: Knobs = {
  agent: knob(s.name(), "me", "Who submits it: agents of a project take turns."),
  project: knob(s.name(), "default", "Who pays."),
  type: said(
    s.name(),
    "plan, spec, phase, code, or any name; if absent, command, agent or its action. limits.perType counts by it.",
  ),
  priority: knob(priority(), "normal", "critical, high, normal, low, or a whole number; lower is sooner."),
  provider: said(s.nullable(s.name()), "The gate its command goes through, such as anthropic/default; see gates."),
  env: said(variables(), "Variables for the command, by name."),
  passEnv: said(some(s.text(1, 256), "a name, or a list of names"), "Variables of yours it may see; * stands for any."),
  cwd: knob(line(), ".", "Where it runs, from the plan file's directory."),
  shell: knob(s.flag(), true, "false: the line is split into words and run without a shell."),
  worktree: worktree({ base: BASE }, "true, false, or an object with base"),
  timeout: said(s.nullable(s.span(1)), "How long one attempt may take, such as 30s, 10m, 2h."),
  idleTimeout: said(s.nullable(s.span(1)), "How long it may write nothing."),
  attempts: knob(s.whole(1, 1_000_000), 1, "How often it is tried before it has failed."),
  capabilities: said(
    s.either(capability, s.list(capability, { max: 64 }), "a name, or a list of at most 64 names") as s.Schema,
    "What its worker must offer, such as gpu; on a server only: a run alone offers none.",
  ),
  zone: said(s.name(), "The zone it prefers, where placement looks at zones."),
  labels: said(labels(), "At most 32 texts by name, by which tasks are found: { team: web }."),
  tokens: said(s.whole(0, 1_000_000_000_000), "How many tokens it will use, as far as is known."),
  onDependencyFailure: knob(s.oneOf("skip", "run"), "skip", "run: it runs also if what it needs did not end well."),
  onLoss: knob(s.oneOf("retry", "fail"), "retry", "fail: it fails if it had begun when drover run was killed."),
};

const NEEDS = "the name of a task, or a list of names";
const own: Knobs = {
  run: said(
    s.either(line(), s.list(s.text(0, TEXT_MAX), { min: 1, max: WORDS_MAX }), "a command line, or a list of words"),
    "A command line for /bin/sh -e, or a list of words that is run without a shell.",
  ),
  preset: said(s.oneOf(...PRESET_NAMES), "A coding agent instead of a command; prompt is its instruction."),
  prompt: said(line(), "What the agent is to do."),
  model: said(s.name(200), "The agent's model."),
  args: said(words(), "Further words for the agent's command line."),
  input: said(s.text(0, TEXT_MAX), "What the command reads from its standard input; nothing if absent."),
  action: said(
    s.name(),
    "An action instead of a command: for whatever worker of the server takes it, such as one of your own program.",
  ),
  params: said(s.anyObject(), "What that worker is given; an expression that is a whole text becomes its value."),
  needs: said(some(s.text(1, 1024), NEEDS), "Tasks that must be done first."),
  if: said(
    s.either(s.text(1, TEXT_MAX), s.flag(), "an expression, such as needs.review.result.ok, or true or false"),
    "It runs only if this is true once all it needs has ended; otherwise it is skipped.",
  ),
  locks: said(some(s.name(), "a name, or a list of names"), "Names only one running task may hold at a time."),
  approval: said(
    s.either(
      s.exactly(true),
      section({
        question: said(line(), "What is asked."),
        timeout: said(s.span(1), "After so long without an answer it has failed."),
      }),
      "true, or an object with question and timeout",
    ) as s.Schema,
    "Somebody must approve it before it starts.",
  ),
  wait: said(
    s.oneOf("children"),
    "children: it is done only when all has ended that its command submits while it runs.",
  ),
  loop: said(
    section({
      until: said(
        line(),
        "A line for /bin/sh, run where the task runs when its command has ended with 0; exit 0: done.",
      ),
      max: said(s.whole(1, 1000), "How many rounds there may be; needed."),
    }),
    "It runs again until this says that its work is good; what it prints is what the next round sees.",
  ),
  outputs: said(
    s.either(outputPath(), outputs(), "a path, or a list of at most 64 paths") as s.Schema,
    "Files it leaves for those that need it: paths in its directory, or patterns with *, ? and **.",
  ),
  for: said(
    named(s.list(scalar, { min: 1, max: TASKS_MAX }), VARIABLE_NAME, VARIABLE),
    "One task for each value, which is in this variable; with several variables, for each combination.",
  ),
};

const FLOWS = "true, false, or an object with base, from or merge";
export const taskSection: Section = section(
  { ...own, ...shared, worktree: worktree(FLOW, FLOWS) },
  { description: "A task." },
);
const TASK = 'a command line, or an object such as { run: "make test", needs: [build] }';
const task: s.Schema = s.either(line(), taskSection, TASK) as s.Schema;

type Properties = { readonly properties: Readonly<Record<string, s.Schema>> };
const coreSection = (key: string): s.Schema => (settingsSchema as unknown as Properties).properties[key] as s.Schema;
/** Of a section that people's own names stand in: the schema behind such a name. */
const itemOf = (key: string): Section =>
  (coreSection(key) as unknown as { additionalProperties: Section }).additionalProperties;

const budget = (description: string): s.Schema =>
  said(
    s.either(
      s.nullable(s.whole(1)),
      section({
        limit: knob(s.nullable(s.whole(1)), null, "Tokens; null: as many as wanted."),
        window: said(s.span(1000), "Within this span; if absent, ever."),
      }),
      "a number of tokens, or an object with limit and window",
    ) as s.Schema,
    description,
  );

const projectItem: Section = section(
  {
    ...(itemOf("projects") as unknown as Properties).properties,
    budget: budget("The tokens its tasks may use, over all runs of this plan."),
  },
  { description: "A project." },
);

const scheduler = coreSection("scheduler") as unknown as Properties;
const limitKnob = (key: string): s.Schema => scheduler.properties[key] as s.Schema;
export const LIMITS = ["maxInFlight", "maxPerAgentInFlight", "perType"] as const;

export const planSchema: Section = section({
  $schema: said(s.text(0, 2048), "The address of this schema, for editors."),
  version: knob(s.exactly(1), 1, "Of this format."),
  name: said(
    s.matching(TASK_NAME, "a name of letters, digits, _, . and -"),
    "Names the log, .drover/runs/NAME; if absent, the name of the file.",
  ),
  workers: section(
    {
      slots: said(s.whole(1, 10_000), "How many commands run at once; if absent, one for each core."),
      killGrace: spanKnob(0, KILL_GRACE_MS, "From the first signal to a command that must stop until it is killed."),
      maxWorktrees: knob(s.whole(1, 100_000), 50, "How many worktrees there may be."),
    },
    { description: "This machine." },
  ),
  defaults: section(shared, { description: "What holds for every task that says nothing else." }),
  projects: namedSection(
    { default: s.described(projectItem, "Of tasks that name no project.") },
    projectItem,
    "Who pays; each by its name.",
  ),
  budget: budget("The tokens of all projects together."),
  limits: section(Object.fromEntries(LIMITS.map((key) => [key, limitKnob(key)])), { description: "How many at once." }),
  scheduler: coreSection("scheduler"),
  gates: coreSection("gates"),
  tasks: said(named(task, TASK_NAME, "a name of letters, digits, _, . and -, not beginning with a digit"), "The work."),
});

const planJsonSchema = (): Published => ({
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "A plan for drover run",
  description: "Spans are text with a unit: 250ms, 30s, 5m, 24h, 30d.",
  ...withUnits(published(planSchema)),
  required: ["tasks"],
});

/** The file that editors read. */
export const planSchemaText = (): string => `${JSON.stringify(planJsonSchema(), null, 2)}\n`;

// ---------------------------------- the same for the compiler: a plan as it is written, once nothing is wrong with it

export type OneOrMore = string | readonly string[];
type Span = string | number;
export type RawBudget = number | null | { readonly limit?: number | null; readonly window?: Span };

/** What a task may have and `defaults` may give to all of them. */
export type Shared = PlanTaskDefaults;
export type RawTask = PlanTaskDocument;
export type RawTasks = Readonly<Record<string, string | RawTask | null>>;
type Settings = Readonly<Record<string, unknown>>;
export type RawPlan = {
  readonly version?: 1;
  readonly name?: string;
  readonly workers?: { readonly slots?: number; readonly killGrace?: Span; readonly maxWorktrees?: number } | null;
  readonly defaults?: Shared | null;
  readonly projects?: Readonly<Record<string, (Settings & { readonly budget?: RawBudget }) | null>> | null;
  readonly budget?: RawBudget;
  readonly limits?: Settings | null;
  readonly scheduler?: Settings | null;
  readonly gates?: Readonly<Record<string, Settings | null>> | null;
  readonly tasks?: RawTasks | null;
};
