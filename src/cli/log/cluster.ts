/**
 * `drover cluster status`: the nodes that share a log, how far each is, and how the log itself is.
 *
 * It is what one node sees: each row is of when its node was heard of last, and what is only known from before looks
 * so. Two histories that differ are the one thing that must never be: they are an alarm in the table, and a sentence
 * below it. They, a cluster that takes nothing and a node that is down are exit code 1, so that a script that looks
 * now and then needs to read nothing.
 */
import { type Client, ClientError } from "../../client/index.ts";
import type { ClusterNode, ClusterView } from "../../protocol/index.ts";
import { clientFor } from "../shell/connection.ts";
import type { Output } from "../shell/output.ts";
import { EXIT, type ExitCode } from "../shell/problem.ts";
import { plain, type Tint } from "../shell/text.ts";
import type { Call, Verb, VerbBody } from "../shell/verb.ts";
import { bytes, count, span } from "../show/time.ts";

type NoFlags = Record<never, never>;
/** Of a server that is no node: its own log. */
type Alone = { readonly nodes: readonly []; readonly log: { readonly kind: "own"; readonly seq: number } };

const status: Verb<NoFlags> = {
  name: "status",
  summary: "list the nodes, how far each is, and the health of their log",
  about:
    "Exit code 0: one leads, none is down, and their histories are the same; 1: a trouble, which --json names in " +
    "troubles: histories-differ, which is an alarm; journal-away and read-only, of the node that answers; no-leader; " +
    "node-down, which one that was stopped in order is not. 3: no server answers.",
  examples: [
    ["drover cluster status", "of the cluster of $DROVER_URL"],
    ["drover cluster status --json --url http://a:4747,http://b:4747", "for programs, from a node that answers"],
  ],
  run,
};

export const clusterVerb: VerbBody<NoFlags> = {
  examples: status.examples ?? [],
  verbs: [status as Verb<never>],
  run,
};

async function run(call: Call<NoFlags>): Promise<ExitCode> {
  const { output } = call;
  const seen = await look(clientFor(call));
  if (isAlone(seen)) {
    output.answer(seen, () => `This server is no node of a cluster. Its own log is at event ${count(seen.log.seq)}.\n`);
    return EXIT.ok;
  }
  const view: ClusterView = { ...seen, nodes: seen.nodes.map((node) => withAlarm(node, seen.nodes)) };
  const troubles = troublesOf(view);
  const shown = (): string => `${tableOf(view, output)}\n${logLines(view)}${alarmLines(view, troubles, output)}`;
  output.answer({ ...view, troubles }, shown);
  return troubles.length === 0 ? EXIT.ok : EXIT.failed;
}

type Trouble = "histories-differ" | "journal-away" | "read-only" | "no-leader" | "node-down";

/** Why a cluster needs somebody who looks. */
function troublesOf({ nodes, log }: ClusterView): readonly Trouble[] {
  const all: readonly [Trouble, boolean][] = [
    ["histories-differ", nodes.some(({ differs }) => differs)],
    ["journal-away", log.awayMs !== undefined],
    ["read-only", log.readOnly !== undefined],
    // Where the journal is away nobody can say who leads.
    ["no-leader", log.awayMs === undefined && !nodes.some(({ role }) => role === "leader")],
    ["node-down", nodes.some(isDown)],
  ];
  return all.filter(([, isSo]) => isSo).map(([trouble]) => trouble);
}

/** That a node is down may only be known from before. */
const isDown = ({ role, ageMs }: ClusterNode): boolean => role === "down" && ageMs === undefined;

const isAlone = (seen: ClusterView | Alone): seen is Alone => seen.log.kind === "own";

async function look(client: Client): Promise<ClusterView | Alone> {
  try {
    return await client.cluster();
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== "not_found") throw error;
    const { seq } = await client.ready();
    return { nodes: [], log: { kind: "own", seq } };
  }
}

