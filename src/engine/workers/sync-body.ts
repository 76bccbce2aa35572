/**
 * What a worker says: of itself when it joins, and by a sync all that is new since the last one.
 *
 * The fields are read by their schemas. Here they become what the core takes: sets are sorted, and what is absent has
 * its default.
 */

import type { PushTarget, Takes, WorkerSettings } from "../../core/model/index.ts";
import type { JoinBody, SyncBody, WorkerOptions } from "../../protocol/index.ts";
import { joinBody, syncBody, workerOptions } from "../../protocol/shapes/index.ts";
import { readBody } from "../writer/call-options.ts";
import { canonical } from "../writer/canonical-json.ts";
import { badInput } from "../writer/drover-error.ts";

const PROGRESS_BYTES_MAX = 16 * 1024;

type ReadWorker = { readonly id: string | null; readonly settings: WorkerSettings; readonly takes: Takes | null };

export const readWorker = (options: unknown): ReadWorker => toWorker(readBody(workerOptions, options));

export function readJoin(body: JoinBody): ReadWorker & { readonly target: PushTarget | null } {
  const { endpoint, path = null, ...options } = readBody(joinBody, body);
  return { ...toWorker(options), target: endpoint === undefined ? null : { endpoint: new URL(endpoint).href, path } };
}

function toWorker(options: WorkerOptions): ReadWorker {
  const { id = null, slots = 1, capabilities = [], resources, zone = null } = options;
  const takes = { actions: setOf(options.actions), types: setOf(options.types), projects: setOf(options.projects) };
  return {
    id,
    takes: takes.actions === null && takes.types === null && takes.projects === null ? null : takes,
    settings: {
      slots,
      capabilities: setOf(capabilities),
      cpu: resources?.cpuMillicores ?? null,
      memory: resources?.memoryBytes ?? null,
      zone,
      status: "ready",
    },
  };
}

/** Without repeats and sorted, so that equal sets are equal values. */
function setOf(names: readonly string[]): readonly string[];
function setOf(names: readonly string[] | null | undefined): readonly string[] | null;
function setOf(names: readonly string[] | null | undefined): readonly string[] | null {
  return names === undefined || names === null ? null : [...new Set(names)].sort();
}

export function readSync(given: SyncBody): SyncBody {
  const body = readBody(syncBody, given);
  const { capabilities, running = [] } = body;
  for (const [index, { progress }] of running.entries()) {
    const size = progress === undefined ? 0 : canonical(progress, `running[${index}].progress`).length;
    if (size > PROGRESS_BYTES_MAX)
      throw badInput(
        `running[${index}].progress`,
        `${size} characters`,
        `at most ${PROGRESS_BYTES_MAX} characters of JSON`,
      );
  }
  return capabilities === undefined ? body : { ...body, capabilities: setOf(capabilities) };
}
