/**
 * Who looks at the page, and which buttons that gives.
 */
import type { WhoAmI } from "../../protocol/generated/index.ts";
import { live } from "./live.ts";
import { createStore, type Store, useStore } from "./store.ts";

export const who: Store<WhoAmI | null> = createStore<WhoAmI | null>(null);

/** Whether the server is a node of a cluster; null until a pulse has said so. */
export function useCluster(): boolean | null {
  const { pulse } = useStore(live);
  return pulse === null ? null : pulse.node !== undefined;
}

export type Rights = {
  /** Submits, cancels and retries tasks and plans. */
  readonly mayAct: boolean;
  /** Answers what tasks ask: an agent would approve itself. */
  readonly mayApprove: boolean;
  /** Changes what is everybody's: weights, workers, gates, rules, pauses. */
  readonly mayManage: boolean;
  /** Sees what is of the whole fleet: the config, the log as a whole, the nodes. */
  readonly mayWatch: boolean;
  /** Has some projects or one agent; numbers of the fleet are not theirs. */
  readonly isScoped: boolean;
  readonly who: WhoAmI | null;
};

export function useRights(): Rights {
  const me = useStore(who);
  const mayAct = me?.role === "admin" || me?.role === "agent";
  const isScoped = me?.agentId !== undefined || me?.projects !== undefined;
  return {
    mayAct,
    mayApprove: mayAct && me?.agentId === undefined,
    mayManage: me?.role === "admin" && !isScoped,
    mayWatch: (me?.role === "admin" || me?.role === "viewer") && !isScoped,
    isScoped,
    who: me,
  };
}
