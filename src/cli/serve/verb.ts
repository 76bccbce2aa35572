/**
 * `drover serve` as the command line knows it. What it does is in `serve.ts`, which brings the engine and the server
 * along and is loaded only by this verb: no other should have to wait for them.
 */

import { CONFIG_FLAGS, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { EXEC_FLAGS, QUIET } from "../worker/verb.ts";
import type { ServeFlags } from "./serve.ts";

const OF_EXEC = ["--exec", "--shell", "--env"];

export const serveVerb: VerbBody<ServeFlags> = {
  about:
    "Start the server. It listens on this machine only, unless server.tokens and server.host say otherwise.\n" +
    "It brings one worker along that runs what tasks with the action exec bring, as you; it steps aside\n" +
    "for another worker that takes such tasks. With tokens, allowed hosts or another address than this\n" +
    "machine's it is there only with --worker or --exec: a caller who may submit a task could run anything here.\n" +
    "With --log etcd://… or postgres://… it is a node of a cluster: one leads, the others follow, and any address\n" +
    "works. There too it brings a worker along only with --worker or --exec.",
  flags: [
    { flags: "--host <address>", about: "where to listen (default: 127.0.0.1; another needs server.tokens)" },
    { flags: "-P, --port <n>", about: "which port (default: 4747; 0: any that is free)", read: wholeNumber(0, 65_535) },
    { flags: "-d, --data <directory>", about: "where everything is kept (default: .drover)" },
    {
      flags: "--log <url>",
      about: "sqlite:PATH, memory: to keep nothing, or what a cluster shares: etcd://…, postgres://…",
    },
    { flags: "--node <id>", about: "the name of this node of a cluster (default: one that --data keeps)" },
    { flags: "--advertise <url>", about: "where other nodes and clients reach it (default: where it listens)" },
    ...CONFIG_FLAGS,
    { flags: "--worker", about: "with the local worker also where others may submit" },
    { flags: "--no-worker", about: "without the local worker; tasks wait for workers of yours" },
    ...EXEC_FLAGS.filter(({ flags }) => OF_EXEC.some((name) => flags.startsWith(name))).map((flag) =>
      flag.flags.startsWith("--exec ") ? { ...flag, about: "let the local worker run this for every task" } : flag,
    ),
    { flags: "--slots <n>", about: "how many tasks the local worker runs at once", read: wholeNumber(1, 1000) },
    QUIET,
    {
      flags: "--log-level <level>",
      about: "what is logged on standard error (default: warn on a terminal, else info)",
      choices: ["debug", "info", "warn", "error", "silent"],
    },
  ],
  examples: [
    ["drover serve", "on http://127.0.0.1:4747, with data in .drover"],
    ["drover serve --port 0 --data /tmp/try", "on any free port, apart from everything else"],
    ["drover serve --no-worker", "for workers of your own"],
    ["drover serve --exec './agent.sh' --slots 4", "every task is handed to one program, as JSON on its stdin"],
    ["drover serve --log etcd://h1,h2,h3/drover --node n1", "a node of a cluster, with its own data in .drover"],
    ["drover serve --log postgres://drover:PASSWORD@db/drover", "the same over PostgreSQL"],
  ],
  run: async (call) => (await import("./serve.ts")).serve(call),
};
