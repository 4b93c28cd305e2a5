// How fast the target computes and moves, by the tables that the compiler estimates with.

import machines from "./machines.json";
import type { ProgramRecord } from "./records";

export interface Machine {
  readonly label: string;
  /** Nanoseconds of so many operations where every one of them is half a fused multiply-add. */
  readonly computes: (operations: number) => number;
  /** Nanoseconds in which so many bytes move. */
  readonly moves: (bytes: number) => number;
  readonly launch: number;
}

type Core = typeof machines.core;
type Device = { multiprocessors: number; lanes: number; gigahertz: number; rate: number };

function vectorBits(features: ReadonlySet<string>): number {
  if (features.has("avx512f") && features.has("avx512vl")) return 512;
  return features.has("avx2") ? 256 : 128;
}

export function machineOf(target: ProgramRecord["target"]): Machine | undefined {
  if (target.kind === "cuda") {
    const devices: Record<string, Device> = machines.devices;
    const name = (target.arch ?? "").replace(/[af]+$/, "");
    const device = Object.hasOwn(devices, name) ? devices[name] : devices["sm_80"];
    if (device === undefined) return undefined;
    const rate = 2 * device.multiprocessors * device.lanes * device.gigahertz;
    return {
      label: `the largest ${name || "GPU"}`,
      computes: (operations) => operations / rate,
      moves: (bytes) => bytes / device.rate,
      launch: machines.launch_ns.cuda,
    };
  }
  if (target.kind !== "cpu") return undefined;
  const cores: Record<string, Partial<Core>> = machines.cores;
  const name = target.cpu ?? "";
  const core: Core = { ...machines.core, ...(Object.hasOwn(cores, name) ? cores[name] : {}) };
  const rate = 2 * core.gigahertz * core.products * (vectorBits(new Set(target.features ?? [])) / 32);
  return {
    label: `one core of ${name || "the target"}`,
    computes: (operations) => operations / rate,
    moves: (bytes) => {
      const cached = Math.min(bytes, core.cached_bytes);
      return cached / core.cached_rate + (bytes - cached) / core.streamed_rate;
    },
    launch: machines.launch_ns.cpu,
  };
}
