/**
 * The nodes of a cluster: who leads, how far behind the others are, how the journal is; and an alarm where their
 * histories differ.
 *
 * What is not of now is not shown as if it were: a server that has gone was perhaps the leader itself, and one that is
 * cut off from the journal knows the others as they were, and itself as it is. What is only known from before is "last
 * known", in plain colours, and each row tells when its node was heard of.
 */
import { Fragment, type JSX } from "preact";
import type { ClusterLog, ClusterNode } from "../../protocol/generated/index.ts";
import { live } from "../data/live.ts";
import { useStore } from "../data/store.ts";
import { useCall } from "../data/use-call.ts";
import { useCluster } from "../data/who.ts";
import { bytes, count, plural, span } from "../data/words.ts";
import { Empty, Loaded, Name, Panel, Stat, TableBox, View } from "../parts/pieces.tsx";

/** Nodes tell of themselves every two seconds, and no event says so. */
const LOOK_MS = 2000;
const LAG_WARN_MS = 5000;

export default function Cluster(): JSX.Element {
  const isNode = useCluster();
  const { state } = useStore(live);
  const cluster = useCall("cluster", isNode === true ? {} : null, { agesMs: LOOK_MS });
  if (isNode !== true)
    return (
      <View title="Cluster">
        <Panel>
          {isNode === null ? (
            <p class="loading">{state === "lost" ? "Not known until the server answers." : "Loading…"}</p>
          ) : (
            <Empty hint="Several servers can share one log, on etcd or PostgreSQL: docs/operate/cluster.md.">
              This server is alone: it has a log of its own.
            </Empty>
          )}
        </Panel>
      </View>
    );
  return (
    <View title="Cluster">
      <Loaded from={cluster}>
        {({ nodes, log }) => {
          const isLost = state === "lost" || cluster.error !== null;
          const isOld = isLost || log.awayMs !== undefined;
          return (
            <>
              <Alarms nodes={nodes} log={log} />
              <Sum nodes={nodes} log={log} isOld={isOld} />
              <Nodes nodes={nodes} isLost={isLost} />
              <Journal log={log} isOld={isOld} />
            </>
          );
        }}
      </Loaded>
    </View>
  );
}

function Alarms({ nodes, log }: { nodes: readonly ClusterNode[]; log: ClusterLog }): JSX.Element | null {
  const other = nodes.filter(({ differs }) => differs === true).map(({ id }) => id);
  if (other.length === 0 && log.warnings.length === 0) return null;
  return (
    <>
      {other.length === 0 ? null : (
        <p class="failure" role="alert">
          The history of <bdi>{other.join(", ")}</bdi> differs from this node's: the same event has another hash there.
          Stop one of them, and verify both logs.
        </p>
      )}
      {log.warnings.map((warning) => (
        <p class="failure" role="alert" key={warning}>
          <bdi>{capital(warning)}</bdi>
        </p>
      ))}
    </>
  );
}

/** What one node has said of all, and whether that is not of now. */
type Seen = { readonly nodes: readonly ClusterNode[]; readonly log: ClusterLog; readonly isOld: boolean };

function Sum({ nodes, log, isOld }: Seen): JSX.Element {
  const leader = nodes.find(({ role }) => role === "leader");
  const [down, stopped] = (["down", "stopped"] as const).map(
    (gone) => nodes.filter(({ role }) => role === gone).length,
  );
  const up = nodes.length - (down ?? 0) - (stopped ?? 0);
  const known = isOld ? ", last known" : "";
  const lag = Math.max(
    0,
    ...nodes.flatMap(({ role, ageMs, lagMs }) => (role === "follower" && ageMs === undefined ? [lagMs] : [])),
  );
  return (
    <dl class="stats">
      <Stat
        label={`Nodes${known}`}
        value={count(up)}
        of={up === nodes.length ? undefined : `of ${count(nodes.length)}`}
        hint={<Gone down={down ?? 0} stopped={stopped ?? 0} isOld={isOld} />}
      />
      <Stat
        label={`Leader${known}`}
        value={leader === undefined ? <span class="bad">none</span> : <Name>{leader.id}</Name>}
        hint={leader === undefined ? "nothing starts until one leads" : `epoch ${count(leader.epoch)}`}
      />
      <Stat label="Longest lag" value={isOld ? "not known" : lag === 0 ? "none" : span(lag)} />
      <Stat
        label={`Last event${known}`}
        value={count(log.seq)}
        hint={<span class="mono">{log.hash.slice(0, 10)}</span>}
      />
    </dl>
  );
}

