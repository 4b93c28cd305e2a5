// What is known of a size from the bounds of its symbols: an interval that holds all of its values.

import { type Range, type Ranges, SizeError, type Wire } from "./expression";

function hull(corners: readonly bigint[]): Range {
  return [corners.reduce((a, b) => (b < a ? b : a)), corners.reduce((a, b) => (b > a ? b : a))];
}

function corners(left: Range, right: Range, of: (a: bigint, b: bigint) => bigint): bigint[] {
  return left.flatMap((a) => right.map((b) => of(a, b)));
}

function magnitude([low, high]: Range): bigint {
  const [a, b] = [low < 0n ? -low : low, high < 0n ? -high : high];
  return a > b ? a : b;
}

function floored(left: bigint, right: bigint): bigint {
  const quotient = left / right;
  return left % right !== 0n && left < 0n !== right < 0n ? quotient - 1n : quotient;
}

function divided(op: string, dividend: Range, divisor: Range): Range {
  const extent = magnitude(dividend);
  const largest = magnitude(divisor);
  const [low, high] = dividend;
  if (divisor[0] <= 0n && 0n <= divisor[1]) {
    const limit = op === "idiv" || op === "floordiv" ? extent : largest;
    return [-limit, limit];
  }
  if (op === "floordiv") return hull(corners(dividend, divisor, floored));
  if (op === "idiv") {
    const [least, most] = hull(corners(dividend, divisor, (a, b) => a / b));
    return [low <= 0n && 0n <= high && least > 0n ? 0n : least, most];
  }
  if (op === "floormod") {
    if (divisor[0] <= 0n) return [divisor[0] + 1n, 0n];
    const most = divisor[1] - 1n;
    return [0n, low >= 0n && high < most ? high : most];
  }
  const limit = largest - 1n < extent ? largest - 1n : extent;
  return [low < 0n ? -limit : 0n, high > 0n ? limit : 0n];
}

/** An inclusive interval of all values of a size. SizeError when a symbol has no range. */
export function bounds(wire: Wire, ranges: Ranges): Range {
  if (typeof wire === "number" || typeof wire === "bigint") return [BigInt(wire), BigInt(wire)];
  if (typeof wire === "string") {
    const range = ranges.get(wire);
    if (range === undefined) throw new SizeError(`${wire} has no bounds`);
    return range;
  }
  const args = wire.args.map((arg) => bounds(arg, ranges));
  const [first, second] = [args[0] ?? [0n, 0n], args[1] ?? [0n, 0n]] as [Range, Range];
  switch (wire.op) {
    case "add":
      return args.reduce((a, b) => [a[0] + b[0], a[1] + b[1]]);
    case "sub":
      return [first[0] - second[1], first[1] - second[0]];
    case "neg":
      return [-first[1], -first[0]];
    case "mul":
      return args.reduce((a, b) => hull(corners(a, b, (x, y) => x * y)));
    case "max":
    case "min": {
      const pick = (values: bigint[]): bigint => hull(values)[wire.op === "max" ? 1 : 0];
      return [pick(args.map(([low]) => low)), pick(args.map(([, high]) => high))];
    }
  }
  return divided(wire.op, first, second);
}
