/**
 * Many layers, one config: later layers win, field by field, and every field remembers who set it.
 *
 * Layers are lists of settings, each one value at one path, so merging is walking through them in order. Clearing a
 * value (null, or nothing after the colon) takes back what lower layers said: a knob that may be null is null then, an
 * entry of a table is gone, every other knob has its default again, and a cleared section all of it. So a section whose
 * knobs are all commented out is the same as no section.
 */
import { isRecord } from "../../core/base/index.ts";
import { holdsFields, type JsonSchema, type Path, schemaAt, takesNull } from "../../protocol/schema/index.ts";
import type { Setting } from "./file.ts";

export type Layer = readonly Setting[];

const keyOf = (path: Path): string => path.join("\0");
const isWithin = (path: Path, outer: Path): boolean => outer.every((key, at) => path[at] === key);

/** What is in force of all layers, lowest first. */
export function mergeLayers(layers: readonly Layer[], schema: JsonSchema): Setting[] {
  const merged = new Map<string, Setting>();
  for (const setting of layers.flat().flatMap((one) => spread(one, schema))) {
    for (const [key, { path }] of merged) {
      if (isWithin(path, setting.path) || isWithin(setting.path, path)) merged.delete(key);
    }
    const at = schemaAt(schema, setting.path);
    if (setting.value === null && at !== null && !takesNull(at)) continue;
    merged.set(keyOf(setting.path), setting);
  }
  return [...merged.values()];
}

/** A section given as one value (`--set budget={limit: 5}`) is its fields. */
function spread(setting: Setting, schema: JsonSchema): Setting[] {
  const at = schemaAt(schema, setting.path);
  if (at === null || !holdsFields(at) || !isRecord(setting.value)) return [setting];
  return Object.entries(setting.value).flatMap(([key, value]) =>
    spread({ ...setting, path: [...setting.path, key], value }, schema),
  );
}

/** The settings as one object. A name such as `__proto__` is a name like any other. */
export function toObject(settings: readonly Setting[], depth: number = 0): Readonly<Record<string, unknown>> {
  const byName = Map.groupBy(settings, ({ path }) => path[depth] ?? "");
  return Object.fromEntries(
    [...byName].map(([name, below]) => {
      const leaf = below.find(({ path }) => path.length <= depth + 1);
      return [name, leaf === undefined ? toObject(below, depth + 1) : leaf.value];
    }),
  );
}

/** The setting that a complaint about this field is about: the field itself, what is around it, or what is below it. */
export function settingFor(field: string, settings: readonly Setting[]): Setting | null {
  const written = (path: Path): string => path.join(".");
  const isAt = (path: Path): boolean => written(path) === field;
  const isAround = (path: Path): boolean =>
    field.startsWith(`${written(path)}.`) || field.startsWith(`${written(path)}[`);
  const around = settings
    .filter(({ path }) => isAround(path))
    .sort((left, right) => right.path.length - left.path.length);
  const below = settings.filter(({ path }) => written(path).startsWith(`${field}.`));
  return settings.find(({ path }) => isAt(path)) ?? around[0] ?? below[0] ?? null;
}
