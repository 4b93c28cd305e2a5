// The drawing of what is selected: a kernel's nodes, and what they read from and hand to.

import dagre from "@dagrejs/dagre";
import { useComputed } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { Report } from "./report";
import type { Selection, State } from "./state";

/** Layout takes more than linear time: beyond this many nodes, what is around one of them is drawn. */
const MOST_NODES = 90;
const MOST_READERS = 8;

interface Vertex {
  readonly id: string;
  readonly label: string;
  readonly below: string;
  readonly item: number;
  readonly node: number;
  readonly isOutside: boolean;
}

interface Drawing {
  readonly vertices: readonly (Vertex & { x: number; y: number; width: number; height: number })[];
  readonly edges: readonly string[];
  readonly width: number;
  readonly height: number;
  readonly isPart: boolean;
}

function vertices(report: Report, selection: Pick<Selection, "item" | "node">): { inner: Vertex[]; edges: [string, string][]; isPart: boolean } {
  const found = new Map<string, Vertex>();
  const edges = new Map<string, [string, string]>();
  const ofItem = (id: number, isOutside: boolean): Vertex => {
    const item = report.items[id];
    return { id: `item ${id}`, label: item?.name ?? "", below: item?.kinds ?? "", item: id, node: -1, isOutside };
  };
  const add = (vertex: Vertex): string => {
    if (!found.has(vertex.id)) found.set(vertex.id, vertex);
    return vertex.id;
  };
  const join = (from: string, to: string): void => void edges.set(`${from}|${to}`, [from, to]);
  const item = report.items[selection.item];
  if (report.graph === undefined || item === undefined || item.nodes.length === 0) {
    if (item === undefined) return { inner: [], edges: [], isPart: false };
    const centre = add(ofItem(item.id, false));
    for (const before of item.item.depends_on.slice(0, MOST_NODES / 2)) join(add(ofItem(before, true)), centre);
    for (const after of item.item.dependents.slice(0, MOST_NODES / 2)) join(centre, add(ofItem(after, true)));
    return { inner: [...found.values()], edges: [...edges.values()], isPart: false };
  }
  const all = new Set(item.nodes);
  const inside = all.size <= MOST_NODES ? all : around(report, all, selection.node >= 0 ? selection.node : (item.nodes[0] ?? -1));
  const outer = (index: number): Vertex => {
    const home = report.nodes[index]?.item ?? -1;
    if (home >= 0 && home !== item.id) return ofItem(home, true);
    return ofNode(report, index, item.id, !all.has(index));
  };
  for (const index of inside) {
    const node = report.nodes[index];
    if (node === undefined) continue;
    const own = add(ofNode(report, index, item.id, false));
    for (const operand of node.operands) {
      const maker = report.makers.get(operand);
      if (maker === undefined || (all.has(maker) && !inside.has(maker))) continue;
      join(add(inside.has(maker) ? ofNode(report, maker, item.id, false) : outer(maker)), own);
    }
    // A kernel that computes the node again, for itself, reads nothing of this one.
    const readers = (report.readers.get(node.out ?? -1) ?? []).filter((reader) => !all.has(reader) && !computes(report, reader, index));
    for (const reader of readers.slice(0, MOST_READERS)) join(own, add(outer(reader)));
    const more = readers.length - MOST_READERS;
    if (more > 0) join(own, add({ id: `more ${index}`, label: `${more} more`, below: "", item: item.id, node: -1, isOutside: true }));
  }
  return { inner: [...found.values()], edges: [...edges.values()], isPart: inside.size < all.size };
}

/** Whether the item of a node holds another one, too. */
function computes(report: Report, node: number, other: number): boolean {
  return report.items[report.nodes[node]?.item ?? -1]?.nodes.includes(other) ?? false;
}

function ofNode(report: Report, index: number, item: number, isOutside: boolean): Vertex {
  const node = report.nodes[index];
  return { id: `node ${index}`, label: node?.label ?? "", below: node?.type ?? "", item: isOutside ? (node?.item ?? -1) : item, node: index, isOutside };
}

function around(report: Report, all: ReadonlySet<number>, centre: number): Set<number> {
  const found = new Set([centre]);
  for (const index of found) {
    if (found.size >= MOST_NODES) break;
    const node = report.nodes[index];
    const makers = node?.operands.map((operand) => report.makers.get(operand) ?? -1) ?? [];
    for (const next of [...makers, ...(report.readers.get(node?.out ?? -1) ?? [])]) {
      if (all.has(next) && found.size < MOST_NODES) found.add(next);
    }
  }
  return found;
}

