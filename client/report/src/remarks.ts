// What the compiler's record says about a kernel, in sentences that name the user's nodes.

import { bytes, percent, time } from "./format";
import { approximate } from "./numbers";
import type { ItemView, Report } from "./report";
import type { State } from "./state";

export interface Remark {
  readonly about: string;
  readonly text: string;
  readonly item?: number;
}

/** `#12 conv2d, #13 unary relu`: the last nodes of an item, which make what it stores. */
function named(report: Report, item: ItemView | undefined): string {
  if (item === undefined) return "";
  const byIndex = new Map(report.nodes.map((node) => [node.index, node.label]));
  const all = [...item.nodes].sort((a, b) => a - b);
  const last = all.slice(-2).map((node) => `#${node} ${byIndex.get(node) ?? ""}`.trim());
  return `${all.length > 2 ? "… " : ""}${last.join(", ")}`;
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
      text: `${isFirst ? "Hands its result to" : "Reads the result of"} ${other?.name ?? `item ${otherId}`} (${named(report, other)}) alone, and is not one kernel with it (${each.fusion_type}): ${saved} go through memory, at most ${percent(each.benefit_score)} of what both move.`,
    });
  }
  const { kernel } = item;
  if (kernel === undefined) return found;
  const loops = kernel.iter.axes;
  const name = (axis: number | undefined): string => loops[axis ?? -1]?.name ?? "?";
  const vectors = kernel.hints.filter((hint) => hint.hint === "vectorize");
  if (vectors.length > 0) {
    found.push({ about: "vectors", text: vectors.map((hint) => `${name(hint.axis)} by ${hint.width}`).join(", ") });
  } else if (program.target.kind === "cpu") {
    found.push({ about: "vectors", text: "No loop of it is written in vectors; LLVM may still find some." });
  }
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
