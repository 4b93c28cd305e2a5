// Where kernels and nodes of the graph are in the text of a stage.
//
// Calls of kernels say which nodes their operations are of, and which their loops compute: what they call is known by
// node or by loop. Where a table says which lines come from which nodes, as it does from `to-linalg` to the assembly, it
// is by that. Other text that has no such calls is known by the kernel.

import { keysOf, type OriginTable, runsOf } from "./origins";
import type { ItemView, Report } from "./report";

/** The nodes that a line is about, and the item that runs it; -1 in the graph itself, where a line is of no item. */
export interface Place {
  readonly item: number;
  readonly nodes: readonly number[];
}

export type Closeness = "node" | "loop" | "kernel";

interface Call {
  readonly callee: string;
  readonly item: number;
  readonly line: string;
}

interface Function {
  readonly name: string;
  readonly first: number;
  last: number;
  readonly callees: Set<string>;
}

const MLIR = /^(\s*)(?:func\.func|llvm\.func|gpu\.func)\b[^@]*@"?([\w.$-]+)/;
const LLVM = /^define\b[^@]*@"?([\w.$-]+)"?\(/;
const PTX = /^\s*(?:\.(?:visible|weak)\s+)*\.(?:entry|func)\b(?:\s*\(.*?\))?\s*([\w$]+)\s*\(/;
const LABEL = /^([A-Za-z_][\w.$]*):/;
const CALLEE = /\bcall\b[^@]*@"?([\w.$-]+)"?|\bcallq?\s+"?([A-Za-z_][\w.$]*)|\bcall\.uni\s+(?:\([^)]*\),\s*)?([\w$]+)/;
const NODE = /kiln\.node = (\d+)/;
const NODES = /kiln\.nodes = array<i64(?:: ([\d, ]*))?>/;
const OPERATION = /^\s+(?:%[^=]+= )?"kiln\.\w+"/;
const BODY = /kiln\.body = array<i64(?:: ([-\d, ]*))?>/;
const ROOTS = /kiln\.roots = \[([^\]]*)\]/;
const STORES = /^(\s*).*\bkiln\.stores = array<i64(?:: ([\d, ]*))?>/;
const SUFFIX = /(?:_linalg|_body|_shared_\d+)$/;

/** What the code of a kernel uses: vector registers, and instructions whose operand is on the stack. */
export interface CodeUse {
  readonly instructions: number;
  readonly vectors: number;
  readonly stack: number;
}

const INSTRUCTION = /^\t[a-z]/;
const VECTOR = /%[xyz]mm(\d+)|\b[vqz](\d+)(?=[.,\]\s}]|$)/g;
const STACK = /\(%rsp[),]|\(%rbp[),]|\[(?:sp|x29)[\],]/;

/** A text by lines, with what each is about. Nodes are those of the user's graph. */
export class StageText {
  readonly lines: readonly string[];
  private readonly functions: Function[] = [];
  private readonly byName = new Map<string, Function>();
  private readonly placesOfLine = new Map<number, Place[]>();
  private readonly linesOfNode = new Map<number, number[]>();
  private readonly itemsOfFunction = new Map<string, number[]>();
  private readonly loops = new Set<number>();

  constructor(
    text: string,
    private readonly report: Report,
    name = "",
    table?: OriginTable,
  ) {
    this.lines = text.trimEnd().split("\n");
    this.findFunctions();
    const isKnown = table?.lines[name] !== undefined;
    for (const call of this.findCalls()) {
      this.findOperations(call);
      if (!isKnown) this.findLoops(call);
    }
    if (table !== undefined && isKnown) this.takeOrigins(name, table);
  }

  /** What a line is about: kernels that are the same are one text, which is about other nodes for each of them. */
  placesAt(line: number): readonly Place[] {
    return this.placesOfLine.get(line) ?? [];
  }

  /** The schedule items that run the function around a line, or call it where it is one that several share. */
  itemsAt(line: number): readonly number[] {
    const around = this.functionAt(line);
    if (around === undefined) return [];
    const seen = new Set([around.name]);
    for (const name of seen) {
      const items = this.itemsOf(name);
      if (items.length > 0) return items;
      for (const each of this.functions) if (each.callees.has(name)) seen.add(each.name);
    }
    return [];
  }

