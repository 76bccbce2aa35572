/**
 * `drover serve` as a node of a cluster: what is opened, and what answers until it is.
 *
 * The address is taken first, since other nodes are told of it, and answers that nothing is ready while the log is
 * waited for. Then the service takes it over.
 */
import { type DroverNode, openNodeByUrl } from "../../engine/node/index.ts";
import type { Settings } from "../../protocol/index.ts";
import { listenWhileWaiting } from "../../server/index.ts";
import { withoutCredentials } from "../config/secret.ts";
import { usageProblem } from "../shell/problem.ts";
import type { JournalTarget } from "./messages.ts";

export type OpenedNode = {
  readonly node: DroverNode;
  /** The port that the service is to have. */
  readonly port: number;
  readonly advertise: string;
};

export async function openServedNode(options: {
  readonly log: JournalTarget;
  readonly settings: Settings;
  /** What it puts in force when it leads. */
  readonly config: () => Settings["config"];
  readonly complain: (text: string) => void;
  readonly signal: AbortSignal;
}): Promise<OpenedNode> {
  const { log, settings, config, complain, signal } = options;
  const { server, cluster } = settings;
  checkAddress(settings);
  let lastNotice = `this node is not ready: it waits for the log at ${withoutCredentials(log.url)}`;
  const waiting = await listenWhileWaiting(server, () => `${lastNotice}; try again`);
  const advertise = (cluster.advertise ?? waiting.url).replace(/\/+$/, "");
  try {
    const node = await openNodeByUrl({
      url: log.url,
      data: log.directory,
      node: cluster.node,
      advertise: () => advertise,
      leaseMs: cluster.lease,
      config,
      signal,
      onWarning: complain,
      onNotice: (line) => {
        lastNotice = line;
        complain(line);
      },
    });
    return { node, port: waiting.port, advertise };
  } finally {
    await waiting.close();
  }
}

/** An address that names every address of this machine is none that others could come back to. */
function checkAddress({ server, cluster }: Settings): void {
  if (cluster.advertise !== null || !EVERY_ADDRESS.has(server.host)) return;
  throw usageProblem(
    `this node listens on every address of the machine (server.host is ${server.host}), and other nodes need one`,
    "say where they reach it: --advertise http://HOST:PORT",
  );
}
const EVERY_ADDRESS: ReadonlySet<string> = new Set(["0.0.0.0", "::", "[::]"]);
