// The records of a program as they are stored: the fields that this page reads.

import type { Variable, Wire } from "./expression";

export interface SymVar {
  readonly name: string;
  readonly min_val: number | bigint;
  readonly max_val: number | bigint;
}

export interface Buffer {
  readonly id: number;
  readonly dtype: string;
  readonly shape: readonly Wire[];
  readonly size_bytes: Wire;
  readonly role: string;
  readonly lifetime: readonly [number, number];
  readonly alias_group: number | null;
  readonly alignment: number;
  readonly offset: Wire;
}

export interface Binding {
  readonly var: number;
  readonly buffer: number;
  readonly dtype: string;
  readonly shape: readonly Wire[];
  readonly is_parameter: boolean;
}

export interface Resources {
  readonly registers: number | null;
  readonly shared_memory_bytes: number | null;
  readonly spill_bytes: number | null;
  readonly code_bytes: number | null;
}

export interface Kernel {
  readonly name: string;
  readonly entry: string;
  readonly device: string;
  readonly global_size: readonly Wire[];
  readonly local_size: readonly Wire[] | null;
  readonly vars: readonly Variable[];
  readonly buffers: readonly number[];
  readonly ins: readonly number[];
  readonly outs: readonly number[];
  readonly resources: Resources | null;
  readonly static_shared_bytes: number;
  readonly dynamic_shared_bytes: Wire;
  readonly artifact: string | null;
  readonly binary: string | null;
}

export interface Axis {
  readonly name: string;
  readonly size: Wire | null;
  readonly sym: SymVar | null;
  readonly role: string;
}

export interface Hint {
  readonly hint: string;
  readonly axis?: number;
  readonly width?: number;
  readonly factor?: number;
  readonly [field: string]: unknown;
}

export interface OpRef {
  readonly node: number;
  readonly kind: string;
}

export interface KernelOperation {
  readonly op: "kernel";
  readonly kernel_id: number;
  readonly kernel_name: string;
  readonly ops: readonly OpRef[];
  readonly iter: {
    readonly axes: readonly Axis[];
    readonly mapping: Readonly<Record<"block" | "thread" | "vec" | "serial", readonly number[]>>;
    readonly tiles: readonly (readonly Wire[])[];
  };
  readonly reduce: { readonly axes: readonly number[]; readonly intra_thread: string; readonly inter_thread: string } | null;
  readonly hints: readonly Hint[];
  readonly shared: readonly { readonly dtype: string; readonly elements: Wire }[];
}

export type Operation =
  | KernelOperation
  | { readonly op: "memory_transfer"; readonly size_bytes: Wire; readonly src_var: number; readonly dst_var: number }
  | { readonly op: "synchronization"; readonly sync_type: string }
  | {
      readonly op: "loop";
      readonly loop_id: number;
      readonly most: number;
      readonly input_vars: readonly number[];
      readonly output_vars: readonly number[];
    }
  | {
      readonly op: "host_callback";
      readonly callback_name: string;
      readonly input_vars: readonly number[];
      readonly output_vars: readonly number[];
    };

export interface ScheduleItem {
  readonly item_id: number;
  readonly operation: Operation;
  readonly depends_on: readonly number[];
  readonly dependents: readonly number[];
}

export interface Analysis {
  readonly item_id: number;
  readonly flops: Wire;
  readonly bytes_read: Wire;
  readonly bytes_written: Wire;
  readonly regs_per_thread: number;
  readonly smem_bytes: number;
  readonly occupancy: number;
  readonly est_ns: number | bigint;
}

/** Why what `reader` computes is not in the kernel that makes what `writer` does. */
export interface FusionBarrier {
  readonly reason: string;
  readonly writer: OpRef;
  readonly reader: OpRef;
}

export interface FusionOpportunity {
  readonly kernel_a: number;
  readonly kernel_b: number;
  readonly fusion_type: string;
  readonly benefit_score: number;
  readonly memory_saved: Wire;
  readonly barrier?: FusionBarrier | null;
}

export interface Timing {
  readonly strategy: string;
  readonly estimate_ns: number | bigint;
  readonly least_ns: number | bigint;
  readonly median_ns: number | bigint;
  readonly spread_ns: number | bigint;
}

export interface Tuning {
  readonly machine: string;
  readonly sizes: readonly number[];
  readonly rounds: number;
  readonly before_ns: number | bigint;
  readonly after_ns: number | bigint;
  readonly gain: boolean;
  readonly kernels: readonly { readonly kernel: number; readonly picked: number; readonly candidates: readonly Timing[] }[];
}

export interface Constraint {
  readonly kind: "eq" | "ge";
  readonly left: Wire;
  readonly right: Wire;
  readonly pointer: string;
  readonly message: string;
}

export interface ProgramRecord {
  readonly abi: number;
  readonly digest: string;
  readonly name: string;
  readonly target: {
    readonly kind: string;
    readonly triple?: string | null;
    readonly cpu?: string | null;
    readonly arch?: string | null;
    readonly features?: readonly string[];
    readonly [field: string]: unknown;
  };
  readonly symbols: readonly SymVar[];
  readonly inputs: readonly Binding[];
  readonly outputs: readonly Binding[];
  readonly constraints: readonly Constraint[];
  readonly buffers: readonly Buffer[];
  readonly kernels: readonly Kernel[];
  readonly schedule: {
    readonly items: readonly ScheduleItem[];
    readonly fusion_opportunities: readonly FusionOpportunity[];
    readonly analysis: readonly Analysis[];
  };
  readonly prepare: readonly number[];
  readonly stages: readonly { readonly name: string; readonly seconds: number; readonly dump: string | null }[];
  readonly provenance: {
    readonly build_id: string;
    readonly versions: Readonly<Record<string, string>>;
    readonly flags: readonly string[];
    readonly isolation: string;
  } | null;
  readonly cache: { readonly status: string; readonly reason: string; readonly nearest: string | null; readonly differs: readonly string[] };
  readonly tuning: Tuning | null;
}

export interface GraphNode {
  readonly node: string;
  readonly [field: string]: unknown;
}

export interface GraphRecord {
  readonly name: string;
  readonly nodes: readonly GraphNode[];
  readonly vars_metadata: Readonly<Record<string, { readonly dtype: string; readonly shape: readonly Wire[] }>>;
  readonly input_vars: readonly number[];
  readonly output_vars: readonly number[];
  readonly parameter_vars?: readonly number[];
}

/** What a run took, at the sizes that it had. */
export interface Profile {
  readonly sizes: Readonly<Record<string, number | bigint>>;
  readonly items: readonly Measured[];
}

export interface Measured {
  readonly item_id: number;
  readonly ns: number;
  readonly threads: number;
}

export interface Signed {
  readonly record: Readonly<Record<string, unknown>>;
  readonly signature: string;
}
