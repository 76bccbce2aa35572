/**
 * Where input artifacts are, and which of them a task may name.
 *
 * An artifact is a path under `artifacts.root`. A caller that may submit a task learns whether its artifact is there,
 * so a path that leads out of the root would show which files this machine has: it is refused, and one that leads out
 * by a symbolic link counts as missing whatever it points to. `artifacts.anywhere` lifts that. A program that says
 * itself whether an artifact is there has artifacts of its own kind, and no paths.
 */

import { access, realpath } from "node:fs/promises";
import { isAbsolute, relative, resolve, sep } from "node:path";
import type { Config } from "../../core/config/index.ts";
import type { Why } from "../../core/why/index.ts";

import { badInput } from "../writer/drover-error.ts";
import type { ArtifactExists } from "./artifact-watch.ts";

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
