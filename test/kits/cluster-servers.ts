/**
 * Servers over the nodes of a cluster in one process: each on a free port of loopback, over one journal in memory.
 */
import type { TestContext } from "node:test";
import { type ServerOptions, startServer } from "../../src/server/start-server.ts";
import { createCluster, type TestCluster, type TestNode } from "./cluster.ts";
import { type Client, clientOf, settingsOf } from "./test-server.ts";

export type NodeServer = Client & { readonly node: TestNode; readonly url: string; close(): Promise<void> };
export type ServedCluster = TestCluster & {
  readonly servers: readonly NodeServer[];
  /** The server of the node that leads, and those of the others. */
  leading(): NodeServer;
  following(): NodeServer[];
  /** The node with the lead gives it to the other, or to one of them. */
  moveLead(): Promise<void>;
};

export async function serveCluster(
  context: TestContext,
  ids: readonly string[],
  given: {
    readonly settings?: Record<string, unknown>;
    readonly server?: Partial<ServerOptions>;
    /** What the leader puts in force. */
    readonly config?: object;
  } = {},
): Promise<ServedCluster> {
  const cluster = await createCluster(context, ids, given.config);
  const { clock, settle, urls } = cluster;
  const servers: NodeServer[] = [];
  for (const node of cluster.nodes) {
    const settings = settingsOf(given.settings);
    const server = await startServer({ drover: node.drover, node, settings, ...given.server });
    urls.set(node.id, server.url);
    context.after(() => server.close());
    servers.push({ node, url: server.url, close: () => server.close(), ...clientOf(server.url) });
  }
  // Each says where it is when it tells of itself again, and the leader takes that down.
  await clock.advance(4000);
  await settle();
  const leads = ({ node }: NodeServer): boolean => node.id === cluster.leader().id;
  return {
    ...cluster,
    servers,
    leading: () => servers.find(leads) as NodeServer,
    following: () => servers.filter((server) => !leads(server)),
    async moveLead() {
      const over = cluster.leader().handOver();
      await clock.advance(1000);
      await over;
      await clock.advance(4000);
      await settle();
    },
  };
}
