/**
 * The graph of a plan, a batch or a tree: coloured by state, live, with the chain that takes longest marked.
 *
 * The layout is made anew only when tasks or edges change; a change of state only changes colours.
 */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso";
import { Refused } from "../data/ask.ts";
import {
  criticalPath,
  type GraphKind,
  type GraphNode,
  isGraphKind,
  useGraph,
  useGraphKind,
} from "../data/graph-data.ts";
import { draw, HEIGHT, type Placed, WIDTH } from "../data/graph-layout.ts";
import { to } from "../data/links.ts";
import { useNow } from "../data/use-call.ts";
import { plural, span, steady } from "../data/words.ts";
import { Empty, Failure, Missing, Name, Panel, State, View } from "../parts/pieces.tsx";
import { PlanActs, Progress } from "./plans.tsx";

const ZOOM_MIN = 0.3;
const ZOOM_MAX = 2;
const FIT_MIN = 0.7;

const TITLES = { plan: "Plan", group: "Batch", tree: "Tree" } as const;

export default function GraphView(): JSX.Element {
  const { kind, id = "" } = useRoute().params;
  if (kind === undefined) return <GraphOfAny id={id} />;
  return isGraphKind(kind) ? <GraphOf kind={kind} id={id} /> : <NoSuchKind kind={kind} />;
}

function GraphOfAny({ id }: { id: string }): JSX.Element {
  const { kind, error } = useGraphKind(id);
  if (kind !== null) return <GraphOf kind={kind} id={id} />;
  return (
    <View
      title={
        <>
          Graph of <Name>{id}</Name>
        </>
      }
    >
      {error instanceof Refused && error.status === 404 ? (
        <Panel>
          <Empty hint="Ended tasks are kept for a while only.">No plan, batch or tree of this name is known.</Empty>
        </Panel>
      ) : (
        <Missing error={error} />
      )}
    </View>
  );
}

function NoSuchKind({ kind }: { kind: string }): JSX.Element {
  return (
    <View title="Graph">
      <Panel>
        <Empty hint="There are /ui/graph/plan/ID, group/ID and tree/ID; /ui/graph/ID finds out which.">
          There is no graph of the kind <Name>{kind}</Name>.
        </Empty>
      </Panel>
    </View>
  );
}

function GraphOf({ kind, id }: { kind: GraphKind; id: string }): JSX.Element {
  const { graph, error } = useGraph(kind, id);
  const plan = graph?.plan ?? null;
  return (
    <View
      title={
        <>
          {TITLES[kind]} <Name>{id}</Name>
        </>
      }
      note={plan === null ? undefined : <State state={plan.state} />}
      actions={plan === null ? undefined : <PlanActs plan={plan} />}
    >
      <Failure error={graph === null ? null : error} />
      {plan === null ? null : (
        <Panel>
          <Progress plan={plan} />
        </Panel>
      )}
      {graph === null ? (
        <Missing error={error} />
      ) : graph.nodes.length === 0 ? (
        <Panel>
          <Empty hint="Ended tasks are kept for a while only.">No task of it is known any more.</Empty>
        </Panel>
      ) : (
        <Drawing nodes={graph.nodes} isCut={graph.isCut} />
      )}
    </View>
  );
}

function Drawing({ nodes, isCut }: { nodes: readonly GraphNode[]; isCut: boolean }): JSX.Element {
  const now = useNow(1000);
  const box = useRef<HTMLDivElement>(null);
  const [zoom, setZoom] = useState(1);
  const shape = JSON.stringify(nodes.map(({ id, after }) => [id, after]));
  const drawn = useMemo(() => draw(nodes), [shape]);
  // All of it is in sight at first, if that leaves it readable.
  useEffect(() => setZoom(Math.min(1, Math.max(FIT_MIN, (box.current?.clientWidth ?? 0) / drawn.width))), [shape]);
  const path = useMemo(() => criticalPath(nodes, now), [nodes]);
  const turn = (by: number): void => setZoom(Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, zoom * by)));
  return (
    <Panel
      title={plural(nodes.length, "task")}
      actions={
        <>
          <span class="key small" style={{ "--tone": "var(--text)" }}>
            longest chain
          </span>
          <button type="button" class="button is-small" aria-label="Smaller" onClick={() => turn(1 / 1.25)}>
            −
          </button>
          <button type="button" class="button is-small" aria-label="Larger" onClick={() => turn(1.25)}>
            +
          </button>
        </>
      }
      isFlush
    >
      <div class="graph" ref={box} tabIndex={0} role="region" aria-label="Graph">
        <svg
          width={drawn.width * zoom}
          height={drawn.height * zoom}
          viewBox={`0 ${drawn.top} ${drawn.width} ${drawn.height}`}
        >
          <title>Tasks and what they wait for</title>
          {drawn.edges.map(({ from, to: end, path: line }) => (
            <path
              key={`${from} ${end}`}
              class={path.has(from) && path.has(end) ? "edge is-critical" : "edge"}
              d={line}
            />
          ))}
          {nodes.map((node) => (
            <Node key={node.id} node={node} at={drawn.places.get(node.id)} isCritical={path.has(node.id)} now={now} />
          ))}
        </svg>
      </div>
      {isCut ? <p class="loading">Only the first {nodes.length} tasks are drawn.</p> : null}
    </Panel>
  );
}

/** The ids of a tree begin alike, and differ at their end. */
const clipped = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, 6)}…${text.slice(7 - most)}` : text;

function Node({
  node,
  at,
  isCritical,
  now,
}: {
  node: GraphNode;
  at: Placed | undefined;
  isCritical: boolean;
  now: number;
}): JSX.Element | null {
  const { route } = useLocation();
  if (at === undefined) return null;
  // The router hears of links of HTML only.
  const open = (click: MouseEvent): void => {
    if (click.button !== 0 || click.ctrlKey || click.metaKey || click.altKey || click.shiftKey) return;
    click.preventDefault();
    route(to.task(id));
  };
  const { id, name, action = "", state, startedAt, endedAt, note } = node;
  const ms =
    startedAt === undefined ? null : (endedAt === undefined ? now : Date.parse(endedAt)) - Date.parse(startedAt);
  return (
    <a href={to.task(id)} onClick={open}>
      <g
        class={`node is-${state}${isCritical ? " is-critical" : ""}`}
        transform={`translate(${at.x - WIDTH / 2},${at.y - HEIGHT / 2})`}
      >
        <title>
          {steady(`${action === "" ? name : action} (${id}): ${state}${note === undefined ? "" : `, ${note}`}`)}
        </title>
        <rect width={WIDTH} height={HEIGHT} rx="6" />
        <rect class="stripe" width="4" height={HEIGHT} rx="2" />
        <text x="14" y="18" class="node-name">
          {clipped(steady(name), 22)}
        </text>
        <text x="14" y="34" class="node-state">
          {action === "" ? state : `${clipped(steady(action), 12)} · ${state}`}
          {ms === null ? "" : ` · ${span(ms)}`}
        </text>
      </g>
    </a>
  );
}