/** The node that answers compares others with itself; those that are ahead of it can only be compared here. */
const withAlarm = (node: ClusterNode, nodes: readonly ClusterNode[]): ClusterNode =>
  nodes.some(({ seq, hash }) => seq > 0 && seq === node.seq && hash !== node.hash) ? { ...node, differs: true } : node;

const TINTS: Readonly<Record<ClusterNode["role"], Tint | null>> = {
  leader: "green",
  follower: null,
  down: "red",
  stopped: "dim",
};

const tableOf = ({ nodes }: ClusterView, output: Output): string =>
  output.table(nodes, [
    { title: "ID", of: ({ id }) => id, stays: true },
    {
      title: "ROLE",
      of: ({ role, ageMs }) => (ageMs === undefined ? role : `was ${role}`),
      tint: ({ role, ageMs }) => (ageMs === undefined ? TINTS[role] : "dim"),
    },
    { title: "EPOCH", of: ({ epoch }) => count(epoch), align: "right", leaves: 2 },
    { title: "EVENT", of: ({ seq }) => count(seq), align: "right" },
    { title: "LAG", of: lagOf, align: "right", leaves: 1 },
    { title: "HEARD", of: ({ heardMs }) => (heardMs === undefined ? "" : heard(heardMs)), align: "right", leaves: 3 },
    { title: "URL", of: ({ url }) => url, shrinks: true },
    { title: "ALARM", of: ({ differs }) => (differs ? "another history" : ""), tint: () => "red" },
  ]);

/** A leader has all there is, for as long as it leads; of one that is not there nobody knows. */
function lagOf({ role, lagMs, ageMs }: ClusterNode): string {
  if (ageMs !== undefined || role === "down") return "?";
  return role === "follower" ? span(lagMs) : "-";
}

const SECOND_MS = 1000;
/** Whole seconds: journals count no finer. */
const heard = (ms: number): string => (ms < SECOND_MS ? "now" : `${span(Math.floor(ms / SECOND_MS) * SECOND_MS)} ago`);

function logLines({ log }: ClusterView): string {
  const { kind, address, version, seq, epoch, prunedTo, members, warnings, awayMs, ageMs } = log;
  const away = awayMs === undefined ? "" : ` out of reach for ${span(awayMs)}. ${span(ageMs ?? awayMs)} ago:`;
  const is = awayMs === undefined ? "is" : "was";
  const facts = [
    `event ${count(seq)}`,
    `epoch ${count(epoch)}`,
    ...(prunedTo === 0 ? [] : [`begins behind ${count(prunedTo)}`]),
    ...(log.bytes === undefined ? [] : [bytes(log.bytes)]),
    ...members.map(({ name, address: at, isUp }) => `${plain(name || at)} ${is} ${isUp ? "up" : "down"}`),
  ];
  const title = [kind, version ?? "", `at ${address}`].filter((word) => word !== "").join(" ");
  return [
    `The log: ${plain(title)}:${away} ${facts.join(", ")}.\n`,
    ...warnings.map((text) => `warning: ${plain(text)}\n`),
  ].join("");
}

function alarmLines({ nodes }: ClusterView, troubles: readonly Trouble[], { paint }: Output): string {
  const odd = nodes.filter(({ differs }) => differs);
  const nobody = "alarm: no node is known to lead: what changes something is refused until one does";
  const unled = troubles.includes("no-leader") ? `${paint("red", nobody)}.\n` : "";
  const differing = odd
    .map(
      ({ id, seq }) =>
        `alarm: ${plain(id)} has another hash at event ${count(seq)} than others: their histories differ`,
    )
    .map((text) => `${paint("red", text)}; stop it, and run drover verify on its data directory.\n`);
  const down = nodes.filter(isDown).map(({ id, heardMs = 0 }) => {
    const text = `alarm: ${plain(id)} is down: it was heard of last ${heard(heardMs)}`;
    return `${paint("red", text)}; start it again. One that is silent for an hour is forgotten.\n`;
  });
  return [unled, ...down, ...differing].join("");
}
