// What every item costs at a binding of the symbols, and what follows: the critical path, memory over time.

import { evaluate, launchSizes, SizeError, type Values, type Wire } from "./expression";
import { bounds } from "./interval";
import { type Machine, machineOf } from "./machine";
import type { Buffer } from "./records";
import type { ItemView, Report } from "./report";

/** `latency`: neither computing nor moving takes a tenth of the time. */
export type Bound = "compute" | "memory" | "latency" | "launch" | "";

const SLIGHT = 0.1;

export interface ItemNumbers {
  readonly flops: number;
  readonly read: number;
  readonly written: number;
  readonly estimate: number;
  readonly measured: number | undefined;
  readonly bound: Bound;
  /** Of the machine's rate, where the item waits for that most, by measurement or else by estimate. */
  readonly attained: number;
}

export interface Storage {
  readonly key: string;
  readonly role: string;
  readonly buffers: readonly Buffer[];
  readonly first: number;
  readonly last: number;
  readonly bytes: number;
}

export interface Numbers {
  readonly items: readonly ItemNumbers[];
  readonly total: number;
  readonly measuredTotal: number;
  readonly flops: number;
  readonly moved: number;
  readonly critical: ReadonlySet<number>;
  readonly span: number;
  readonly storages: readonly Storage[];
  /** Live bytes while each item runs, by position in the order of execution. */
  readonly live: Float64Array;
  readonly peak: number;
  readonly constants: number;
}

/** The value of a size as a number for drawing; NaN where it has none. */
export function approximate(wire: Wire, values: Values): number {
  if (typeof wire === "number") return wire;
  try {
    return Number(evaluate(wire, values));
  } catch (error) {
    if (error instanceof SizeError) return Number.NaN;
    throw error;
  }
}

export class Evaluator {
  readonly machine: Machine | undefined;
  private readonly most: bigint[];

  constructor(readonly report: Report) {
    const { program } = report;
    this.machine = machineOf(program.target);
    const ranges = new Map(
      program.symbols.map((each) => [each.name, [BigInt(each.min_val), BigInt(each.max_val)] as const]),
    );
    this.most = program.schedule.analysis.map((each) =>
      [each.flops, each.bytes_read, each.bytes_written].reduce<bigint>((sum, wire) => sum + bounds(wire, ranges)[1], 0n),
    );
  }

  /** What a call comes to; without what is prepared once, if that is asked for. */
  at(values: Values, withoutPrepared: boolean): Numbers {
    const { report } = this;
    const isMeasured = report.isMeasuredAt(values);
    const items = report.items.map((item) => this.item(item, values, isMeasured));
    const isLeft = (id: number): boolean => withoutPrepared && report.items[id]?.isPrepared === true;
    const sum = (of: (each: ItemNumbers) => number): number =>
      items.reduce((total, each, id) => (isLeft(id) ? total : total + of(each)), 0);
    const { critical, span } = criticalPath(report, items, isLeft);
    const storages = storagesOf(report, values);
    const position = new Map(report.order.map((id, at) => [id, at]));
    const change = new Float64Array(report.order.length + 1);
    let constants = 0;
    for (const storage of storages) {
      if (storage.role === "constant" || storage.role === "input") {
        constants += storage.bytes;
        continue;
      }
      const [first, last] = [position.get(storage.first) ?? storage.first, position.get(storage.last) ?? storage.last];
      change[first] = (change[first] ?? 0) + storage.bytes;
      change[last + 1] = (change[last + 1] ?? 0) - storage.bytes;
    }
    const live = new Float64Array(report.order.length);
    let now = 0;
    for (let at = 0; at < live.length; at++) live[at] = now += change[at] ?? 0;
    return {
      items,
      total: sum((each) => each.estimate),
      measuredTotal: sum((each) => each.measured ?? 0),
      flops: sum((each) => each.flops),
      moved: sum((each) => each.read + each.written),
      critical,
      span,
      storages,
      live,
      peak: live.reduce((a, b) => Math.max(a, b), 0),
      constants,
    };
  }

