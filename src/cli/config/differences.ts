/**
 * In what the config of a node differs from the one in force in its cluster, and every knob as it is in force there.
 */
import { isRecord } from "../../core/base/index.ts";
import type { Settings, SettingView } from "../../protocol/index.ts";
import { type Path, schemaAt, shownPath, writtenAs } from "../../protocol/schema/index.ts";
import { SETTINGS_SCHEMA } from "./settings.ts";
import { withoutSecrets } from "./shown.ts";

type Config = Settings["config"];

/** A value or a whole section, at its path in drover.yml; undefined where there is none. */
export type Difference = { readonly path: Path; readonly own: unknown; readonly inForce: unknown };
export type Differences = {
  /** Whose config is in force. */
  readonly leader: string | null;
  readonly all: readonly Difference[];
};

/** Where two configs are not the same. */
export const differing = (own: Config, inForce: Config): Difference[] => [...between(own, inForce, [])];

function* between(own: unknown, inForce: unknown, path: Path, areNames = false): Generator<Difference> {
  if (!isRecord(own) || !isRecord(inForce)) {
    if (JSON.stringify(own) !== JSON.stringify(inForce)) yield { path, own, inForce };
    return;
  }
  for (const key of new Set([...Object.keys(own), ...Object.keys(inForce)])) {
    const holdsNames = !areNames && isNames(path, key);
    yield* between(own[key], inForce[key], holdsNames ? path : [...path, key], holdsNames);
  }
}

/** In a file, names stand in their section; in the form of the core, under a key of their own, as one may be called. */
const isNames = ([section, ...deeper]: Path, key: string): boolean =>
  key === "named" && deeper.length === 0 && (section === "projects" || section === "gates");

/** A section that only one of them has, as its values. */
function* leaves(difference: Difference): Generator<Difference> {
  const { path, own, inForce } = difference;
  if (!isRecord(own) && !isRecord(inForce)) yield difference;
  else
    for (const inner of between(isRecord(own) ? own : {}, isRecord(inForce) ? inForce : {}, path)) yield* leaves(inner);
}

/** What is in force, and of each knob in which this node's own config differs, what that says. */
export function asInForce(own: readonly SettingView[], { leader, all }: Differences): SettingView[] {
  const left = new Map(all.flatMap((one) => [...leaves(one)]).map((one) => [shownPath(one.path), one]));
  const ofLeader = (value: unknown): Pick<SettingView, "value" | "origin" | "where"> => ({
    value: value ?? null,
    origin: "leader",
    ...(leader === null ? {} : { where: `node ${leader}` }),
  });
  const known = own.map((setting): SettingView => {
    const found = left.get(setting.path);
    if (found === undefined) return setting;
    left.delete(setting.path);
    const { value, origin, where, ...rest } = setting;
    return { ...rest, ...ofLeader(written(found, "inForce")), own: { value, origin, ...(where && { where }) } };
  });
  // What stands in no file of this node; but not the defaults of a name that only its own files have.
  const added = [...left.values()].filter(({ inForce }) => inForce !== undefined);
  const more = added.map((one): SettingView => {
    const ownValue = written(one, "own") ?? null;
    return {
      path: shownPath(one.path),
      ...ofLeader(written(one, "inForce")),
      own: { value: ownValue, origin: "default" },
    };
  });
  return [...known, ...more];
}

function written({ path, ...values }: Difference, which: "own" | "inForce"): unknown {
  const value = writtenAs(values[which], schemaAt(SETTINGS_SCHEMA, path));
  return withoutSecrets({ path, value, origin: { kind: "default" } }).value;
}
