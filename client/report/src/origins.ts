// Which lines of the texts below the schedule come from which nodes: one more text, beside those of the stages.

import type { Place } from "./texts";
import type { ItemView, Report } from "./report";

/** The name of the text. */
export const ORIGINS = "origins";

interface Call {
  readonly kernel: string;
  readonly nodes: readonly number[];
  readonly body: readonly number[];
  readonly roots: readonly (readonly number[])[];
}

export interface OriginTable {
  readonly calls: readonly Call[];
  /** Operations of a kernel by position, or (1) roots, which its loops compute. */
  readonly origins: readonly (readonly [kernel: string, isLoops: number, members: readonly number[]])[];
  readonly groups: readonly (readonly number[])[];
  /** Runs of lines: how many without, how many with, and the group of these. */
  readonly lines: Readonly<Record<string, readonly number[]>>;
}

export interface Run {
  readonly first: number;
  readonly count: number;
  readonly places: readonly Place[];
  /** Whether the nodes are those that loops compute. */
  readonly isLoops: boolean;
}

/** The runs of lines of a text, with what they are about for each call of their kernels. */
export function runsOf(table: OriginTable, name: string, report: Report, byNodes: ReadonlyMap<string, number>, key: (nodes: readonly number[]) => string): Run[] {
  const calls = new Map<string, { item: number; call: Call }[]>();
  for (const call of table.calls) {
    const item = byNodes.get(key(call.nodes.map((node) => report.userNode(node))));
    if (item === undefined) continue;
    const known = calls.get(call.kernel);
    if (known) known.push({ item, call });
    else calls.set(call.kernel, [{ item, call }]);
  }
  const known = new Map<number, { places: readonly Place[]; isLoops: boolean }>();
  const placesOf = (group: number): { places: readonly Place[]; isLoops: boolean } => {
    const found = known.get(group);
    if (found !== undefined) return found;
    const byItem = new Map<number, Set<number>>();
    let isLoops = false;
    for (const origin of table.groups[group] ?? []) {
      const [kernel, loops, members] = table.origins[origin] ?? ["", 0, []];
      isLoops ||= loops === 1;
      for (const { item, call } of calls.get(kernel) ?? []) {
        const nodes = byItem.get(item) ?? new Set<number>();
        byItem.set(item, nodes);
        for (const node of members.flatMap((member) => (loops === 1 ? (call.roots[member] ?? []) : [call.body[member] ?? -1]))) {
          if (node >= 0) nodes.add(report.userNode(node));
        }
      }
    }
    const made = { places: [...byItem].map(([item, nodes]): Place => ({ item, nodes: [...nodes] })), isLoops };
    known.set(group, made);
    return made;
  };
  const flat = table.lines[name] ?? [];
  const runs: Run[] = [];
  let end = 0;
  for (let at = 0; at + 2 < flat.length; at += 3) {
    const first = end + (flat[at] ?? 0);
    const count = flat[at + 1] ?? 0;
    end = first + count;
    runs.push({ first, count, ...placesOf(flat[at + 2] ?? -1) });
  }
  return runs;
}

/** The table that a text spells; none where it spells no JSON, as the texts are there without it. */
export function tableOf(text: string): OriginTable | undefined {
  try {
    return text === "" ? undefined : (JSON.parse(text) as OriginTable);
  } catch {
    return undefined;
  }
}

/** The item that holds nodes, by a key of these. */
export function keysOf(items: readonly ItemView[], key: (nodes: readonly number[]) => string): Map<string, number> {
  return new Map(items.map(({ id, nodes }) => [key(nodes), id]));
}
