// One program with everything that is known of it, and what follows from that once and for all.

import { type Part, partsOf } from "./data";
import type { Values, Wire } from "./expression";
import { graphOfText } from "./graph-of-text";
import { ORIGINS, type OriginTable, tableOf } from "./origins";
import type { GraphNode, GraphRecord, KernelOperation, Measured, Profile, ProgramRecord, ScheduleItem, Signed } from "./records";

export interface NodeView {
  readonly index: number;
  readonly kind: string;
  /** What the node is in one word: `binop add`. */
  readonly label: string;
  readonly item: number;
  readonly out: number | undefined;
  readonly operands: readonly number[];
  readonly type: string;
}

export interface ItemView {
  readonly id: number;
  readonly name: string;
  readonly item: ScheduleItem;
  readonly kernel: KernelOperation | undefined;
  readonly nodes: readonly number[];
  readonly kinds: string;
  readonly isPrepared: boolean;
  /** Elements of the widest vectors; 1 where there are none. */
  readonly vector: number;
}

/** What moves or makes values and computes nothing comes last. */
const MOVEMENT = new Set(
  "reshape expand permute shrink pad flip stride cast bitcast const_scalar const_array contiguous buffer_view cat stack arange placeholder bind".split(" "),
);

function sentence(kinds: readonly (readonly [string, string])[]): string {
  const counted = new Map<string, number>();
  const ordered = [...kinds.filter(([kind]) => !MOVEMENT.has(kind)), ...kinds.filter(([kind]) => MOVEMENT.has(kind))];
  for (const [, word] of ordered) counted.set(word, (counted.get(word) ?? 0) + 1);
  return [...counted].map(([word, count]) => (count > 1 ? `${word} ×${count}` : word)).join(", ");
}

/** Whether a kernel only packs a parameter for those that read it. */
export function isPacking(kernel: KernelOperation): boolean {
  return kernel.ops.length > 0 && kernel.ops.every((op) => op.kind === "placeholder");
}

/** What a kernel does in a few words: `sum, mul, max ×2`. */
function words(kernel: KernelOperation, graph: GraphRecord | undefined): string {
  if (isPacking(kernel)) return `packs ${kernel.ops.map((op) => `v${String(graph?.nodes[op.node]?.["out_var"] ?? `of node ${op.node}`)}`).join(", ")}`;
  return sentence(
    kernel.ops.map(({ node, kind }) => {
      const stated = graph?.nodes[node];
      const detail = stated?.["op"] ?? stated?.["reduce_op_kind"];
      return [kind, typeof detail === "string" ? detail : kind];
    }),
  );
}

function nameOf({ operation }: ScheduleItem, program: ProgramRecord): string {
  switch (operation.op) {
    case "kernel":
      return program.kernels[operation.kernel_id]?.name ?? operation.kernel_name;
    case "host_callback":
      return operation.callback_name;
    case "memory_transfer":
      return "copy";
    case "loop":
      return `loop_${operation.loop_id}`;
    default:
      return "synchronize";
  }
}

const OUTPUT = /^(out_vars?|output_vars)$/;
const OPERAND = /_vars?$/;

function numbers(value: unknown): number[] {
  if (typeof value === "number") return [value];
  return Array.isArray(value) ? value.filter((each): each is number => typeof each === "number") : [];
}

export function operandsOf(node: GraphNode): number[] {
  return Object.entries(node).flatMap(([field, value]) =>
    OPERAND.test(field) && !OUTPUT.test(field) ? numbers(value) : [],
  );
}

export function shapeText(shape: readonly Wire[], text: (wire: Wire) => string): string {
  return `[${shape.map(text).join(", ")}]`;
}

function labelOf(node: GraphNode): string {
  const detail = node["op"] ?? node["reduce_op_kind"] ?? node["custom_op"] ?? node["name"];
  return typeof detail === "string" ? `${node.node} ${detail}` : node.node;
}

/** The wire node of each canonical one: what dumps of stages name. */
export interface Names {
  readonly nodes?: readonly number[];
  readonly symbols?: Readonly<Record<string, string>>;
}

export class Report {
  readonly items: readonly ItemView[];
  readonly nodes: readonly NodeView[];
  /** The node that makes each var. */
  readonly makers = new Map<number, number>();
  readonly readers = new Map<number, number[]>();
  readonly stages: readonly string[];
  readonly order: readonly number[];
  private table: Promise<OriginTable | undefined> | undefined;

  constructor(
    readonly program: ProgramRecord,
    readonly graph: GraphRecord | undefined,
    readonly signed: Signed | undefined,
    readonly measured: ReadonlyMap<number, Measured>,
    /** The sizes of the run that was measured. */
    readonly measuredAt: ReadonlyMap<string, bigint>,
    readonly names: Names,
    readonly about: Readonly<Record<string, string>>,
    private readonly parts: ReadonlyMap<string, Part>,
    typeText: (dtype: string, shape: readonly Wire[]) => string,
  ) {
    const prepared = new Set(program.prepare);
    this.items = program.schedule.items.map((item) => {
      const kernel = item.operation.op === "kernel" ? item.operation : undefined;
      const widths = kernel?.hints.map((hint) => (hint.hint === "vectorize" ? (hint.width ?? 1) : 1)) ?? [];
      return {
        id: item.item_id,
        name: nameOf(item, program),
        item,
        kernel,
        nodes: kernel?.ops.map((op) => op.node) ?? [],
        kinds: kernel ? words(kernel, graph) : item.operation.op.replace("_", " "),
        isPrepared: prepared.has(item.item_id),
        vector: Math.max(1, ...widths),
      };
    });
    this.nodes = this.nodesOf(typeText);
    for (const node of this.nodes) {
      if (node.out !== undefined) this.makers.set(node.out, node.index);
      for (const operand of node.operands) {
        const readers = this.readers.get(operand);
        if (readers) readers.push(node.index);
        else this.readers.set(operand, [node.index]);
      }
    }
    const texts = [...parts.keys()].filter((name) => name.startsWith("stage:") && !name.endsWith(ORIGINS)).map((name) => name.slice(6));
    const known = program.stages.map((stage) => stage.name);
    this.stages = texts.sort((a, b) => place(known, a) - place(known, b));
    this.order = executionOrder(program.schedule.items);
  }

