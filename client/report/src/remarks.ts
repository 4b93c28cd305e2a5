// What the compiler's record says about a kernel, in sentences that name the user's nodes.

import { bytes, percent, time } from "./format";
import { approximate } from "./numbers";
import type { FusionBarrier, KernelOperation, OpRef } from "./records";
import { isPacking, type ItemView, type Report } from "./report";
import type { State } from "./state";

export interface Remark {
  readonly about: string;
  readonly text: string;
  readonly item?: number;
}

/** `#12 conv2d, #13 unary relu`: the last nodes of an item, which make what it stores. */
export function named(report: Report, item: ItemView | undefined): string {
  if (item === undefined) return "";
  const byIndex = new Map(report.nodes.map((node) => [node.index, node.label]));
  const all = [...item.nodes].sort((a, b) => a - b);
  const last = all.slice(-2).map((node) => `#${node} ${byIndex.get(node) ?? ""}`.trim());
  return `${all.length > 2 ? "… " : ""}${last.join(", ")}`;
}

type Sentence = (writer: string, reader: string) => string;

/** What the compiler states of two kernels, by its reasons. */
const BARRIERS: Readonly<Record<string, Sentence>> = {
  "fusion-off": () => "the program was compiled without fusion",
  "whole-buffers": (writer, reader) => `${writer} or ${reader} takes whole buffers, as a scatter, a copy, a loop and a custom operation do`,
  prepared: (writer, reader) => `${writer} is computed once, when parameters are bound, and ${reader} at each call`,
  contraction: (_, reader) => `${reader} sums products, and such a kernel reads its operands in blocks from memory`,
  "other-loops": (writer, reader) => `${writer} sums products, behind which only what walks the very same loops is computed, and ${reader} walks others`,
  "beyond-row": (writer, reader) => `${reader} reads more of ${writer} than a row of its own, so that all of it has to be there first`,
  "row-size": (writer, reader) => `${reader} and ${writer} would share too few rows, or rows that are too long for a cache`,
  "later-kernel": (_, reader) => `${reader} reads a later kernel too, and is computed with that or behind it`,
  "kernel-size": (_, reader) => `with ${reader} the kernel would have more results or operands than one may have`,
};

const SCALAR: Readonly<Record<string, string>> = {
  ordered: "two updates may go to the same place, where the last one wins, so they are stored one by one",
  guarded: "what a point reads depends on conditions on this loop, so its points are expected to run one by one",
  "single-point": "each turn computes a single element, and the schedule has no vectors of turns",
};

/** `#12 binop add` */
function label(report: Report, { node, kind }: OpRef): string {
  return `#${node} ${report.nodes.find((each) => each.index === node)?.label ?? kind}`;
}

function whyApart(report: Report, barrier: FusionBarrier | null | undefined): string {
  const sentence = barrier ? BARRIERS[barrier.reason] : undefined;
  return barrier && sentence ? `: ${sentence(label(report, barrier.writer), label(report, barrier.reader))}` : "";
}

/** Why loops of a kernel are in no vectors, as the schedule says. */
function scalarLoops(kernel: KernelOperation, name: (axis: number | undefined) => string): Remark[] {
  const found = kernel.hints.filter((hint) => hint.hint === "scalar");
  const stated = new Set(found.map((hint) => hint.axis));
  const around = kernel.iter.mapping.serial.filter((axis) => !stated.has(axis));
  const remarks = found.map((hint) => ({ about: "not vectorised", text: `${name(hint.axis)}: ${SCALAR[String(hint["reason"])] ?? String(hint["reason"])}` }));
  if (around.length === 0 || kernel.iter.mapping.vec.length === 0) return remarks;
  return [...remarks, { about: "not vectorised", text: `${around.map(name).join(", ")}: around or inside the loop that is` }];
}

/** What parameters were packed, by which kernel and for which. */
function packs(state: State, item: ItemView): Remark[] {
  const { report } = state;
  const related = (ids: readonly number[]): ItemView[] => ids.map((id) => report.items[id]).filter((each): each is ItemView => each?.kernel !== undefined);
  if (item.kernel && isPacking(item.kernel)) {
    const spec = report.program.kernels[item.kernel.kernel_id];
    const made = spec?.outs.map((slot) => report.program.buffers[spec.buffers[slot] ?? -1]).find((each) => each !== undefined);
    const where = made ? `, into buffer ${made.id} of ${bytes(approximate(made.size_bytes, state.values.value))}` : "";
    return related(item.item.dependents).map((reader) => ({
      about: "packed",
      item: reader.id,
      text: `${named(report, item)}, in the panels that ${reader.name} (${named(report, reader)}) reads${where}`,
    }));
  }
  return related(item.item.depends_on)
    .filter((each) => each.kernel && isPacking(each.kernel))
    .map((pack) => ({ about: "packed", item: pack.id, text: `It reads ${named(report, pack)} in panels, which ${pack.name} packs once, when parameters are bound` }));
}

