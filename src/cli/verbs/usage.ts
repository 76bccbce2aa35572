/**
 * `drover usage`: what was used, by project, agent, type, day or a label.
 */
import type { UsageReport, UsageRow } from "../../protocol/index.ts";
import { answering } from "../shell/connection.ts";
import type { Output } from "../shell/output.ts";
import { given, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { cost, count } from "../show/time.ts";
import { type SinceFlags, sinceFlag, sinceFrom } from "./pages.ts";

type Flags = SinceFlags & {
  readonly by?: string;
  readonly project?: string;
  readonly agent?: string;
  readonly limit?: number;
};

export const usageVerb: VerbBody<Flags> = {
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
