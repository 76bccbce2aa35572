/**
 * Where the nodes of a graph stand, and the lines between them. No line runs behind a node, unless the graph is so
 * large that it is laid out plainly.
 */
import { Graph as Layered, layout } from "@dagrejs/dagre";
import { inColumns } from "./graph-columns.ts";

export const WIDTH = 168;
export const HEIGHT = 44;

type Linked = { readonly id: string; readonly after: readonly string[] };
export type Placed = { readonly x: number; readonly y: number };
export type Drawn = {
  readonly width: number;
  readonly height: number;
  /** Where it begins: above 0, if a line goes around all nodes. */
  readonly top: number;
  readonly places: ReadonlyMap<string, Placed>;
  readonly edges: readonly { readonly from: string; readonly to: string; readonly path: string }[];
};

/** A large one is laid out plainly, since the page stands still meanwhile. */
export const draw = (nodes: readonly Linked[]): Drawn =>
  nodes.length > LAYERED_MAX ? drawPlainly(nodes) : drawFinely(nodes);
const LAYERED_MAX = 150;
const [GAP_X, GAP_Y, MARGIN] = [46, 14, 12];

function drawPlainly(nodes: readonly Linked[]): Drawn {
  const columns = inColumns(nodes);
  const places = new Map<string, Placed>();
  let [width, height] = [0, 0];
  for (const [id, { column, row }] of columns) {
    const [left, top] = [MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y)];
    places.set(id, { x: left + WIDTH / 2, y: top + HEIGHT / 2 });
    width = Math.max(width, left + WIDTH + MARGIN);
    height = Math.max(height, top + HEIGHT + MARGIN);
  }
  const edges = nodes.flatMap(({ id, after }) =>
    [...new Set(after)].flatMap((other) => {
      const [from, end] = [places.get(other), places.get(id)];
      return from === undefined || end === undefined ? [] : [{ from: other, to: id, path: curve(from, end) }];
    }),
  );
  return { width, height, top: 0, places, edges };
}

function drawFinely(nodes: readonly Linked[]): Drawn {
  const graph = new Layered();
  graph.setGraph({ rankdir: "LR", nodesep: GAP_Y, ranksep: GAP_X, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Set(nodes.map(({ id }) => id));
  for (const { id } of nodes) graph.setNode(id, { width: WIDTH, height: HEIGHT });
  for (const { id, after } of nodes) for (const other of after) if (known.has(other)) graph.setEdge(other, id);
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const places = new Map(nodes.map(({ id }) => [id, graph.node(id) as unknown as Placed]));
  const columns = new Set([...places.values()].map(({ x }) => x));
  const ways = graph.edges().map((edge) => {
    const { v: from, w: to } = edge;
    const [begin, end] = [from, to].map((id) => places.get(id) as Placed) as [Placed, Placed];
    const { points = [] } = graph.edge(edge) as { points?: readonly Placed[] };
    const between = points.filter(({ x }) => x > begin.x && x < end.x && columns.has(x));
    return { from, to, between, path: way(begin, between, end) };
  });
  // The layout counts nodes alone, and a line may go around all of them.
  const heights = ways.flatMap(({ between }) => between.map(({ y }) => y));
  const top = Math.min(0, ...heights.map((y) => y - MARGIN));
  const bottom = Math.max(height, ...heights.map((y) => y + MARGIN));
  return { width, height: bottom - top, top, places, edges: ways };
}

/** Past the nodes that stand between two: straight there, at the heights that the layout has left free. */
function way(from: Placed, between: readonly Placed[], to: Placed): string {
  let path = "";
  let last = from;
  for (const next of between) {
    path += `${curve(last, next)} H${next.x + WIDTH / 2} `;
    last = next;
  }
  return path + curve(last, to);
}

/** From the end of one node to the beginning of another. */
function curve(from: Placed, to: Placed): string {
  const [x1, x2] = [from.x + WIDTH / 2, to.x - WIDTH / 2];
  const bend = Math.max(20, (x2 - x1) / 2);
  return `M${x1},${from.y} C${x1 + bend},${from.y} ${x2 - bend},${to.y} ${x2},${to.y}`;
}
