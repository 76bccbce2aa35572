/**
 * All verbs as commands of commander: it writes their help, and says what is wrong with a call.
 *
 * It also reads what `shell/parse.ts` leaves to it. Only the verb that is asked for is loaded.
 */
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { versionText } from "../std/version.ts";
import { flagHelp } from "./help.ts";
import type { ParsedCall } from "./shell/parse.ts";
import { usageProblem } from "./shell/problem.ts";
import type { Terminal } from "./shell/terminal.ts";
import type { FlagSpec, ListedVerb, Program, Verb, VerbBody } from "./shell/verb.ts";
import { BadValue, GLOBAL_FLAGS } from "./shell/verb.ts";

type ReadingProgram = Program & {
  /** What is called, with which arguments; null if help was asked for, and shown. A wrong call throws a problem. */
  readonly read: (words: readonly string[]) => Promise<ParsedCall | null>;
};

type OnCall = (parsed: ParsedCall) => void;

export function createProgram(terminal: Terminal, verbs: readonly ListedVerb[]): ReadingProgram {
  let called: ParsedCall | null = null;
  const call: OnCall = (parsed) => {
    called = parsed;
  };
  const unloaded = new Map<Command, ListedVerb>();
  async function load(command: Command): Promise<void> {
    const verb = unloaded.get(command);
    unloaded.delete(command);
    if (verb !== undefined) fillVerb(command, await verb.load(), call, [verb.name]);
  }
  const root = createRoot(terminal).hook("preSubcommand", (_, command) => load(command));
  for (const verb of verbs) {
    const command = nameVerb(root, verb);
    if (verb.group !== undefined) command.helpGroup(verb.group);
    unloaded.set(command, verb);
  }
  return {
    root,
    load,
    verbs,
    async read(words) {
      try {
        await root.parseAsync(words, { from: "user" });
      } catch (error) {
        if (!(error instanceof CommanderError)) throw error;
        if (error.exitCode !== 0) throw usageOf(error);
      }
      return called;
    },
  };
}

function createRoot(terminal: Terminal): Command {
  const width = (): number => Math.min(terminal.width ?? 100, 120);
  const root = new Command("drover")
    .description("Decides which task runs next, on which worker, and which LLM call may go out now, and says why.")
    .version(versionText(), "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: terminal.out,
      writeErr: terminal.err,
      // What is wrong is reported by us, in the same way as everything else that is.
      outputError: () => {},
      getOutHelpWidth: width,
      getErrHelpWidth: width,
      getOutHasColors: () => terminal.hasColours,
      getErrHasColors: () => terminal.errorsHaveColours,
    });
  for (const flag of GLOBAL_FLAGS) root.addOption(optionOf(flag));
  return root;
}

/** A call that commander would not take; `verb` as it is called: `projects set`. */
type BadCall = CommanderError & { readonly verb?: string };

/** Puts the name of a verb onto a command. */
function nameVerb(parent: Command, { name, summary }: Pick<ListedVerb, "name" | "summary">, path = [name]): Command {
  return parent
    .command(name)
    .summary(summary)
    .description(summary)
    .exitOverride((reason) => {
      throw Object.assign(reason, { verb: path.join(" ") });
    });
}

/** Puts what a verb takes and does, and the verbs below it, onto its command. */
function fillVerb(command: Command, verb: VerbBody<never>, call: OnCall, path: readonly string[]): void {
  if (verb.about !== undefined) command.description(verb.about);
  for (const { name, about, choices } of verb.takes ?? []) {
    const argument = new Argument(name, about);
    command.addArgument(choices === undefined ? argument : argument.choices(choices));
  }
  for (const flag of verb.flags ?? []) command.addOption(optionOf(flag));
  if (verb.passesOn === true) command.allowUnknownOption();
  if (verb.examples !== undefined) command.addHelpText("after", shownExamples(verb.examples));
  for (const inner of verb.verbs ?? []) {
    const below = [...path, inner.name];
    fillVerb(nameVerb(command, inner, below), inner, call, below);
  }
  const { run, takes, verbs = [] } = verb as VerbBody;
  if (run === undefined) return;
  // Where only a verb could follow, a word that is none is a mistyped one.
  const canBeMistyped = takes === undefined && verbs.length > 0;
  command.allowExcessArguments(canBeMistyped).action(async () => {
    const [stray] = command.args;
    if (canBeMistyped && stray !== undefined) await refuse(command, stray, verbs);
    call({ run, args: command.processedArgs.flat().filter(isText), flags: command.optsWithGlobals() });
  });
}

/** As commander does where a verb does nothing by itself. */
async function refuse(command: Command, stray: string, verbs: readonly Verb<never>[]): Promise<never> {
  const { nearest } = await import("../core/base/index.ts");
  const meant = nearest(
    stray,
    verbs.map(({ name }) => name),
  );
  const message = `error: unknown command '${stray}'${meant === null ? "" : ` (Did you mean ${meant}?)`}`;
  return command.error(message, { code: "commander.unknownCommand" });
}

const isText = (value: unknown): value is string => typeof value === "string";

function optionOf({ flags, about, read, choices }: FlagSpec): Option {
  const option = new Option(flags, about);
  if (choices !== undefined) option.choices(choices);
  if (read !== undefined)
    option.argParser((text, before) => {
      try {
        return read(text, before);
      } catch (error) {
        throw error instanceof BadValue ? new InvalidArgumentError(error.message) : error;
      }
    });
  return option;
}

function shownExamples(examples: readonly (readonly [command: string, meaning: string])[]): string {
  const lines = examples.map(([command, meaning]) => `  ${command}\n      ${meaning}`);
  return `\nExamples:\n${lines.join("\n")}`;
}

function usageOf({ code, message, verb }: BadCall): Error {
  // Commander speaks first of "error:"; what it suggests comes in a line of its own.
  const sentence = message.replace(/^error: /, "").replaceAll("\n", " ");
  if (code === "commander.help")
    return usageProblem(`${["drover", verb].join(" ").trim()} does nothing by itself: add one of its commands`);
  if (verb !== undefined) return usageProblem(sentence, `its flags, with examples: ${flagHelp(verb)}`);
  // What is nearest to it in letters is not what is meant.
  if (sentence.startsWith("unknown command 'version'"))
    return usageProblem("unknown command 'version' (Did you mean --version?)", "drover --version prints it");
  return usageProblem(sentence, "drover help shows the verbs, drover help VERB one of them");
}
