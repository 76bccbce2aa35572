/**
 * The config in force, knob by knob: what the host of the server says of it, and over that what was patched by a call.
 */
import { isRecord } from "../../core/base/index.ts";
import { SETTINGS_MAX, type SettingsView, type SettingView, settingsSchema } from "../../protocol/index.ts";
import { type JsonSchema, type Path, schemaAt, shownPath, writtenAs } from "../../protocol/schema/index.ts";

const SCHEMA = settingsSchema as unknown as JsonSchema;

export function settingsView(given: readonly SettingView[], patch: object | null): SettingsView {
  const patched = new Map(leaves(patch ?? {}, ["scheduler"]).map(([path, value]) => [shownPath(path), value]));
  const inForce = given.map((setting): SettingView => {
    const value = patched.get(setting.path);
    patched.delete(setting.path);
    return value === undefined ? setting : { ...setting, ...byCall(value) };
  });
  // Names that only the patch has, such as another type of tasks.
  const added = [...patched].map(([path, value]): SettingView => ({ path, ...byCall(value) }));
  const all = [...inForce, ...added];
  const omitted = Math.max(0, all.length - SETTINGS_MAX);
  return omitted === 0 ? { settings: all } : { settings: all.slice(0, SETTINGS_MAX), omitted };
}

const byCall = (value: unknown): Pick<SettingView, "value" | "origin" | "where"> => ({
  value,
  origin: "patch",
  where: "PATCH /scheduler/config",
});

/** Each value of the patch, as people write it. */
function leaves(value: unknown, path: Path): (readonly [Path, unknown])[] {
  if (isRecord(value)) return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, key]));
  return [[path, writtenAs(value, schemaAt(SCHEMA, path))]];
}