  /** Whether the run that was measured had these sizes. */
  isMeasuredAt(values: Values): boolean {
    return this.measured.size > 0 && [...values].every(([name, value]) => this.measuredAt.get(name) === value);
  }

  /** The text of a stage. */
  async stage(name: string): Promise<string> {
    const text = await this.parts.get(`stage:${name}`)?.content();
    return typeof text === "string" ? text : "";
  }

  /** Which lines come from which nodes, where that is known. */
  async origins(): Promise<OriginTable | undefined> {
    this.table ??= this.stage(ORIGINS).then(tableOf);
    return this.table;
  }

  /** The user's node of a canonical one. */
  userNode(canonical: number): number {
    return this.names.nodes?.[canonical] ?? canonical;
  }

  private nodesOf(typeText: (dtype: string, shape: readonly Wire[]) => string): NodeView[] {
    const home = new Map<number, number>();
    for (const item of this.items) for (const node of item.nodes) if (!home.has(node)) home.set(node, item.id);
    const { graph } = this;
    if (graph === undefined) {
      const seen = new Map<number, NodeView>();
      for (const item of this.items) {
        for (const op of item.kernel?.ops ?? []) {
          if (seen.has(op.node)) continue;
          seen.set(op.node, { index: op.node, kind: op.kind, label: op.kind, item: item.id, out: undefined, operands: [], type: "" });
        }
      }
      return [...seen.values()].sort((a, b) => a.index - b.index);
    }
    return graph.nodes.map((node, index) => {
      const outs = numbers(node["out_var"] ?? node["out_vars"] ?? node["output_vars"]);
      const stated = outs[0] === undefined ? undefined : graph.vars_metadata[String(outs[0])];
      const dtype = stated?.dtype ?? (typeof node["dtype"] === "string" ? node["dtype"] : "");
      return {
        index,
        kind: node.node,
        label: labelOf(node),
        item: home.get(index) ?? -1,
        out: outs[0],
        operands: operandsOf(node),
        type: stated ? typeText(dtype, stated.shape) : dtype,
      };
    });
  }
}

function place(known: readonly string[], name: string): number {
  const found = known.indexOf(name);
  return found < 0 ? known.length : found;
}

function executionOrder(items: readonly ScheduleItem[]): number[] {
  const ids = items.map((item) => item.item_id);
  if (items.every((item) => item.depends_on.every((before) => before < item.item_id))) return ids;
  const waiting = items.map((item) => item.depends_on.length);
  const order = ids.filter((id) => waiting[id] === 0);
  for (let next = 0; next < order.length; next++) {
    for (const after of items[order[next] ?? 0]?.dependents ?? []) {
      waiting[after] = (waiting[after] ?? 0) - 1;
      if (waiting[after] === 0) order.push(after);
    }
  }
  return order;
}

/** The report in the parts of the page on one side; undefined where that has no program. */
export async function loadReport(
  root: ParentNode,
  side: string,
  typeText: (dtype: string, shape: readonly Wire[]) => string,
): Promise<Report | undefined> {
  const parts = partsOf(root, side);
  const program = parts.get("program");
  if (program === undefined) return undefined;
  const of = async (name: string): Promise<unknown> => (await parts.get(name)?.content()) ?? undefined;
  const [record, graph, signed, profile, names, about] = await Promise.all([
    program.content(),
    of("graph"),
    of("signature"),
    of("profile"),
    of("names"),
    of("about"),
  ]);
  const seconds = (await of("seconds")) as Readonly<Record<string, number>> | undefined;
  const shown = (graph as GraphRecord | undefined) ?? (await spelt(parts.get("stage:from-graph"), record as ProgramRecord));
  const { sizes = {}, items = [] } = (profile ?? {}) as Partial<Profile>;
  const measured = new Map(items.map((each) => [each.item_id, each]));
  const measuredAt = new Map(Object.entries(sizes).map(([name, value]) => [name, BigInt(value)]));
  return new Report(
    timed(record as ProgramRecord, seconds),
    shown,
    signed as Signed | undefined,
    measured,
    measuredAt,
    (names ?? {}) as Names,
    (about ?? {}) as Record<string, string>,
    parts,
    typeText,
  );
}

/** The graph of the first stage, if the program holds the nodes that it has. */
async function spelt(stage: Part | undefined, program: ProgramRecord): Promise<GraphRecord | undefined> {
  const text = await stage?.content();
  const graph = typeof text === "string" ? graphOfText(text) : undefined;
  const isIts = program.schedule.items.every(
    ({ operation }) => operation.op !== "kernel" || operation.ops.every((op) => graph?.nodes[op.node]?.node === op.kind),
  );
  return isIts ? graph : undefined;
}

/** A stored program says nothing of what its compile took; that may stand beside it. */
function timed(program: ProgramRecord, seconds: Readonly<Record<string, number>> | undefined): ProgramRecord {
  if (seconds === undefined) return program;
  return { ...program, stages: program.stages.map((stage) => ({ ...stage, seconds: seconds[stage.name] ?? stage.seconds })) };
}
