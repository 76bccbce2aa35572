/**
 * Help for people who have just arrived: a short overview, and topics that belong to no single verb.
 */
import type { Command } from "commander";
import { EXIT, EXIT_MEANINGS, usageProblem } from "./shell/problem.ts";
import { painter } from "./shell/text.ts";
import type { ListedVerb, Program, VerbBody } from "./shell/verb.ts";

const CONFIG_HELP = `Where settings come from, the later over the earlier, field by field:

  1. the defaults                  drover config show --effective lists them all
  2. your own file                 $XDG_CONFIG_HOME/drover/drover.yml, or ~/.config/drover/drover.yml
  3. ./drover.yml                  or the file that --config or DROVER_CONFIG names
  4. variables                     DROVER_SCHEDULER__MAX_IN_FLIGHT=10
  5. flags                         --set scheduler.maxInFlight=10, and those of the verb, such as --port
  6. PATCH /scheduler/config       kept in the log, until it is patched back to null

A knob's variable is its path in capitals: DROVER_, the words of a name joined by _, names by __.
  scheduler.maxInFlight            DROVER_SCHEDULER__MAX_IN_FLIGHT=10
  projects.web.weight              DROVER_PROJECTS__WEB__WEIGHT=3
  gates.anthropic/default.requests 'DROVER_GATES__anthropic/default__REQUESTS=40'
A name people choose is taken in small letters if it is all capitals, and else as it stands.

Values of variables and --set are read as YAML: 30s, true, null, {plan: 1}. An empty value, null, or nothing
after the colon clears what lower layers said: the default holds again (for limits that may be null: none).

Not knobs: DROVER_URL and DROVER_TOKEN (how verbs find the server), DROVER_AGENT (who submits), DROVER_DATA
(short for a log in that directory), DROVER_CONFIG.

The server reads its files again when they change and on SIGHUP. A bad file changes nothing and is complained of;
so does one that is gone or empty, and one that would take away the last token: that needs a restart.
`;

/** The text of `drover help exit-codes`. */
function exitCodeHelp(): string {
  const rows = EXIT_MEANINGS.map(
    ([code, name, meaning]) => `  ${String(code).padStart(3)}  ${name.padEnd(12)} ${meaning}`,
  );
  return ["Exit codes", "", ...rows, ""].join("\n");
}

const TOPICS: Readonly<Record<string, () => string>> = { "exit-codes": exitCodeHelp, config: () => CONFIG_HELP };

export const helpVerb: VerbBody<never> = {
  takes: [{ name: "[topic...]", about: "a verb, exit-codes, or config", words: Object.keys(TOPICS) }],
  examples: [
    ["drover help submit", "the flags of submit, with examples"],
    ["drover help exit-codes", "what the numbers mean"],
    ["drover help config", "files, variables and flags, and which wins"],
  ],
  run: async ({ args, terminal, program }) => {
    const [topic] = args;
    const shown = topic === undefined ? undefined : TOPICS[topic];
    // A verb that is also a topic (config) is better explained by the topic; --help still shows its flags.
    if (shown !== undefined && args.length === 1 && Object.hasOwn(TOPICS, topic ?? "")) terminal.out(shown());
    else (await commandAt(await program(), args)).outputHelp();
    return EXIT.ok;
  },
};

/** The command that shows the flags of a verb, also where `drover help` has a topic of that name. */
export const flagHelp = (verb: string): string =>
  Object.hasOwn(TOPICS, verb) ? `drover ${verb} --help` : `drover help ${verb}`;

async function commandAt({ root, load }: Program, path: readonly string[]): Promise<Command> {
  let found = root;
  for (const name of path) {
    const next = found.commands.find((command) => command.name() === name || command.aliases().includes(name));
    if (next === undefined) {
      const topics = Object.keys(TOPICS).join(", ");
      throw usageProblem(`there is no help with "${path.join(" ")}"`, `drover help lists the verbs; topics: ${topics}`);
    }
    await load(next);
    found = next;
  }
  return found;
}

/** What `drover` alone says. */
export function overview(verbs: readonly ListedVerb[], hasColours: boolean): string {
  const paint = painter(hasColours);
  const rows: [string, string][] = [
    ["drover serve", "start the server here, with a worker that runs commands"],
    ["drover run plan.yml", "run a plan file until it is done"],
    ["drover submit --command 'echo hello' --wait", "give it a first task"],
    ["drover tasks", "what there is; drover task ID shows one"],
    ["drover why ID", "every condition between a task and its start"],
  ];
  const shown = rows.filter(([command]) => verbs.some(({ name }) => name === command.split(" ")[1]));
  return [
    `${paint("bold", "drover")} decides which task runs next, on which worker, and which LLM call may go out now.`,
    "",
    ...shown.map(([command, about]) => `  ${paint("cyan", command)}\n      ${about}`),
    "",
    "All verbs: drover help. With examples: drover help VERB. For programs: --json.",
    "",
  ].join("\n");
}
