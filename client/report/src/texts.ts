// Where kernels and nodes of the graph are in the text of a stage.

import type { ItemView, Report } from "./report";

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
const OPERATION = /^\s+(?:%[^=]+= )?"kiln\.(\w+)"/;
const SUFFIX = /(?:_linalg|_body|_shared_\d+)$/;

/** A text by lines, with what each is about. Nodes are those of the user's graph. */
export class StageText {
  readonly lines: readonly string[];
  private readonly functions: Function[] = [];
  private readonly byName = new Map<string, Function>();
  private readonly nodesOfLine = new Map<number, readonly number[]>();
  private readonly linesOfNode = new Map<number, number[]>();
  private readonly itemsOfFunction = new Map<string, number[]>();

  constructor(
    text: string,
    private readonly report: Report,
  ) {
    this.lines = text.trimEnd().split("\n");
    this.findFunctions();
    this.findCalls();
    this.findBodies();
  }

  /** The nodes that a line is about. */
  nodesAt(line: number): readonly number[] {
    return this.nodesOfLine.get(line) ?? [];
  }

  /** The schedule items that run the function around a line. */
  itemsAt(line: number): readonly number[] {
    const around = this.functionAt(line);
    return around === undefined ? [] : this.itemsOf(around.name);
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

  private findCalls(): void {
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
      const users = (nodes[1] ?? "").split(",").filter(Boolean).map((each) => this.report.userNode(Number(each)));
      this.name(at, users);
      const item = byNodes.get(key(users));
      const callee = CALLEE.exec(line)?.[1];
      if (item !== undefined && callee !== undefined) this.runs(callee, item);
    });
  }

  /** The operations of a kernel of one call, where they are those of its nodes one by one. */
  private findBodies(): void {
    for (const found of this.functions) {
      const [only, ...others] = this.itemsOfFunction.get(found.name) ?? [];
      const ops = only === undefined || others.length > 0 ? [] : (this.report.items[only]?.kernel?.ops ?? []);
      const kinds = new Map(ops.map((op) => [op.node, op.kind]));
      if (ops.length === 0 || this.nodesOfLine.has(found.first + 1)) continue;
      const lines: [number, string][] = [];
      for (let at = found.first; at <= found.last; at++) {
        const kind = OPERATION.exec(this.lines[at] ?? "")?.[1];
        if (kind !== undefined) lines.push([at, kind]);
      }
      const nodes = this.canonicalOrder(ops.map((op) => op.node));
      if (lines.length !== nodes.length || lines.some(([, kind], at) => kinds.get(nodes[at] ?? -1) !== kind)) continue;
      lines.forEach(([at], index) => this.name(at, [nodes[index] ?? -1]));
    }
  }

  private canonicalOrder(nodes: readonly number[]): number[] {
    const places = new Map((this.report.names.nodes ?? []).map((user, canonical) => [user, canonical]));
    return [...nodes].sort((a, b) => (places.get(a) ?? a) - (places.get(b) ?? b));
  }

  private runs(name: string, item: number): void {
    const known = this.itemsOfFunction.get(name);
    if (known === undefined) this.itemsOfFunction.set(name, [item]);
    else if (!known.includes(item)) known.push(item);
  }

  private name(line: number, nodes: readonly number[]): void {
    this.nodesOfLine.set(line, nodes);
    for (const node of nodes) {
      const lines = this.linesOfNode.get(node);
      if (lines === undefined) this.linesOfNode.set(node, [line]);
      else lines.push(line);
    }
  }
}

function key(nodes: readonly number[]): string {
  return [...nodes].sort((a, b) => a - b).join(" ");
}
