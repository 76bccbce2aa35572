/**
 * Input artifacts: where they are, which of them a task may name, and whether they are there.
 *
 * The core never looks at a disk: that an artifact appeared is an event like any other. The watcher looks at the
 * artifacts some task waits for, every `workers.artifactPoll`, and notifies the writer of those that are there. While
 * some task waits for one, the alarm keeps the program alive: it is set anew when the first is awaited. Looking for one
 * may fail (a share that is away, a host's own rule that throws): a warning says so once, until it works again, and the
 * others are looked for all the same.
 *
 * An artifact is a path under `artifacts.root`. A caller that may submit a task learns whether its artifact is there,
 * so a path that leads out of the root would show which files this machine has: it is refused, and one that leads out
 * by a symbolic link counts as missing whatever it points to. `artifacts.anywhere` lifts that. A program that says
 * itself whether an artifact is there has artifacts of its own kind, and no paths.
 */
import { access, realpath } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";
import { errorText, shown } from "../../core/base/index.ts";
import type { Config } from "../../core/config/index.ts";
import type { Event } from "../../core/model/index.ts";
import type { Why } from "../../core/why/index.ts";
import type { Clock } from "../../std/index.ts";
import { badInput, DroverError } from "../base/drover-error.ts";
import type { Writer } from "../writer/writer.ts";

const LOOKED_AT_ONCE_MAX = 64;

/** Whether an input artifact is there. */
export type ArtifactExists = (artifact: string) => Promise<boolean>;
export type ArtifactWatch = {
  look(): Promise<void>;
  /** Something happened: from now on an artifact may be awaited; or a parent has ended, which may have made one. */
  onApplied(event: Event): void;
  stop(): void;
};

/** Whether it is there, for a caller that gets an error if that cannot be said. */
export async function askWhetherThere(exists: ArtifactExists, artifact: string): Promise<boolean> {
  try {
    return (await exists(artifact)) === true;
  } catch (error) {
    const message = `inputArtifact ${shown(artifact)} cannot be looked for: ${errorText(error)}`;
    throw new DroverError("bad_request", message, { details: { field: "inputArtifact" }, cause: error });
  }
}

export function watchArtifacts(deps: {
  readonly writer: Writer;
  readonly clock: Clock;
  readonly exists: ArtifactExists;
  readonly onWarning: (message: string) => void;
}): ArtifactWatch {
  const { writer, clock, exists, onWarning } = deps;
  /** Artifacts that could not be looked for, and of which a warning said so. */
  const troubled = new Set<string>();
  let cancel: (() => void) | null = null;
  let keepAlive = false;
  /** It is looked for as soon as can be, and not once more for each task that ends meanwhile. */
  let isSoon = false;
  let stopped = false;

  async function isThere(artifact: string): Promise<boolean> {
    try {
      const found = await exists(artifact);
      troubled.delete(artifact);
      return found === true;
    } catch (error) {
      const isNews = !troubled.has(artifact);
      troubled.add(artifact);
      if (isNews)
        onWarning(`inputArtifact ${shown(artifact)} cannot be looked for, and is tried again: ${errorText(error)}`);
      return false;
    }
  }

  async function look(): Promise<void> {
    for (const artifact of troubled) if (!writer.state.artifacts.has(artifact)) troubled.delete(artifact);
    const wanted = [...writer.state.artifacts.keys()];
    for (let start = 0; start < wanted.length && !stopped; start += LOOKED_AT_ONCE_MAX) {
      const slice = wanted.slice(start, start + LOOKED_AT_ONCE_MAX);
      const found = await Promise.all(slice.map(isThere));
      for (const [index, artifact] of slice.entries()) {
        if (found[index] && !stopped) writer.execute({ type: "artifact-ready", artifact });
      }
    }
  }

  function again(): void {
    if (stopped || isSoon) return;
    cancel?.();
    const at = clock.elapsed() + writer.state.config.workers.artifactPoll;
    keepAlive = writer.state.artifacts.size > 0;
    cancel = clock.ringAt(at, lookAndGoOn, { keepAlive });
  }

  function lookAndGoOn(): void {
    isSoon = false;
    void look()
      .catch(() => {})
      .then(again);
  }

  again();
  return {
    look,
    onApplied(event) {
      if (writer.state.artifacts.size === 0) return;
      if (event.kind === "dependents-notified" && !isSoon) {
        isSoon = true;
        cancel?.();
        cancel = clock.ringAt(clock.elapsed(), lookAndGoOn, { keepAlive: true });
      } else if (!keepAlive) again();
    },
    stop() {
      stopped = true;
      cancel?.();
    },
  };
}

export type ArtifactSource = {
  readonly exists: ArtifactExists;
  /** Throws if a task may not name it. */
  check(artifact: string, field?: string): void;
  /** The same answer, with where the artifact is looked for in full. */
  explain(answer: Why): Why;
};

const UNDER_ROOT = "a relative path that stays under artifacts.root; artifacts.anywhere allows others";

/** Files by the rules, unless the program that embeds Drover says itself whether an artifact is there. */
export function artifactSourceFor(
  exists: ArtifactExists | undefined,
  rules: () => Config["artifacts"],
): ArtifactSource {
  return exists === undefined ? fileArtifacts(rules) : { exists, check: () => {}, explain: (answer) => answer };
}

function fileArtifacts(rules: () => Config["artifacts"]): ArtifactSource {
  const rootOf = ({ root }: Config["artifacts"]): string => resolve(root ?? ".");
  const pathOf = (artifact: string): string => resolve(rootOf(rules()), artifact);
  const mayAsk = (artifact: string): boolean =>
    rules().anywhere || (!isAbsolute(artifact) && isUnder(rootOf(rules()), pathOf(artifact)));

  return {
    async exists(artifact) {
      if (!mayAsk(artifact)) return false;
      const path = pathOf(artifact);
      try {
        if (rules().anywhere) {
          await access(path);
          return true;
        }
        return isUnder(await realpath(rootOf(rules())), await realpath(path));
      } catch {
        return false;
      }
    },
    check(artifact, field = "inputArtifact") {
      if (!mayAsk(artifact)) throw badInput(field, artifact, UNDER_ROOT);
    },
    explain: (answer) => ({
      ...answer,
      conditions: answer.conditions.map((condition) => {
        const { artifact } = condition.numbers;
        if (condition.code !== "artifact" || typeof artifact !== "string") return condition;
        const path = pathOf(artifact);
        const detail = mayAsk(artifact)
          ? `its input artifact ${artifact} does not exist yet; it is looked for as ${path}`
          : `its input artifact ${artifact} is not looked for: it must be ${UNDER_ROOT}`;
        return { ...condition, detail, numbers: { ...condition.numbers, path } };
      }),
    }),
  };
}

function isUnder(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
