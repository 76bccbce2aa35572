/**
 * `drover config`: what the config is, where each part of it comes from, and whether a file would be taken.
 *
 * Nothing here needs a server. Secrets are never printed, neither in the text nor in JSON: a config is pasted into
 * chats and issues.
 */
import { Document, isNode, isSeq } from "yaml";
import { settingsJsonSchema } from "../../protocol/index.ts";
import { shownPath } from "../../protocol/schema/index.ts";
import type { Setting } from "../config/file.ts";
import { toObject } from "../config/layers.ts";
import { loadSettings, type ServerConfig } from "../config/load.ts";
import { shownOrigin } from "../config/problem.ts";
import { originForPeople, withoutSecrets } from "../config/shown.ts";
import { EXIT } from "../shell/problem.ts";
import type { Environment } from "../shell/terminal.ts";
import { type Call, CONFIG_FLAGS, type ConfigFlags, type Verb, type VerbBody } from "../shell/verb.ts";

/** The config as this command would have it. */
export function loadFor({ flags, terminal }: Pick<Call<ConfigFlags>, "flags" | "terminal">): ServerConfig {
  const { env, cwd, home } = terminal;
  return loadSettings({ env, cwd, home, configFile: flags.config, sets: flags.set ?? [] });
}

const check: Verb<ConfigFlags> = {
  name: "check",
  summary: "say whether the config is good, and if not, everything that is wrong with it",
  takes: [{ name: "[file]", about: "a file to try instead of ./drover.yml" }],
  flags: CONFIG_FLAGS,
  examples: [
    ["drover config check", "the files, variables and flags that a server started here would read"],
    ["drover config check new.yml && mv new.yml drover.yml", "try a file before it is used"],
  ],
  run: async ({ args, flags, terminal, output }) => {
    const [file = flags.config] = args;
    const loaded = loadFor({ terminal, flags: { ...flags, ...(file === undefined ? {} : { config: file }) } });
    const set = loaded.effective.filter(({ origin }) => origin.kind !== "default");
    const { filesRead } = loaded;
    const warnings = [...loaded.warnings, ...unsetVariables(loaded, terminal.env)];
    for (const warning of warnings) terminal.err(`warning: ${warning}\n`);
    // The server's own check; it brings the server along, so the default, which is good, does not wait for it.
    if (set.some(({ path }) => path.join(".") === "server.host"))
      (await import("../serve/serve.ts")).checkServed(loaded);
    output.answer({ ok: true, files: filesRead, settings: set.length, warnings }, () => {
      const from = filesRead.length === 0 ? "no config file here" : filesRead.join(", ");
      const knobs = set.length === 1 ? "1 setting differs" : `${set.length} settings differ`;
      return `The config is good (${from}): ${knobs} from the defaults.\n`;
    });
    return EXIT.ok;
  },
};

/** A server does not start without them; a file may be checked where they need not be set. */
function unsetVariables({ settings }: ServerConfig, env: Environment): string[] {
  return settings.server.tokens.flatMap(({ tokenEnv }, index) =>
    tokenEnv === undefined || (env[tokenEnv] ?? "") !== ""
      ? []
      : [`server.tokens[${index}].tokenEnv names ${tokenEnv}, which is not set here; a server needs it to start`],
  );
}

type ShowFlags = ConfigFlags & { readonly effective?: boolean; readonly origins?: boolean };

const show: Verb<ShowFlags> = {
  name: "show",
  summary: "print the config as YAML: what was set, or with --effective all of it",
  about:
    "Print the config that a server started here would have: what was set, or with --effective every knob.\n" +
    "What a running server was patched with (PATCH /scheduler/config) lies over it: see GET /config there.",
  flags: [
    ...CONFIG_FLAGS,
    { flags: "-e, --effective", about: "every knob, also those that have their default" },
    { flags: "-o, --origins", about: "behind each value, where it comes from" },
  ],
  examples: [
    ["drover config show", "what differs from the defaults"],
    ["drover config show --effective --origins", "every knob, its value, and the file, variable or flag behind it"],
  ],
  run: ({ flags, terminal, output }) => {
    const loaded = loadFor({ terminal, flags });
    const wanted = loaded.effective.filter(({ origin }) => flags.effective === true || origin.kind !== "default");
    const shown = wanted.map(withoutSecrets);
    const origins = Object.fromEntries(shown.map(({ path, origin }) => [shownPath(path), shownOrigin(origin)]));
    const config = toObject(shown);
    output.answer(flags.origins === true ? { config, origins } : config, () => yamlOf(shown, flags.origins === true));
    return EXIT.ok;
  },
};

const schema: Verb<never> = {
  name: "schema",
  summary: "print the JSON Schema of drover.yml, for editors",
  examples: [
    [
      "drover config schema > drover.schema.json",
      "then, at the top of drover.yml: # yaml-language-server: $schema=drover.schema.json",
    ],
  ],
  run: ({ terminal }) => {
    terminal.out(schemaText());
    return EXIT.ok;
  },
};

export const schemaText = (): string => `${JSON.stringify(settingsJsonSchema(), null, 2)}\n`;

export const configVerb: VerbBody<never> = {
  verbs: [check, show, schema] as readonly Verb<never>[],
};

function yamlOf(settings: readonly Setting[], hasOrigins: boolean): string {
  if (settings.length === 0) return "# nothing is set: every knob has its default (--effective shows them)\n";
  const document = new Document(toObject(settings));
  for (const { path, origin } of hasOrigins ? settings : []) {
    const node = document.getIn(path, true);
    if (isSeq(node)) node.flow = true;
    if (isNode(node)) node.comment = ` ${originForPeople(origin)}`;
  }
  return document.toString({ lineWidth: 0 });
}
