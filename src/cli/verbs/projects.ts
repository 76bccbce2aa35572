/**
 * `drover projects`: who pays, what they were charged, what they may spend; and how to change that. `drover usage`:
 * what was used, by project, agent, type, day or a label.
 */
import type { ProjectBody, UsageReport, UsageRow } from "../../protocol/index.ts";
import { answering, idOf } from "../shell/connection.ts";
import type { Output } from "../shell/output.ts";
import { usageProblem } from "../shell/problem.ts";
import { BadValue, given, milliseconds, numberAbove, type Verb, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { projectTable } from "../show/fleet-view.ts";
import { cost, count } from "../show/time.ts";
import { type SinceFlags, sinceFlag, sinceFrom } from "./pages.ts";
import { PRIORITIES, priorityFrom } from "./task-flags.ts";

type SetFlags = {
  readonly weight?: number;
  readonly maxConcurrent?: number;
  readonly budget?: number | "none";
  readonly window?: number;
  readonly maxPriority?: string;
  readonly provider?: string;
};

function budgetFrom(text: string): number | "none" {
  if (text === "none") return text;
  const value = Number(text.replaceAll("_", ""));
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new BadValue("It must be a whole number of tokens, or none.");
}

const set: Verb<SetFlags> = {
  name: "set",
  summary: "register a project or change it; what is not named keeps its value",
  takes: [{ name: "<id>", about: "the project" }],
  flags: [
    { flags: "--weight <n>", about: "its share next to others", read: numberAbove(0, 1_000_000) },
    { flags: "--max-concurrent <n>", about: "how many of its tasks run at once", read: wholeNumber(1) },
    { flags: "--budget <tokens>", about: "tokens in the window, or none", read: budgetFrom },
    { flags: "--window <span>", about: "the window of the budget: 24h, 7d", read: milliseconds },
    {
      flags: "--max-priority <n>",
      about: "the most urgent its tasks may be: critical, high, normal, low or a number",
      words: PRIORITIES,
    },
    { flags: "--provider <gate>", about: "the gate of its tasks that name none; none takes it away" },
  ],
  examples: [
    ["drover projects set web --weight 3", "three times the share of a project of weight 1"],
    ["drover projects set web --budget 2_000_000 --window 24h", "two million tokens in any 24 hours"],
  ],
  run: answering(
    (client, call) => client.putProject(idOf(call), bodyFrom(call.flags)),
    (project, output) => projectTable([project], output),
  ),
};

function bodyFrom({ weight, maxConcurrent, budget, window, maxPriority, provider }: SetFlags): ProjectBody {
  const limits = given({ limit: budget === "none" ? null : budget, window });
  const body = given({
    weight,
    maxConcurrent,
    budget: Object.keys(limits).length === 0 ? undefined : limits,
    maxPriority: maxPriority === undefined ? undefined : priorityFrom(maxPriority),
    provider: provider === "none" ? null : provider,
  });
  if (Object.keys(body).length === 0) throw usageProblem("nothing to set", "drover help projects set lists the flags");
  return body;
}

const list: Verb<Record<never, never>> = {
  name: "list",
  summary: "list projects (the same as drover projects)",
  examples: [["drover projects list --json", "for a program"]],
  run: answering(
    (client) => client.projects(),
    ({ count, projects }, output) =>
      count === 0
        ? "No project yet: the first task of one creates it, or drover projects set NAME --weight 1.\n"
        : projectTable(projects, output),
  ),
};

export const projectsVerb: VerbBody<Record<never, never>> = {
  about:
    "Who has which share, and what each may spend. TO RUN counts tasks that wait for others and queued ones alike.",
  examples: [["drover projects", "weights, charges, levels, budgets"]],
  verbs: [list, set] as readonly Verb<never>[],
  ...(list.run === undefined ? {} : { run: list.run }),
};

type UsageFlags = SinceFlags & {
  readonly by?: string;
  readonly project?: string;
  readonly agent?: string;
  readonly limit?: number;
};

export const usageVerb: VerbBody<UsageFlags> = {
  about:
    "What attempts said they used, also those of tasks that are long gone. Days are those of UTC. By a label, what " +
    "has no such label is left out.",
  flags: [
    {
      flags: "--by <what>",
      about: "project, agent, type, day, or label:KEY (default: project)",
      words: ["project", "agent", "type", "day", "label:"],
    },
    { flags: "-p, --project <name>", about: "only of this project" },
    { flags: "-a, --agent <name>", about: "only of this agent" },
    sinceFlag("was used"),
    { flags: "-n, --limit <n>", about: "how many rows (default: 100)", read: wholeNumber(1, 1000) },
  ],
  examples: [
    ["drover usage", "by project, those that used most first"],
    ["drover usage --by day --since 7d", "day by day, the last first"],
    ["drover usage --by label:team --project web", "by the label team, of one project"],
  ],
  run: answering((client, { flags, terminal }) => {
    const { by, project, agent, limit } = flags;
    return client.usage(given({ by, project, agentId: agent, limit, since: sinceFrom(flags, terminal.now()) }));
  }, usageTable),
};

function usageTable({ by, rows, total, omitted, completeSince }: UsageReport, output: Output): string {
  if (rows.length === 0) return "Nothing was used, as far as attempts have said.\n";
  const sum: UsageRow = { key: omitted === undefined ? "all" : `all, with ${omitted} more`, ...total };
  const table = output.table(rows.length === 1 ? rows : [...rows, sum], [
    { title: by.toUpperCase(), of: ({ key }) => key, stays: true },
    { title: "ATTEMPTS", of: ({ attempts }) => count(attempts), align: "right" },
    { title: "TOKENS IN", of: ({ usage }) => count(usage.inputTokens), align: "right" },
    { title: "OUT", of: ({ usage }) => count(usage.outputTokens), align: "right" },
    { title: "FROM A CACHE", of: ({ usage }) => count(usage.cachedTokens), align: "right" },
    { title: "COST", of: ({ usage }) => cost(usage.cost), align: "right" },
  ]);
  const note =
    completeSince === undefined ? "" : `\nWhat was used before ${completeSince} is not known in full any more.\n`;
  return table + note;
}
