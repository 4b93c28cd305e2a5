// The user's graph by kernels: every kernel opens to the nodes that it holds.

import { useComputed } from "@preact/signals";
import { useRef } from "preact/hooks";

import { time } from "./format";
import type { ItemView, NodeView, Report } from "./report";
import { Rows } from "./rows";
import type { State } from "./state";

type Row =
  | { readonly kind: "item"; readonly item: ItemView; readonly open: boolean; readonly hits: number }
  | { readonly kind: "rest"; readonly count: number; readonly open: boolean }
  | { readonly kind: "node"; readonly node: NodeView; readonly item: number };

const OUTSIDE = -1;

function matchesNode(node: NodeView, words: readonly string[]): boolean {
  const text = `#${node.index} ${node.label} v${node.out ?? ""} ${node.type}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function rowsOf(report: Report, expanded: ReadonlySet<number>, search: string): Row[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const nodesOf = new Map<number, NodeView[]>();
  const byIndex = new Map(report.nodes.map((node) => [node.index, node]));
  for (const item of report.items) {
    nodesOf.set(item.id, item.nodes.flatMap((index) => byIndex.get(index) ?? []).sort((a, b) => a.index - b.index));
  }
  nodesOf.set(OUTSIDE, report.nodes.filter((node) => node.item === OUTSIDE));
  const rows: Row[] = [];
  const isSearch = words.length > 0;
  for (const id of [...report.order, OUTSIDE]) {
    const item = report.items[id];
    const all = nodesOf.get(id) ?? [];
    const isNamed = isSearch && item !== undefined && words.every((word) => item.name.toLowerCase().includes(word));
    const nodes = isSearch && !isNamed ? all.filter((node) => matchesNode(node, words)) : all;
    if (isSearch && !isNamed && nodes.length === 0) continue;
    if (item === undefined && all.length === 0) continue;
    const open = (isSearch && !isNamed) || expanded.has(id);
    rows.push(item ? { kind: "item", item, open, hits: nodes.length } : { kind: "rest", count: nodes.length, open });
    if (open) rows.push(...nodes.map((node): Row => ({ kind: "node", node, item: id })));
  }
  return rows;
}

export function Outline({ state }: { state: State }) {
  const { report } = state;
  const rows = useComputed(() => rowsOf(report, state.expanded.value, state.search.value));
  const input = useRef<HTMLInputElement>(null);
  const { item, node } = state.selection.value;
  const isSelected = (row: Row): boolean =>
    row.kind === "node" ? row.node.index === node && row.item === item : node < 0 && row.kind === "item" && row.item.id === item;
  const selected = rows.value.findIndex(isSelected);
  const go = (to: number): void => {
    const row = rows.value[Math.max(0, Math.min(rows.value.length - 1, to))];
    if (row?.kind === "item") state.select(row.item.id);
    else if (row?.kind === "node") state.select(row.item, row.node.index);
  };
  const onKey = (event: KeyboardEvent): void => {
    const row = rows.value[selected];
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 };
    const step = steps[event.key];
    if (step !== undefined) go(selected < 0 ? 0 : selected + step);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(rows.value.length - 1);
    else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && row?.kind === "item") {
      if (row.open !== (event.key === "ArrowRight")) state.toggle(row.item.id);
    } else if (event.key === "ArrowLeft" && row?.kind === "node") state.select(row.item);
    else return;
    event.preventDefault();
  };
  return (
    <section class="panel outline" aria-label="Graph">
      <header>
        <h2>Graph</h2>
        <input
          ref={input}
          id="search"
          type="search"
          placeholder="Search nodes, kernels, v12, #7  ( / )"
          aria-label="Search nodes and kernels"
          value={state.search.value}
          onInput={(event) => (state.search.value = event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && go(rows.value.findIndex((row) => row.kind === "node" || row.kind === "item"))}
        />
      </header>
      {rows.value.length === 0 && <p class="none">Nothing is called that.</p>}
      <Rows
        count={rows.value.length}
        height={22}
        label="Kernels and their nodes"
        role="tree"
        shown={selected}
        active={selected < 0 ? undefined : `outline-${selected}`}
        onKey={onKey}
        row={(index) => <OutlineRow key={index} row={rows.value[index]} index={index} isSelected={index === selected} state={state} />}
      />
    </section>
  );
}

interface RowProps {
  readonly row: Row | undefined;
  readonly index: number;
  readonly isSelected: boolean;
  readonly state: State;
}

function OutlineRow({ row, index, isSelected, state }: RowProps) {
  if (row === undefined) return null;
  const shared = { id: `outline-${index}`, role: "treeitem", "aria-selected": isSelected } as const;
  if (row.kind === "node") {
    const { node } = row;
    return (
      <div {...shared} aria-level={2} class="outline-node" onClick={() => state.select(row.item, node.index)}>
        <span class="number">#{node.index}</span>
        <span class="what">{node.label}</span>
        <span class="type">{node.type}</span>
      </div>
    );
  }
  const id = row.kind === "item" ? row.item.id : OUTSIDE;
  const twist = (
    <button type="button" class="twist" tabIndex={-1} aria-label={row.open ? "Close" : "Open"} onClick={(event) => (event.stopPropagation(), state.toggle(id))}>
      {row.open ? "▾" : "▸"}
    </button>
  );
  if (row.kind === "rest") {
    return (
      <div {...shared} aria-level={1} aria-expanded={row.open} class="outline-item rest" onClick={() => state.toggle(id)}>
        {twist}
        <span class="what">in no kernel</span>
        <span class="type">{row.count} nodes</span>
      </div>
    );
  }
  const { item } = row;
  const numbers = state.numbers.value.items[item.id];
  return (
    <div {...shared} aria-level={1} aria-expanded={row.open} class="outline-item" data-item={item.id} onClick={() => state.select(item.id)} onDblClick={() => state.toggle(item.id)}>
      {twist}
      <span class="number">{item.id}</span>
      <span class="name">{item.name}</span>
      <span class="what">{item.kinds}</span>
      <span class="type">{time(numbers?.measured ?? numbers?.estimate ?? 0)}</span>
    </div>
  );
}
