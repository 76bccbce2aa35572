/**
 * What a program says of a worker it adds, read at the door.
 */

import { name, orNull, type Reader, readSection, section, setOf, whole } from "../../core/base/index.ts";
import type { Takes, WorkerSettings } from "../../core/model/index.ts";
import { refused } from "../writer/drover-error.ts";

/** A worker that tells more things apart than this is better told apart by a capability. */
const PATTERNS_MAX = 100;

/** Long enough for `tab:` and a tab's whole name. */
export const capability: Reader<string> = name(260);

type ParsedOptions = {
  readonly id: string | null;
  readonly slots: number;
  readonly capabilities: readonly string[];
  readonly resources: { readonly cpuMillicores: number | null; readonly memoryBytes: number | null };
  readonly zone: string | null;
} & Takes;

/** Names, or patterns with `*`; absent or null: all. */
const patterns = orNull(setOf(name(), PATTERNS_MAX));

export function readWorker(options: unknown): { id: string | null; settings: WorkerSettings; takes: Takes | null } {
  const unlimited: ParsedOptions["resources"] = { cpuMillicores: null, memoryBytes: null };
  const read = readSection<ParsedOptions>(
    {
      id: orNull(name()),
      slots: whole(1, 100_000),
      capabilities: setOf(capability, 10_000),
      resources: section({ cpuMillicores: orNull(whole(0)), memoryBytes: orNull(whole(0)) }, unlimited),
      zone: orNull(name()),
      actions: patterns,
      types: patterns,
      projects: patterns,
    },
    {
      id: null,
      slots: 1,
      capabilities: [],
      resources: unlimited,
      zone: null,
      actions: null,
      types: null,
      projects: null,
    },
    options,
    "",
  );
  if (!read.ok) throw refused(read.failure);
  const { id, slots, capabilities, resources, zone, actions, types, projects } = read.value;
  const takesAll = actions === null && types === null && projects === null;
  return {
    id,
    takes: takesAll ? null : { actions, types, projects },
    settings: {
      slots,
      capabilities,
      cpu: resources.cpuMillicores,
      memory: resources.memoryBytes,
      zone,
      status: "ready",
    },
  };
}