function Gone({ down, stopped, isOld }: { down: number; stopped: number; isOld: boolean }): JSX.Element {
  if (down > 0) return <span class="bad">{plural(down, "node")} down</span>;
  if (stopped > 0) return <>{plural(stopped, "node")} stopped</>;
  return <>{isOld ? "none was down" : "all are here"}</>;
}

const TONES = { leader: "done", follower: "running", down: "failed", stopped: "cancelled" } as const;

/** `isLost`: the server does not answer, so nothing is of now. */
function Nodes({ nodes, isLost }: { nodes: readonly ClusterNode[]; isLost: boolean }): JSX.Element {
  return (
    <Panel title="Nodes" isFlush>
      <TableBox label="Nodes">
        <table class="table is-cards">
          <thead>
            <tr>
              <th>Node</th>
              <th>Role</th>
              <th class="number">Behind</th>
              <th class="number">Heard</th>
              <th class="number">Event</th>
              <th class="number">Epoch</th>
              <th>Hash</th>
              <th>Address</th>
            </tr>
          </thead>
          <tbody>
            {nodes.map((node) => (
              <NodeRow key={node.id} {...node} isOld={isLost || node.ageMs !== undefined} />
            ))}
          </tbody>
        </table>
      </TableBox>
    </Panel>
  );
}

function NodeRow({ isOld, ...node }: ClusterNode & { isOld: boolean }): JSX.Element {
  const { id, url, role, lagMs, heardMs, seq, epoch, hash, differs } = node;
  const isBehind = role === "follower" && lagMs > 0;
  const isKnown = !isOld && role !== "down";
  return (
    <tr>
      <td class="name">
        <Name>{id}</Name>
      </td>
      <td>
        {isOld ? <span class="badge">{role}, last known</span> : <span class={`badge is-${TONES[role]}`}>{role}</span>}
      </td>
      <td class={`number nowrap ${isKnown && lagMs > LAG_WARN_MS ? "bad" : "muted"}`} data-is="behind">
        {isKnown ? (isBehind ? span(lagMs) : "no") : "?"}
      </td>
      <td class="number nowrap muted" data-is="heard">
        {heardMs === undefined ? "?" : heardMs < SECOND_MS ? "now" : `${inSeconds(heardMs)} ago`}
      </td>
      <td class="number nowrap" data-is="event">
        {count(seq)}
      </td>
      <td class="number muted" data-is="epoch">
        {count(epoch)}
      </td>
      <td class={differs === true ? "mono bad" : "mono faint"} title={hash}>
        {hash.slice(0, 10)}
        {differs === true ? " differs" : ""}
      </td>
      <td class="loose">
        <a href={`${url}/ui/`}>
          <bdi>{url}</bdi>
        </a>
      </td>
    </tr>
  );
}

const SECOND_MS = 1000;
const inSeconds = (ms: number): string => span(Math.floor(ms / SECOND_MS) * SECOND_MS).replace(".0", "");
const capital = (sentence: string): string => sentence.charAt(0).toUpperCase() + sentence.slice(1);

function Journal({ log, isOld }: Pick<Seen, "log" | "isOld">): JSX.Element {
  const { kind, address, version, bytes: size, prunedTo, members } = log;
  const facts: readonly (readonly [string, string | null])[] = [
    ["Kept by", version === undefined ? kind : `${kind} ${version}`],
    ["Address", address],
    ["Takes", size === undefined ? null : bytes(size)],
    ["Begins behind", prunedTo === 0 ? null : `event ${count(prunedTo)}`],
    ...members.map(({ name, address: at, isUp }) => {
      const label = name === at ? "Member" : `Member ${name}`;
      return [label, `${at}, ${isUp ? "up" : "down"}${isOld ? ", last known" : ""}`] as const;
    }),
  ];
  return (
    <Panel title={isOld ? "The log they share, as last known" : "The log they share"}>
      <dl class="facts">
        {facts.map(([name, value]) =>
          value === null ? null : (
            <Fragment key={name + value}>
              <dt>{name}</dt>
              <dd>
                <bdi>{value}</bdi>
              </dd>
            </Fragment>
          ),
        )}
      </dl>
    </Panel>
  );
}
