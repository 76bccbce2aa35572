/** What other layers may use of this room. */

export {
  BYTES_MAX,
  BYTES_MIN,
  type Config,
  DEFAULT_CONFIG,
  gateSettings,
  type ProjectSettings,
  priority,
  projectFields,
  readConfig,
  type SchedulerRules,
  STRATEGIES,
  settingsFor,
} from "./config.ts";
export { amendPatch, withPatch } from "./config-patch.ts";
export { ALL_FILES_BYTES_MAX, FILE_BYTES_MAX, FILES_MAX, type FileRules } from "./file-rules.ts";
