// Sizes in a program: integers, symbols, and operations on them, evaluated as a launch evaluates them.

export type Wire = number | bigint | string | { readonly op: string; readonly args: readonly Wire[] };
export type Values = ReadonlyMap<string, bigint>;
export type Range = readonly [bigint, bigint];
export type Ranges = ReadonlyMap<string, Range>;

const LEAST = -(1n << 63n);
const MOST = (1n << 63n) - 1n;

/** A size that has no value: an overflow, a division by zero, a symbol out of its bounds. */
export class SizeError extends Error {}

function truncated(left: bigint, right: bigint): bigint {
  return left / right;
}

function floored(left: bigint, right: bigint): bigint {
  const quotient = left / right;
  return left % right !== 0n && left < 0n !== right < 0n ? quotient - 1n : quotient;
}

const BINARY: Record<string, { name: string; divides?: boolean; of: (left: bigint, right: bigint) => bigint }> = {
  add: { name: "Add", of: (left, right) => left + right },
  sub: { name: "Sub", of: (left, right) => left - right },
  mul: { name: "Mul", of: (left, right) => left * right },
  max: { name: "Max", of: (left, right) => (left > right ? left : right) },
  min: { name: "Min", of: (left, right) => (left < right ? left : right) },
  idiv: { name: "Idiv", divides: true, of: truncated },
  mod: { name: "Mod", divides: true, of: (left, right) => left % right },
  floordiv: { name: "FloorDiv", divides: true, of: floored },
  floormod: { name: "FloorMod", divides: true, of: (left, right) => left - floored(left, right) * right },
};

function operation(op: string): (typeof BINARY)[string] {
  const found = Object.hasOwn(BINARY, op) ? BINARY[op] : undefined;
  if (found === undefined) throw new SizeError(`unknown operation ${op}`);
  return found;
}

/** The value of a size in checked 64-bit arithmetic. SizeError where it has none. */
export function evaluate(wire: Wire, values: Values): bigint {
  switch (typeof wire) {
    case "bigint":
      return wire;
    case "number":
      return BigInt(wire);
    case "string": {
      const value = values.get(wire);
      if (value === undefined) throw new SizeError(`missing runtime value for launch-size variable ${wire}`);
      return value;
    }
  }
  const args = wire.args.map((arg) => evaluate(arg, values));
  if (wire.op === "neg") {
    if (args[0] === LEAST) throw new SizeError("invalid launch-size negation overflow");
    return -(args[0] ?? 0n);
  }
  const { name, divides, of } = operation(wire.op);
  return args.reduce((left, right) => {
    const has = !divides || (right !== 0n && !(left === LEAST && right === -1n));
    const value = has ? of(left, right) : MOST + 1n;
    if (value < LEAST || value > MOST) throw new SizeError(`invalid launch-size arithmetic: ${left} ${name} ${right}`);
    return value;
  });
}

export interface Variable {
  readonly name: string;
  readonly min: number | bigint;
  readonly max: number | bigint;
}

/** The sizes of a launch at a binding of its variables. SizeError by the launch rules. */
export function launchSizes(sizes: readonly Wire[], variables: readonly Variable[], values: Values): bigint[] {
  const used = new Set(sizes.flatMap((size) => [...symbolsOf(size)]));
  for (const { name, min, max } of variables) {
    const value = values.get(name);
    if (used.has(name) && value !== undefined && (value < BigInt(min) || value > BigInt(max))) {
      throw new SizeError(`variable ${name}=${value} is outside bounds [${min}, ${max}]`);
    }
  }
  return sizes.map((size, index) => {
    const value = evaluate(size, values);
    if (value <= 0n) throw new SizeError(`launch dimension ${index} evaluated to non-positive value ${value}`);
    return value;
  });
}

/** The names of the symbols in a size. */
export function symbolsOf(wire: Wire, found: Set<string> = new Set()): Set<string> {
  if (typeof wire === "string") found.add(wire);
  else if (typeof wire === "object") for (const arg of wire.args) symbolsOf(arg, found);
  return found;
}

const LEVEL: Record<string, number> = { add: 1, sub: 1, mul: 2 };
const SIGN: Record<string, string> = { add: " + ", sub: " − ", mul: "·" };

/** A size as it is written by hand: `⌊(n + 221) / 222⌋`. */
export function textOf(wire: Wire, level = 0): string {
  if (typeof wire !== "object") return String(wire);
  const { op, args } = wire;
  const sign = SIGN[op];
  if (sign !== undefined) {
    const own = LEVEL[op] ?? 0;
    const text = args.map((arg, index) => textOf(arg, op === "sub" && index > 0 ? own + 1 : own)).join(sign);
    return own < level ? `(${text})` : text;
  }
  const inner = args.map((arg) => textOf(arg));
  if (op === "floordiv") {
    const [left, right] = args.map((arg) => textOf(arg, 2));
    return right === "2" || /^\w+$/.test(right ?? "") ? `⌊${left} / ${right}⌋` : `⌊${left} / (${inner[1]})⌋`;
  }
  if (op === "neg") return `−${textOf(args[0] ?? 0, 3)}`;
  return `${op}(${inner.join(", ")})`;
}
