#!/usr/bin/env node
/**
 * `drover`, in a clone and when installed.
 *
 * In a clone there are sources, which the right Node runs as they are; an installed package has them compiled. A clone's
 * own pinned Node (`npm ci` brings it) takes over when the one that started this file is too old. What ends one of the
 * two ends the other: signals are passed on, and a launcher that is killed, npm or this file on an old Node, leaves
 * nothing behind. This file must itself run on any Node of the last years, so it is plain JavaScript and imports nothing
 * of ours.
 */
import module from "node:module";

// An import of node:fs would read every name it has, and with them load what most commands do without.
const require = module.createRequire(import.meta.url);
const { existsSync, readFileSync } = require("node:fs");
const { fileURLToPath, pathToFileURL } = require("node:url");

const NODE_MAJOR_MIN = 24;
const EXIT_BROKEN = 6;
/** The process that only started this one, said by itself. */
const LAUNCHER = "DROVER_LAUNCHER_PID";
const LOOK_MS = 500;
/** The command line of npm and npx, by the title they give themselves or by their file. */
const NPM = /^(\S*node )?(\S*\/)?np[mx](-cli\.js)?( |$)/;
/** That of a shell with one command, which it waits for. */
const ONLY_COMMAND = /^\S*sh -c [^&;|\n]*$/;

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
// Sources win over an older build.
const main = [at("src/cli/main.ts"), at("dist/cli/main.js")].find((path) => existsSync(path));
const pinned = at(process.platform === "win32" ? "node_modules/node/bin/node.exe" : "node_modules/node/bin/node");
const isOld = Number.parseInt(process.versions.node, 10) < NODE_MAJOR_MIN;

endWithLauncher();

if (main === undefined) {
  complain(
    "this copy of Drover is not complete: it has neither src/cli/main.ts nor dist/cli/main.js; install it again",
  );
} else if (!isOld) {
  // Compiled once and kept in the temporary directory: halves the time until a verb has answered.
  module.enableCompileCache?.();
  process.argv[1] = main;
  await import(pathToFileURL(main).href);
} else if (existsSync(pinned)) {
  await runWith(pinned);
} else {
  complain(
    `Drover needs Node ${NODE_MAJOR_MIN} or newer, this is ${process.versions.node}; ` +
      "install it from https://nodejs.org, or run npm ci in a clone",
  );
}

function complain(message) {
  console.error(`error: ${message}`);
  process.exitCode = EXIT_BROKEN;
}

/**
 * Ends in good order when its launcher was killed. A supervisor, a shell or a terminal may go: only what does nothing
 * but start this counts, which is this file on an old Node, npm and npx.
 */
function endWithLauncher() {
  const end = () => process.kill(process.pid, "SIGTERM");
  const launcher = process.env[LAUNCHER];
  delete process.env[LAUNCHER];
  if (launcher === String(process.ppid) && process.channel) {
    process.on("disconnect", end);
    process.channel.unref();
    return;
  }
  // All that npm starts inherits its variables, however far below it is: they only say that it is worth a look.
  const npm = process.env.npm_lifecycle_event === undefined ? null : npmAbove();
  if (npm === null) return;
  const parent = process.ppid;
  const look = setInterval(() => {
    if (process.ppid === parent && isAlive(npm)) return;
    clearInterval(look);
    end();
  }, LOOK_MS);
  look.unref();
}

/** The npm or npx that started this and waits for it, itself or by a shell that has nothing else to do. */
function npmAbove() {
  try {
    const parent = processOf(process.ppid);
    if (NPM.test(parent.command)) return process.ppid;
    return ONLY_COMMAND.test(parent.command) && NPM.test(processOf(parent.ppid).command) ? parent.ppid : null;
  } catch {
    return null; // There is no /proc here, or they have gone.
  }
}

function processOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { ppid: Number(ppid), command: readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ") };
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** The same command on another Node: same terminal, same signals, same end. */
async function runWith(node) {
  const { spawn } = await import("node:child_process");
  const { constants } = await import("node:os");
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    // The channel says nothing. It closes with this process, and the other hears that.
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...process.env, [LAUNCHER]: String(process.pid) },
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => complain(`${node} cannot be started: ${error.message}`));
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
  });
}