export function remarksOf(state: State, item: ItemView): Remark[] {
  const { report } = state;
  const { program } = report;
  const values = state.values.value;
  const found: Remark[] = [];
  if (item.isPrepared) {
    found.push({ about: "prepared", text: "It follows from parameters alone: it runs once, when these are bound." });
  }
  for (const each of program.schedule.fusion_opportunities) {
    const isFirst = each.kernel_a === item.id;
    if (!isFirst && each.kernel_b !== item.id) continue;
    const otherId = isFirst ? each.kernel_b : each.kernel_a;
    const other = report.items[otherId];
    const saved = bytes(approximate(each.memory_saved, values));
    found.push({
      about: "not fused",
      item: otherId,
      text: `${isFirst ? "Hands its result to" : "Reads the result of"} ${other?.name ?? `item ${otherId}`} (${named(report, other)}) alone, and is not one kernel with it (${each.fusion_type})${whyApart(report, each.barrier)}. ${saved} go through memory, at most ${percent(each.benefit_score)} of what both move.`,
    });
  }
  found.push(...packs(state, item));
  const { kernel } = item;
  if (kernel === undefined) return found;
  const loops = kernel.iter.axes;
  const name = (axis: number | undefined): string => loops[axis ?? -1]?.name ?? "?";
  const vectors = kernel.hints.filter((hint) => hint.hint === "vectorize" && (hint.width ?? 1) > 1);
  const scalar = scalarLoops(kernel, name);
  if (vectors.length > 0) {
    found.push({ about: "vectors", text: vectors.map((hint) => `${name(hint.axis)} by ${hint.width}`).join(", ") });
  } else if (program.target.kind === "cpu" && scalar.length === 0) {
    found.push({ about: "not vectorised", text: "The schedule has no loop of it: it computes one element, or is lowered by the passes of MLIR alone." });
  }
  found.push(...scalar);
  for (const hint of kernel.hints) {
    if (hint.hint === "unroll") found.push({ about: "unrolled", text: `${name(hint.axis)} by ${hint.factor}` });
    if (hint.hint === "prefetch") found.push({ about: "prefetched", text: `v${String(hint["var"])}, ${String(hint["distance"])} iterations ahead` });
    if (hint.hint === "pipeline") found.push({ about: "pipelined", text: `${name(hint.axis)} in ${String(hint["stages"])} stages` });
  }
  if (kernel.reduce) {
    found.push({
      about: "reduction",
      text: `${kernel.reduce.axes.map((axis) => name(axis)).join(", ")}: ${kernel.reduce.intra_thread} within a thread, ${kernel.reduce.inter_thread.replace("_", " ")} between threads`,
    });
  }
  const spec = program.kernels[kernel.kernel_id];
  const packed = spec?.buffers.map((id) => program.buffers[id]).filter((each) => each?.role === "scratch") ?? [];
  if (packed.length > 0) {
    const sum = packed.reduce((all, each) => all + (each ? approximate(each.size_bytes, values) : 0), 0);
    found.push({ about: "scratch", text: `${bytes(sum)} in ${packed.length} ${packed.length === 1 ? "buffer" : "buffers"} of each worker, for packed operands and intermediate rows` });
  }
  const spilt = spec?.resources?.spill_bytes;
  if (spilt) found.push({ about: "spills", text: `${bytes(spilt)} of registers of a thread are kept in memory` });
  const tuned = program.tuning?.kernels.find((each) => each.kernel === kernel.kernel_id);
  if (tuned !== undefined) {
    const picked = tuned.candidates[tuned.picked];
    const plain = tuned.candidates[0];
    if (picked && plain) {
      found.push({
        about: "tuned",
        text: `${tuned.candidates.length} schedules were timed; ${picked.strategy} took ${time(Number(picked.least_ns))}, the one picked by estimates (${plain.strategy}) ${time(Number(plain.least_ns))}`,
      });
    }
  }
  return found;
}
