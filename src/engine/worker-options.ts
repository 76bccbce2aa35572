/**
 * What a program says of a worker it adds, read at the door.
 */
import type { WorkerSettings } from "../core/commands.ts";
import { name, orNull, readSection, section, setOf, whole } from "../core/shape-of-input.ts";
import { refused } from "./drover-error.ts";

type ParsedOptions = {
  readonly id: string | null;
  readonly slots: number;
  readonly capabilities: readonly string[];
  readonly resources: { readonly cpuMillicores: number | null; readonly memoryBytes: number | null };
  readonly zone: string | null;
};

export function readWorker(options: unknown): { id: string | null; settings: WorkerSettings } {
  const unlimited: ParsedOptions["resources"] = { cpuMillicores: null, memoryBytes: null };
  const read = readSection<ParsedOptions>(
    {
      id: orNull(name()),
      slots: whole(1, 100_000),
      capabilities: setOf(name(), 10_000),
      resources: section({ cpuMillicores: orNull(whole(0)), memoryBytes: orNull(whole(0)) }, unlimited),
      zone: orNull(name()),
    },
    { id: null, slots: 1, capabilities: [], resources: unlimited, zone: null },
    options,
    "",
  );
  if (!read.ok) throw refused(read.failure);
  const { id, slots, capabilities, resources, zone } = read.value;
  return {
    id,
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
