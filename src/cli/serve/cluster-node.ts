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
import { keepNodeConfig, type NodeConfig } from "./node-config.ts";

export type OpenedNode = {
  readonly node: DroverNode;
  /** The port that the service is to have. */
  readonly port: number;
  readonly advertise: string;
  readonly config: NodeConfig;
  /** What is to be known where its log has no history yet: it may be the wrong one. */
  readonly begins: string | null;
};

export async function openServedNode(options: {
  readonly log: JournalTarget;
  readonly settings: Settings;
  /** What it puts in force when it leads. */
  readonly config: Settings["config"];
  readonly say: (text: string) => void;
  readonly complain: (text: string) => void;
  readonly signal: AbortSignal;
}): Promise<OpenedNode> {
  const { log, settings, say, complain, signal } = options;
  const { server, cluster } = settings;
  checkAddress(settings);
  const place = withoutCredentials(log.url);
  let lastNotice = `this node is not ready: it waits for the log at ${place}`;
  const waiting = await listenWhileWaiting(server, () => `${lastNotice}; try again`);
  say(`Listening at ${waiting.url}, not ready before the log at ${place} has answered`);
  let opened: DroverNode | null = null;
  let begins: string | null = null;
  const config = keepNodeConfig(options.config, () => opened, { complain });
  const advertise = new URL(cluster.advertise ?? waiting.url).origin;
  try {
    opened = await openNodeByUrl({
      url: log.url,
      data: log.directory,
      node: cluster.node,
      advertise: () => advertise,
      leaseMs: cluster.lease,
      config: config.own,
      signal,
      onWarning: complain,
      onNewHistory: (address, beside) => {
        begins = newHistory(address, beside);
        complain(begins);
      },
      onNotice: (line) => {
        lastNotice = line;
        complain(line);
      },
    });
    return { node: opened, port: waiting.port, advertise, config, begins };
  } catch (error) {
    config.stop();
    throw error;
  } finally {
    await waiting.close();
  }
}

/** A prefix or a schema that is mistyped is an empty one, and nothing else tells of it. */
const newHistory = (address: string, beside: readonly string[]): string =>
  `this node begins a NEW history at ${address}: there was none` +
  (beside.length === 0
    ? ""
    : `. ${beside.join(", ")} ${beside.length === 1 ? "has" : "have"} one: stop this node if that was meant`);

/** An address that names every address of this machine is none that others could come back to. */
function checkAddress({ server, cluster }: Settings): void {
  if (cluster.advertise !== null || !EVERY_ADDRESS.has(server.host)) return;
  throw usageProblem(
    `this node listens on every address of the machine (server.host is ${server.host}), and other nodes need one`,
    "say where they reach it: --advertise http://HOST:PORT",
  );
}
const EVERY_ADDRESS: ReadonlySet<string> = new Set(["0.0.0.0", "::", "[::]"]);
