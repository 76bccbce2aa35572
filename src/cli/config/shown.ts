/**
 * The config as it may be shown: each value, who set it, and no secret in it. A config is pasted into chats and issues.
 */
import type { SettingView } from "../../protocol/index.ts";
import { alternatives, type JsonSchema, type Path, schemaAt, shownPath } from "../../protocol/schema/index.ts";
import type { Setting } from "./file.ts";
import { standardSettings } from "./load.ts";
import { type Origin, shownOrigin } from "./problem.ts";
import { isHarmlessUrl, withoutAnyCredentials, withoutCredentials } from "./secret.ts";
import { SETTINGS_SCHEMA } from "./settings.ts";

const HIDDEN = "(hidden)";

/** The setting with everything left out that its schema calls secret, also inside lists. */
export const withoutSecrets = (setting: Setting): Setting => ({ ...setting, value: shownValue(setting) });

function shownValue({ path, value }: Setting): unknown {
  if (shownPath(path) === "log.url" && typeof value === "string" && !isHarmlessUrl(value))
    return withoutCredentials(value);
  return hide(value, schemaAt(SETTINGS_SCHEMA, path) ?? {});
}

function hide(value: unknown, at: JsonSchema): unknown {
  // A list may be called secret as a whole; who may do what is still worth showing, and its secrets have marks too.
  if (Array.isArray(value)) return value.map((item) => hide(item, (at.items as JsonSchema | undefined) ?? {}));
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, hide(inner, schemaAt(at, [key]) ?? {})]),
    );
  const isSecret = [at, ...alternatives(at)].some(({ secret }) => secret === true);
  if (typeof value === "string" && !isSecret) return withoutAnyCredentials(value);
  return isSecret && value !== null ? HIDDEN : value;
}

/** `drover.yml:12`: the line is enough for a person. */
export const originForPeople = (origin: Origin): string =>
  origin.kind === "file" ? `${origin.file}:${origin.line}` : shownOrigin(origin);

/** What a server tells of its config: every knob in force, what it would be by itself, and what it means. */
export function settingViews(effective: readonly Setting[]): SettingView[] {
  const standard = new Map(standardSettings().map(({ path, value }) => [shownPath(path), value]));
  return effective.map(withoutSecrets).map(({ path, value, origin }) => {
    // An entry of a table means what the table does.
    const meant = (at: Path): unknown => schemaAt(SETTINGS_SCHEMA, at)?.description;
    const about = meant(path) ?? meant(path.slice(0, -1));
    const shown = shownPath(path);
    return {
      path: shown,
      value,
      ...(standard.has(shown) ? { default: standard.get(shown) } : {}),
      origin: origin.kind,
      ...(origin.kind === "default" ? {} : { where: originForPeople(origin) }),
      ...(typeof about === "string" ? { about } : {}),
    };
  });
}