  /** How closely a node is known in this text: by lines of its own, by the loops that compute it, or not. */
  closeness(node: number): Closeness {
    const lines = this.linesOf(node);
    if (lines.some((line) => this.width(line, node) === 1)) return "node";
    return lines.some((line) => this.loops.has(line)) ? "loop" : "kernel";
  }

  /** Of how many nodes a line is that is about this one. */
  width(line: number, node: number): number {
    return Math.min(...this.placesAt(line).filter((place) => place.nodes.includes(node)).map((place) => place.nodes.length));
  }

  linesOf(node: number): readonly number[] {
    return this.linesOfNode.get(node) ?? [];
  }

  /** The ranges of lines, both ends inclusive, of an item's own functions, and of those that only these call. */
  rangesOf(item: ItemView): { own: readonly (readonly [number, number])[]; called: readonly (readonly [number, number])[] } {
    const own = this.functions.filter((each) => this.itemsOf(each.name).includes(item.id));
    const seen = new Set(own);
    const pending = [...own];
    const called: Function[] = [];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      for (const name of next.callees) {
        const callee = this.byName.get(name);
        if (callee === undefined || seen.has(callee) || this.itemsOf(name).length > 0) continue;
        seen.add(callee);
        called.push(callee);
        pending.push(callee);
      }
    }
    const range = ({ first, last }: Function): [number, number] => [first, last];
    return { own: own.map(range), called: called.map(range) };
  }

  /** What the assembly of a kernel uses, functions that it calls included. */
  useOf(item: ItemView): CodeUse | null {
    const { own, called } = this.rangesOf(item);
    const lines = [...own, ...called].flatMap(([first, last]) => this.lines.slice(first, last + 1)).filter((line) => INSTRUCTION.test(line));
    const vectors = new Set(lines.flatMap((line) => [...line.matchAll(VECTOR)].map((found) => found[1] ?? found[2])));
    return lines.length > 0 ? { instructions: lines.length, vectors: vectors.size, stack: lines.filter((line) => STACK.test(line)).length } : null;
  }

  private itemsOf(name: string): readonly number[] {
    return this.itemsOfFunction.get(name) ?? this.itemsOfFunction.get(name.replace(SUFFIX, "")) ?? [];
  }

  private functionAt(line: number): Function | undefined {
    let [low, high] = [0, this.functions.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.functions[middle];
      if (found === undefined) return undefined;
      if (line < found.first) high = middle - 1;
      else if (line > found.last) low = middle + 1;
      else return found;
    }
    return undefined;
  }

  private findFunctions(): void {
    let open: Function | undefined;
    let end = "";
    const begin = (name: string, line: number): Function => {
      const found = { name, first: line, last: line, callees: new Set<string>() };
      this.functions.push(found);
      this.byName.set(name, found);
      return found;
    };
    this.lines.forEach((line, at) => {
      if (open !== undefined && end !== "") {
        open.last = at;
        const callee = line.includes("call") ? CALLEE.exec(line) : null;
        if (callee !== null) open.callees.add(callee[1] ?? callee[2] ?? callee[3] ?? "");
        if (line === end || (end === "label" && line.startsWith(".Lfunc_end"))) open = undefined;
        if (end !== "label") return;
      }
      const mlir = MLIR.exec(line);
      const found = mlir?.[2] ?? LLVM.exec(line)?.[1] ?? PTX.exec(line)?.[1];
      if (found !== undefined) {
        const started = begin(found, at);
        end = mlir ? `${mlir[1]}}` : "}";
        open = mlir && !line.endsWith("{") ? undefined : started;
        return;
      }
      const label = LABEL.exec(line);
      if (label?.[1] !== undefined) {
        open = begin(label[1], at);
        end = "label";
      }
    });
  }

  private findCalls(): Call[] {
    const calls: Call[] = [];
    // Where the graph calls its kernels, these calls say which nodes are whose; elsewhere code is known by its entry.
    const isCalled = this.lines.some((line) => NODES.test(line));
    const kernels = this.report.program.kernels;
    for (const { id, kernel } of this.report.items) {
      if (kernel === undefined) continue;
      const entry = kernels[kernel.kernel_id]?.entry;
      if (entry && !isCalled) this.runs(entry, id);
    }
    const byNodes = new Map<string, number>();
    for (const { id, nodes } of this.report.items) byNodes.set(key(nodes), id);
    this.lines.forEach((line, at) => {
      if (!line.includes("kiln.node")) return;
      const node = NODE.exec(line)?.[1];
      if (node !== undefined) this.name(at, [this.report.userNode(Number(node))]);
      const nodes = NODES.exec(line);
      if (nodes === null) return;
      const users = numbers(nodes[1]).map((each) => this.report.userNode(each));
      const item = byNodes.get(key(users));
      this.name(at, users, item);
      const callee = CALLEE.exec(line)?.[1];
      if (item === undefined || callee === undefined) return;
      this.runs(callee, item);
      calls.push({ callee, item, line });
    });
    return calls;
  }

  /** The operations of a kernel where it is called, each of a node. */
  private findOperations({ callee, item, line }: Call): void {
    const body = this.byName.get(callee);
    const nodes = numbers(BODY.exec(line)?.[1]);
    if (body === undefined || nodes.length === 0) return;
    const lines: number[] = [];
    for (let at = body.first + 1; at < body.last; at++) if (OPERATION.test(this.lines[at] ?? "")) lines.push(at);
    if (lines.length !== nodes.length) return;
    lines.forEach((at, index) => {
      const node = nodes[index] ?? -1;
      if (node >= 0) this.name(at, [this.report.userNode(node)], item);
    });
  }

  /** The loops of a kernel where it is called, each of the nodes that it computes. */
  private findLoops({ callee, item, line }: Call): void {
    const body = this.byName.get(`${callee}_linalg`);
    const roots = [...(ROOTS.exec(line)?.[1] ?? "").matchAll(/array<i64(?:: ([\d, ]*))?>/g)].map((found) => numbers(found[1]));
    if (body === undefined || roots.length === 0) return;
    for (let at = body.first + 1; at < body.last; at++) {
      const stores = STORES.exec(this.lines[at] ?? "");
      if (stores === null) continue;
      this.loops.add(at);
      const computed = new Set(numbers(stores[2]).flatMap((root) => roots[root] ?? []));
      const nodes = [...computed].map((node) => this.report.userNode(node));
      for (const end = `${stores[1]}}`; at < body.last; at++) {
        this.name(at, nodes, item);
        if (this.lines[at]?.startsWith(end)) break;
      }
    }
  }

  private takeOrigins(name: string, table: OriginTable): void {
    for (const { first, count, places, isLoops } of runsOf(table, name, this.report, keysOf(this.report.items, key), key)) {
      for (let line = first; line < first + count; line++) {
        if (isLoops) this.loops.add(line);
        for (const { item, nodes } of places) this.name(line, nodes, item);
      }
    }
  }

  private runs(name: string, item: number): void {
    const known = this.itemsOfFunction.get(name);
    if (known === undefined) this.itemsOfFunction.set(name, [item]);
    else if (!known.includes(item)) known.push(item);
  }

  private name(line: number, nodes: readonly number[], item = -1): void {
    const places = this.placesOfLine.get(line);
    if (places === undefined) this.placesOfLine.set(line, [{ item, nodes }]);
    else places.push({ item, nodes });
    for (const node of nodes) {
      const lines = this.linesOfNode.get(node);
      if (lines === undefined) this.linesOfNode.set(node, [line]);
      else lines.push(line);
    }
  }
}

function numbers(list: string | undefined): number[] {
  return (list ?? "").split(",").filter((each) => each.trim() !== "").map(Number);
}

function key(nodes: readonly number[]): string {
  return [...nodes].sort((a, b) => a - b).join(" ");
}
