/**
 * The processes of this machine, as far as they can be proven to be ours.
 *
 * A pid alone proves nothing: the number may belong to somebody else by the time a signal is sent. So an entry carries
 * the instant at which the process began, in the system's own words, and who signals compares it first. On Linux
 * all of it is read from /proc, the environment included, in which a run leaves its tag. Elsewhere (macOS) `ps` tells
 * parents, groups and beginnings; environments are not readable there, so a process that leaves both its group and
 * its parent is not found.
 */
import { execFile, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { promisify } from "node:util";
import { nextTurn } from "../../std/index.ts";

export type ProcessEntry = {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** When it began, as text that is equal for the same process only; null where the system does not say. */
  readonly startedAt: string | null;
  /** Ended, but its parent has not asked yet: nothing of it runs. */
  readonly isZombie: boolean;
};
type ProcessList = {
  readonly entries: readonly ProcessEntry[];
  /** Those that ended while the list was made: they may have started others that are not in it. */
  readonly gone: readonly number[];
};
export type ProcessTable = {
  read(pid: number): ProcessEntry | null;
  list(): Promise<ProcessList>;
  /**
   * The environment it was started with, as `NAME=value` ended by zero bytes. For a moment, while it becomes another
   * program, a process has none. Null where it cannot be read: another user's, or not on this system.
   */
  environment(pid: number): Buffer | "gone" | null;
  /** What tells this boot of this machine, and this view of its pids, from any other. */
  readonly place: string;
};

/** How many processes are looked at before others get a turn. */
const SLICE = 256;
const STATE = 0;
const PARENT = 1;
const GROUP = 2;
const FLAGS = 6;
const STARTED_AT = 19;
/** The kernel's own threads look like processes without an environment. */
const KERNEL_THREAD = 0x00200000;

export function systemProcessTable(): ProcessTable {
  return existsSync("/proc/self/stat") ? procTable() : psTable();
}

export function procTable(): ProcessTable {
  return {
    read: readStat,
    async list() {
      const [entries, gone]: [ProcessEntry[], number[]] = [[], []];
      const names = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
      for (const [index, name] of names.entries()) {
        if (index % SLICE === SLICE - 1) await nextTurn();
        const entry = readStat(Number(name));
        if (entry !== null) entries.push(entry);
        else if (!existsSync(`/proc/${name}`)) gone.push(Number(name));
      }
      return { entries, gone };
    },
    environment: readEnvironment,
    place: `${textOf("/proc/sys/kernel/random/boot_id")} ${textOf("/proc/self/ns/pid", readlinkSync)}`,
  };
}

/** A name may hold blanks and parentheses, so the fields are counted from the last one that closes. */
function readStat(pid: number): ProcessEntry | null {
  const text = textOf(`/proc/${pid}/stat`);
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const startedAt = fields[STARTED_AT];
  if (startedAt === undefined || (Number(fields[FLAGS]) & KERNEL_THREAD) !== 0) return null;
  return {
    pid,
    parent: Number(fields[PARENT]),
    group: Number(fields[GROUP]),
    startedAt,
    isZombie: fields[STATE] === "Z" || fields[STATE] === "X",
  };
}

function readEnvironment(pid: number): Buffer | "gone" | null {
  try {
    return readFileSync(`/proc/${pid}/environ`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ESRCH" ? "gone" : null;
  }
}

/** `ps` as POSIX has it, with `lstart`, which Linux and macOS both know. */
export function psTable(): ProcessTable {
  const columns = ["-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "stat=", "-o", "lstart="];
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" };
  return {
    read(pid) {
      const { stdout } = spawnSync("ps", [...columns, "-p", String(pid)], { env, encoding: "utf8" });
      return readPsLine((stdout ?? "").trim());
    },
    async list() {
      const { stdout } = await promisify(execFile)("ps", ["-A", ...columns], { env, maxBuffer: 64 * 1024 * 1024 });
      return { entries: stdout.split("\n").flatMap((line) => readPsLine(line.trim()) ?? []), gone: [] };
    },
    environment: () => null,
    place: spawnSync("sysctl", ["-n", "kern.boottime"], { env, encoding: "utf8" }).stdout?.trim() || "one boot",
  };
}

function readPsLine(line: string): ProcessEntry | null {
  const [, pid, parent, group, state = "", startedAt = ""] =
    /^(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s+(\S.*)$/.exec(line) ?? [];
  if (pid === undefined) return null;
  const isZombie = state.startsWith("Z");
  return { pid: Number(pid), parent: Number(parent), group: Number(group), startedAt, isZombie };
}

/** Empty where it cannot be read. */
function textOf(path: string, read: (path: string, encoding: "utf8") => string = readFileSync): string {
  try {
    return read(path, "utf8").trim();
  } catch {
    return "";
  }
}
