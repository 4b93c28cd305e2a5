// Quantities as people read them.

import { type Wire, textOf } from "./expression";

const DTYPES: Record<string, string> = {
  float16: "f16", bfloat16: "bf16", float32: "f32", float64: "f64", bool: "bool",
  int8: "i8", int16: "i16", int32: "i32", int64: "i64", uint8: "u8", uint16: "u16", uint32: "u32", uint64: "u64",
};

function scaled(value: number, base: number, units: readonly string[]): string {
  let unit = 0;
  let rest = value;
  while (Math.abs(rest) >= base * 0.9995 && unit < units.length - 1) {
    rest /= base;
    unit++;
  }
  const text = rest === 0 || Math.abs(rest) >= 100 || (unit === 0 && Number.isInteger(rest)) ? rest.toFixed(0) : rest.toPrecision(3);
  return `${text} ${units[unit]}`.trim();
}

export const bytes = (value: number): string => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
export const count = (value: number): string => scaled(value, 1000, ["", "k", "M", "G", "T", "P"]);
export const time = (ns: number): string => scaled(ns, 1000, ["ns", "µs", "ms", "s"]);
export const percent = (share: number): string => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

export function typeText(dtype: string, shape: readonly Wire[]): string {
  return `${DTYPES[dtype] ?? dtype}[${shape.map((dim) => textOf(dim)).join(", ")}]`;
}

/** What a number became, from one to the other: `+12 %`. */
export function change(before: number, after: number): string {
  if (before === after) return "=";
  if (before === 0) return "new";
  const ratio = after / before - 1;
  return `${ratio > 0 ? "+" : "−"}${Math.abs(100 * ratio).toFixed(Math.abs(ratio) < 0.0995 ? 1 : 0)} %`;
}
