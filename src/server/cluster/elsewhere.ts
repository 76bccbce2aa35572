/**
 * What is not on this node is asked of those that may have it: only of nodes that were heard of lately. The address of
 * one that is gone may be anybody's by now, who would get a token and be believed.
 *
 * - A content that a task lists is copied here first, which compares it with its hash, and answered from here.
 * - A log is asked of every node, as this node and not as the caller: that the caller may read it was seen here. So the
 *   task must be known here, and the other node must be as far.
 * - What this node knows nothing of, the leader alone may: a task that it has turned away, a content that no task lists
 *   yet. It is asked with the caller's own token, as for what changes something.
 */

import type { Drover } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import { type Holder, ServerRefusal } from "../../http/index.ts";
import { AFTER_HEADER, type CallName, FORWARDED_HEADER } from "../../protocol/wire/index.ts";
import type { Asking, CameIn } from "./asking.ts";
import type { Doors } from "./doors.ts";
import type { FileCopies } from "./file-copies.ts";
import type { ForwardRoom } from "./forward-room.ts";

/** Where something may be. */
type Whereabouts = "copy" | "nodes" | "leader";
export type LookedFor = CameIn & {
  readonly holder: Holder;
  /** Why it was not answered here. */
  readonly refusal: unknown;
  /** What the path names: a task, or the hash of a content. */
  readonly params: Readonly<Record<string, unknown>>;
};
export type Elsewhere = {
  /** Its answer was passed back; or it is here now; or null: nobody has it. */
  elsewhere(asked: LookedFor): Promise<{ readonly status: number } | "here" | null>;
  /** Whether it is worth a look, after this refusal. */
  mayBe(name: CallName, refusal: unknown): boolean;
};

export function createElsewhere(deps: {
  readonly node: Pick<DroverNode, "peers" | "leaderUrl" | "applied">;
  readonly doors: Pick<Doors, "tokenFor" | "answered">;
  readonly drover: Pick<Drover, "state">;
  readonly asking: Asking;
  readonly copies: Pick<FileCopies, "fetch">;
  readonly room: ForwardRoom;
}): Elsewhere {
  const { node, drover, doors, asking, copies, room } = deps;

  async function askLeader(call: CameIn): Promise<{ readonly status: number } | null> {
    const leader = await asking.findLeader();
    return leader === null ? null : askOne(call, leader);
  }

  async function askNodes(call: CameIn): Promise<{ readonly status: number } | null> {
    for (const place of node.peers()) {
      const token = await doors.tokenFor(place);
      if (token === null) continue;
      const headers = { authorization: `Bearer ${token}`, [AFTER_HEADER]: String(node.applied().seq) };
      const answered = await askOne(call, place.url, headers, (status) => doors.answered(place, status));
      if (answered !== null) return answered;
    }
    return null;
  }

  async function askOne(
    call: CameIn,
    base: string,
    headers: Readonly<Record<string, string>> = {},
    onAnswer: (status: number) => void = () => {},
  ): Promise<{ readonly status: number } | null> {
    const outcome = await asking.ask({ ...call, base, asLeader: false, body: null, headers });
    if (outcome.kind !== "answer") return null;
    onAnswer(outcome.answer.statusCode ?? 0);
    if (outcome.answer.statusCode === 200) return asking.handBack(call, outcome, node.leaderUrl() ?? base);
    outcome.answer.destroy();
    return null;
  }

  async function look(where: Whereabouts, { params, refusal: _, ...call }: LookedFor) {
    if (where === "leader") return askLeader(call);
    if (where === "copy") return (await copies.fetch(String(params.hash))) ? "here" : null;
    return drover.state.tasks.has(String(params.id) as never) ? askNodes(call) : null;
  }

  return {
    mayBe: (name, refusal) => whereabouts(name, refusal) !== null,
    async elsewhere(asked) {
      const where = whereabouts(asked.name, asked.refusal);
      if (where === null || asked.request.headers[FORWARDED_HEADER] !== undefined) return null;
      const leave = room.take(asked);
      if (leave === null) return null;
      try {
        return await look(where, asked);
      } finally {
        leave();
      }
    },
  };
}

function whereabouts(name: CallName, refusal: unknown): Whereabouts | null {
  const { code } = refusal as { readonly code?: unknown };
  switch (name) {
    case "task":
    case "wait":
      return code === "not_found" ? "leader" : null;
    case "file":
      return code === "damaged" ? "copy" : code === "not_found" ? "leader" : null;
    case "logs":
      // The engine's own refusal says that there is no such task for this caller.
      return refusal instanceof ServerRefusal && (code === "not_found" || code === "worker_silent") ? "nodes" : null;
    default:
      return null;
  }
}