  private item(view: ItemView, values: Values, isMeasured: boolean): ItemNumbers {
    const analysis = this.report.program.schedule.analysis[view.id];
    const run = isMeasured ? this.report.measured.get(view.id) : undefined;
    const measured = run?.ns;
    if (analysis === undefined) {
      return { flops: 0, read: 0, written: 0, estimate: 0, measured, bound: "", attained: Number.NaN };
    }
    const [flops, read, written] = [analysis.flops, analysis.bytes_read, analysis.bytes_written].map((wire) =>
      approximate(wire, values),
    ) as [number, number, number];
    const estimate = this.estimate(view.id, values);
    const { machine } = this;
    let bound: Bound = "";
    let attained = Number.NaN;
    if (machine !== undefined && analysis.est_ns) {
      // A run may have had several cores, of which each has its rates.
      const cores = run?.threads ?? 1;
      const [computes, moves] = [machine.computes(flops) / cores, machine.moves(read + written) / cores];
      const least = Math.max(computes, moves);
      const taken = measured ?? estimate;
      attained = least / taken;
      bound = taken < 2 * machine.launch ? "launch" : attained < SLIGHT ? "latency" : computes > moves ? "compute" : "memory";
    }
    return { flops, read, written, estimate, measured, bound, attained };
  }

  /** Nanoseconds of an item, in proportion to what the compiler estimated at the upper bounds. */
  estimate(id: number, values: Values): number {
    const analysis = this.report.program.schedule.analysis[id];
    if (analysis === undefined) return 0;
    const most = this.most[id] ?? 0n;
    if (most === 0n) return Number(analysis.est_ns);
    try {
      const work = [analysis.flops, analysis.bytes_read, analysis.bytes_written].reduce<bigint>(
        (sum, wire) => sum + evaluate(wire, values),
        0n,
      );
      return Number((BigInt(analysis.est_ns) * work) / most);
    } catch (error) {
      if (error instanceof SizeError) return Number.NaN;
      throw error;
    }
  }
}

export interface Launch {
  readonly grid: readonly bigint[];
  readonly group: readonly bigint[] | null;
  readonly error: string;
}

/** The launch sizes of an item's kernel, or why it has none. */
export function launchOf(report: Report, view: ItemView, values: Values): Launch | undefined {
  const kernel = view.kernel && report.program.kernels[view.kernel.kernel_id];
  if (kernel === undefined) return undefined;
  try {
    return {
      grid: launchSizes(kernel.global_size, kernel.vars, values),
      group: kernel.local_size && launchSizes(kernel.local_size, kernel.vars, values),
      error: "",
    };
  } catch (error) {
    if (error instanceof SizeError) return { grid: [], group: null, error: error.message };
    throw error;
  }
}

/** The dearest chain of items that depend on each other: of equal ones that whose last item comes first. */
function criticalPath(report: Report, numbers: readonly ItemNumbers[], isLeft: (id: number) => boolean): { critical: Set<number>; span: number } {
  const cost = numbers.map((each, id) =>
    isLeft(id) ? 0 : Math.max(1, each.measured ?? (Number.isFinite(each.estimate) ? each.estimate : 1)),
  );
  const distance = [...cost];
  const previous = new Map<number, number>();
  for (const id of report.order) {
    for (const after of report.items[id]?.item.dependents ?? []) {
      const through = (distance[id] ?? 0) + (cost[after] ?? 0);
      if (through > (distance[after] ?? 0)) {
        distance[after] = through;
        previous.set(after, id);
      }
    }
  }
  let last = -1;
  distance.forEach((each, id) => {
    if (last < 0 || each > (distance[last] ?? 0)) last = id;
  });
  const critical = new Set<number>();
  for (let id: number | undefined = last; id !== undefined && id >= 0; id = previous.get(id)) if (!isLeft(id)) critical.add(id);
  return { critical, span: distance[last] ?? 0 };
}

/** The byte behind the last of a buffer; a window without bytes is at 0, whatever its offset. */
function endOf({ offset, size_bytes }: Buffer, values: Values): number {
  const size = approximate(size_bytes, values);
  return size === 0 ? 0 : approximate(offset, values) + size;
}

function storagesOf(report: Report, values: Values): Storage[] {
  const groups = new Map<string, Buffer[]>();
  for (const buffer of report.program.buffers) {
    const key = buffer.alias_group === null ? `buffer ${buffer.id}` : `group ${buffer.alias_group}`;
    const members = groups.get(key);
    if (members) members.push(buffer);
    else groups.set(key, [buffer]);
  }
  return [...groups].map(([key, buffers]) => {
    const ends = buffers.map((each) => endOf(each, values));
    const roles = new Set(buffers.map((each) => each.role));
    const role = ["output", "input", "constant", "temp", "scratch"].find((each) => roles.has(each)) ?? "temp";
    return {
      key,
      role,
      buffers,
      first: Math.min(...buffers.map((each) => each.lifetime[0])),
      last: Math.max(...buffers.map((each) => each.lifetime[1])),
      bytes: Math.max(0, ...ends.filter(Number.isFinite)),
    };
  });
}
