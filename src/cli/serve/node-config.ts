/**
 * The config of a node: in force while it leads, kept for that time while it follows.
 *
 * What tasks are decided by is a fact of the log, so all nodes go by one config: that of the leader. A node that takes
 * the lead puts its own file in force. Where the files of nodes differ, the rules change with the leader, which nobody
 * wants; so a node that follows says what differs, once for each difference.
 */
import { DroverError } from "../../engine/index.ts";
import type { DroverNode } from "../../engine/node/index.ts";
import type { Settings } from "../../protocol/index.ts";
import { shownPath } from "../../protocol/schema/index.ts";
import { type Clock, realClock, ringEvery } from "../../std/index.ts";
import { type Differences, differing } from "../config/differences.ts";

type Config = Settings["config"];
/** As much of a node as its config is about. */
type LedNode = Pick<DroverNode, "life"> & {
  readonly drover: Pick<DroverNode["drover"], "reload"> & {
    readonly state: Pick<DroverNode["drover"]["state"], "base" | "cluster">;
  };
};

export type NodeConfig = {
  /** What this node puts in force when it leads. */
  own(): Config;
  /** Another one from now on. */
  change(config: Config): Promise<void>;
  /** In what it is not the one in force. */
  differences(): Differences;
  stop(): void;
};

const LOOK_MS = 2000;
const SHOWN_MAX = 5;

/** `node` may be there later: a config is needed to open it. */
export function keepNodeConfig(
  first: Config,
  node: () => LedNode | null,
  { complain, clock = realClock }: { readonly complain: (text: string) => void; readonly clock?: Clock },
): NodeConfig {
  let own = first;
  let told = "";
  const cancel = ringEvery(clock, LOOK_MS, look, { keepAlive: false });

  function differences(): Differences {
    const state = node()?.drover.state ?? null;
    return state === null
      ? { leader: null, all: [] }
      : { leader: state.cluster.leader, all: differing(own, state.base) };
  }

  function look(): void {
    if (node()?.life().role === "leader") return;
    const { leader, all } = differences();
    if (leader === null) return;
    const paths = all.map(({ path }) => shownPath(path));
    const more = paths.length > SHOWN_MAX ? ` and ${paths.length - SHOWN_MAX} more` : "";
    const shown = paths.slice(0, SHOWN_MAX).join(", ") + more;
    if (shown !== told && shown !== "")
      complain(
        `the config of this node is not the one in force, which is that of ${leader}, the leader: ` +
          `they differ in ${shown}. Give all nodes the same; this one's would hold when it leads.`,
      );
    told = shown;
  }

  async function change(config: Config): Promise<void> {
    const present = node();
    if (present?.life().role === "leader") await present.drover.reload(config).catch(unlessFollower);
    own = config;
    look();
  }
  return { own: () => own, change, differences, stop: cancel };
}

/** The lead may be gone in between. Then the config waits for the next time. */
function unlessFollower(error: unknown): void {
  if (!(error instanceof DroverError) || !["no_leader", "deposed"].includes(error.code)) throw error;
}