function drawing(report: Report, selection: Pick<Selection, "item" | "node">): Drawing {
  const { inner, edges, isPart } = vertices(report, selection);
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "TB", nodesep: 14, ranksep: 22, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const vertex of inner) {
    const letters = Math.min(34, Math.max(vertex.label.length, vertex.below.length * 0.9, 5));
    graph.setNode(vertex.id, { width: letters * 6.4 + 16, height: vertex.below ? 34 : 22 });
  }
  for (const [from, to] of edges) graph.setEdge(from, to);
  dagre.layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const path = (points: readonly { x: number; y: number }[]): string => {
    const [first, ...rest] = points;
    return first ? `M${first.x},${first.y}${rest.map(({ x, y }) => `L${x},${y}`).join("")}` : "";
  };
  return {
    vertices: inner.map((vertex) => ({ ...vertex, ...(graph.node(vertex.id) as { x: number; y: number; width: number; height: number }) })),
    edges: graph.edges().map((edge) => path((graph.edge(edge) as { points: { x: number; y: number }[] }).points)),
    width: Number.isFinite(width) ? width : 0,
    height: Number.isFinite(height) ? height : 0,
    isPart,
  };
}

function cut(text: string): string {
  return text.length > 34 ? `${text.slice(0, 33)}…` : text;
}

export function Neighbourhood({ state }: { state: State }) {
  const { report } = state;
  // A small kernel is drawn once, whichever of its nodes is selected.
  const drawn = useComputed(() => {
    const { item, node } = state.selection.value;
    return `${item} ${(report.items[item]?.nodes.length ?? 0) > MOST_NODES ? node : -1}`;
  });
  const key = drawn.value;
  const made = useComputed(() => {
    const [item = -1, node = -1] = drawn.value.split(" ").map(Number);
    return drawing(report, { item, node });
  });
  const { vertices: all, edges, width, height, isPart } = made.value;
  const outer = useRef<HTMLDivElement>(null);
  // What is selected is in sight: the node, or else what the kernel computes last.
  const centre = all.find((each) => each.node >= 0 && each.node === state.selection.value.node) ?? all.filter((each) => !each.isOutside).at(-1);
  useEffect(() => {
    const element = outer.current;
    if (element === null || centre === undefined) return;
    element.scrollLeft = centre.x - element.clientWidth / 2;
    element.scrollTop = centre.y - element.clientHeight / 2;
  }, [centre]);
  return (
    <section class="panel neighbourhood" aria-label="Drawing of the selection">
      <header>
        <h2>{state.selectedItem?.name ?? "Selection"}</h2>
        <span class="note">{isPart ? `${MOST_NODES} of its nodes, around the selected one` : (state.selectedItem?.kinds ?? "")}</span>
      </header>
      {all.length === 0 ? (
        <p class="none">Select a kernel: its nodes are drawn here.</p>
      ) : (
        <div ref={outer} class="drawing" tabIndex={0} role="group" aria-label="Nodes and edges">
          <svg key={key} width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
            <defs>
              <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" markerHeight="6" orient="auto">
                <path d="M0,0L8,4L0,8z" class="arrow" />
              </marker>
            </defs>
            {edges.map((path, index) => (
              <path key={index} d={path} class="edge" marker-end="url(#arrow)" />
            ))}
            {all.map((vertex) => (
              <g
                key={vertex.id}
                class={`vertex${vertex.isOutside ? " outside" : ""}${vertex.node >= 0 && vertex.node === state.selection.value.node ? " selected" : ""}`}
                transform={`translate(${vertex.x - vertex.width / 2},${vertex.y - vertex.height / 2})`}
                onClick={() => state.select(vertex.item, vertex.node >= 0 ? vertex.node : -1)}
              >
                <title>{vertex.node >= 0 ? `#${vertex.node} ${vertex.label} ${vertex.below}` : `${vertex.label}: ${vertex.below}`}</title>
                <rect width={vertex.width} height={vertex.height} rx={vertex.node >= 0 ? 4 : 10} />
                <text x={vertex.width / 2} y={15}>{cut(vertex.label)}</text>
                {vertex.below && <text x={vertex.width / 2} y={28} class="below">{cut(vertex.below)}</text>}
              </g>
            ))}
          </svg>
        </div>
      )}
    </section>
  );
}
