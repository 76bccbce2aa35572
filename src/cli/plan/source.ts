/**
 * The text of a plan file, as plain values of which each knows its line, and what is wrong with a plan.
 *
 * Anchors and aliases may be used: shared settings are what they are for.
 */
import type { Found } from "../../plan/index.ts";
import { BadFile, type ConfigProblem, type FileOrigin } from "../config/problem.ts";
import { commaAdvice } from "../config/yaml-complaint.ts";
import { readYaml, type YamlRules } from "../config/yaml-source.ts";

export type PlanProblem = ConfigProblem & { readonly origin: FileOrigin };
type PlanSource = {
  readonly value: unknown;
  /** A complaint about what stands at this path, or about the nearest thing around it that is there. */
  readonly complaint: (found: Found) => PlanProblem;
};

/** Everything that is wrong with a plan. Nothing of it has run. */
export class BadPlan extends BadFile {
  override readonly name: string = "BadPlan";

  constructor(file: string, problems: readonly ConfigProblem[]) {
    const hint = "nothing has run; drover run --print-schema explains every key";
    super(file, problems, { code: "bad_plan", hint });
  }
}

const RULES: YamlRules = {
  words: {
    DUPLICATE_KEY: "duplicate key: this name stands twice here; keep one of the two",
    MULTIPLE_DOCS: "a plan is one document; take out what follows the ---",
  },
  valuesMax: 200_000,
  aliasesMax: 1000,
  merges: true,
  uniqueKeys: false,
};

/** Throws a `BadPlan` if the text is not YAML, or more of it than a plan can be. */
export function readPlanSource(file: string, text: string): PlanSource {
  const { value, originOf, line } = readYaml(file, text, RULES, (complaints, { originAt, line }) => {
    return new BadPlan(
      file,
      complaints.map(({ message, offset }) => {
        const origin = originAt(offset);
        return { message, origin, source: line(origin.line) };
      }),
    );
  });
  return {
    value,
    complaint: ({ message, path, spot }) => {
      const origin = originOf(path, spot);
      const source = line(origin.line);
      const advice = spot === "key" ? commaAdvice(source, origin.column) : null;
      return { message: advice ?? message, origin, source };
    },
  };
}
