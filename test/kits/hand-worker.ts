/**
 * A worker over the wire, played by hand: each call is one sync, numbered.
 */

import type { Joined, SyncAnswer, SyncBody } from "../../src/protocol/index.ts";
import { createTestDrover, type TestDrover } from "../../src/testing/index.ts";

export const kitWith = (config: object = {}): Promise<TestDrover> => createTestDrover({ config });

export type HandWorker = Joined & {
  sync(told?: SyncBody, options?: { readonly signal?: AbortSignal }): Promise<SyncAnswer>;
};

export async function join(kit: TestDrover, body: object = {}): Promise<HandWorker> {
  const joined = await kit.drover.remote.join({ id: "ann", ...body });
  let n = 0;
  const sync: HandWorker["sync"] = (told = {}, options = {}) =>
    kit.drover.remote.sync("ann", { session: joined.session, n: ++n, ...told }, options);
  return { ...joined, sync };
}

export const submit = (kit: TestDrover, id: string, more: object = {}): Promise<unknown> =>
  kit.drover.submit({ agentId: "a", action: "go", id, ...more });
export const one = (id: string, attempt = 1): { taskId: string; attempt: number } => ({ taskId: id, attempt });
