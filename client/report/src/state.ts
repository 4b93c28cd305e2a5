// What the reader of the page has chosen, and what follows from it.

import { batch, computed, signal } from "@preact/signals";

import type { Values } from "./expression";
import { Evaluator, type Numbers } from "./numbers";
import type { ItemView, NodeView, Report } from "./report";
import { StageText } from "./texts";

export interface Selection {
  /** A schedule item; -1 where the node is in none. */
  readonly item: number;
  /** A node of the user's graph; -1 where a whole item is chosen. */
  readonly node: number;
  /** The item of the other program; -1 where there is none. */
  readonly theirs: number;
}

const NOTHING: Selection = { item: -1, node: -1, theirs: -1 };

/** Sizes begin as those that were measured, or where schedules are compared: at 256, or as near as may be. */
const TYPICAL = 256n;

export class State {
  readonly values;
  readonly selection = signal<Selection>(NOTHING);
  /** The nodes that a line comes from which was clicked, where they are several. */
  readonly several = signal<readonly number[]>([]);
  readonly search = signal("");
  readonly expanded = signal<ReadonlySet<number>>(new Set());
  /** Whether the time of what is prepared once is left out. */
  readonly bound;
  readonly numbers;
  readonly otherNumbers;
  readonly evaluator: Evaluator;
  /** The item of the other program that does what an item of this one does. */
  readonly matches: ReadonlyMap<number, number>;
  private readonly mine: ReadonlyMap<number, number>;
  private readonly texts = new Map<string, Promise<StageText>>();

  constructor(
    readonly report: Report,
    readonly other: Report | undefined,
  ) {
    this.evaluator = new Evaluator(report);
    this.bound = signal(report.program.prepare.length > 0);
    const start = new Map(
      report.program.symbols.map(({ name, min_val, max_val }) => {
        const [least, most] = [BigInt(min_val), BigInt(max_val)];
        const wanted = report.measuredAt.get(name) ?? TYPICAL;
        return [name, wanted < least ? least : wanted > most ? most : wanted];
      }),
    );
    this.values = signal<Values>(start);
    this.numbers = computed<Numbers>(() => this.evaluator.at(this.values.value, this.bound.value));
    const against = other && new Evaluator(other);
    this.otherNumbers = computed<Numbers | undefined>(() => against?.at(this.valuesOfOther(), this.bound.value));
    this.matches = other ? matched(report, other) : new Map();
    this.mine = new Map([...this.matches].map(([mine, theirs]) => [theirs, mine]));
  }

  /** The text of a stage of either program, read once. */
  text(of: Report, name: string): Promise<StageText> {
    const key = `${of === this.report ? "this" : "other"} ${name}`;
    let text = this.texts.get(key);
    if (text === undefined) {
      text = Promise.all([of.stage(name), of.origins()]).then(([found, table]) => new StageText(found, of, name, table));
      this.texts.set(key, text);
    }
    return text;
  }

  set(symbol: string, value: bigint): void {
    this.values.value = new Map(this.values.value).set(symbol, value);
  }

  select(item: number, node = -1): void {
    this.choose({ item, node, theirs: this.matches.get(item) ?? -1 });
  }

  /** The item of a line, and all nodes that the line comes from. */
  selectSeveral(item: number, nodes: readonly number[]): void {
    batch(() => {
      this.select(item);
      this.several.value = nodes;
    });
  }

  /** An item of the other program or a node of it, with what does the same in this one, if anything does. */
  selectTheirs(theirs: number, node = -1): void {
    const item = this.mine.get(theirs) ?? -1;
    this.choose({ item, node: this.isInBoth(item, theirs, node) ? node : -1, theirs });
  }

  /** The selected node, if the other program has it too; else -1. */
  get nodeOfOther(): number {
    const { item, node, theirs } = this.selection.value;
    return this.isInBoth(item, theirs, node) ? node : -1;
  }

  clear(): void {
    this.several.value = [];
    this.selection.value = NOTHING;
  }

  toggle(item: number): void {
    const next = new Set(this.expanded.value);
    if (!next.delete(item)) next.add(item);
    this.expanded.value = next;
  }

  /** The item before or after the selected one in the order of execution. */
  step(by: number): void {
    const { order } = this.report;
    const at = order.indexOf(this.selection.value.item);
    const next = order[at < 0 ? (by > 0 ? 0 : order.length - 1) : Math.min(order.length - 1, Math.max(0, at + by))];
    if (next !== undefined) this.select(next);
  }

  get selectedItem(): ItemView | undefined {
    return this.report.items[this.selection.value.item];
  }

  private choose(chosen: Selection): void {
    if (this.several.value.length > 0) this.several.value = [];
    const { item, node, theirs } = this.selection.value;
    if (chosen.item === item && chosen.node === node && chosen.theirs === theirs) return;
    batch(() => {
      this.selection.value = chosen;
      if (chosen.node >= 0 && !this.expanded.value.has(chosen.item)) this.toggle(chosen.item);
    });
  }

  /** Whether a node of this number is the same in both programs, and in these items if it is in any. */
  private isInBoth(item: number, theirs: number, node: number): boolean {
    const [mine, their] = [nodeIn(this.report, item, node), this.other && nodeIn(this.other, theirs, node)];
    return mine !== undefined && mine.label === their?.label;
  }

  /** Symbols of the same names have the same values; others of the other program follow their order. */
  private valuesOfOther(): Values {
    const mine = [...this.values.value];
    const values = new Map<string, bigint>();
    this.other?.program.symbols.forEach(({ name, min_val, max_val }, index) => {
      const value = this.values.value.get(name) ?? mine[index]?.[1] ?? BigInt(min_val);
      const [least, most] = [BigInt(min_val), BigInt(max_val)];
      values.set(name, value < least ? least : value > most ? most : value);
    });
    return values;
  }
}

function nodeIn(report: Report, item: number, node: number): NodeView | undefined {
  const found = report.nodes.find((each) => each.index === node);
  const isThere = item < 0 ? found?.item === -1 : report.items[item]?.nodes.includes(node);
  return isThere ? found : undefined;
}

/** The same whether or not the graph is known. */
function kindsOf(item: ItemView): string {
  return item.kernel ? item.kernel.ops.map((op) => op.kind).sort().join(" ") : item.name;
}

/** Items that hold the same nodes, and of the others those of the same kinds in order. */
function matched(mine: Report, theirs: Report): Map<number, number> {
  const found = new Map<number, number>();
  const taken = new Set<number>();
  const keys: ((item: ItemView) => string)[] = [
    (item) => (item.nodes.length > 0 ? `${kindsOf(item)}|${[...item.nodes].sort((a, b) => a - b).join(" ")}` : ""),
    kindsOf,
  ];
  for (const keyOf of keys) {
    const free = new Map<string, number[]>();
    for (const item of theirs.items) {
      if (taken.has(item.id)) continue;
      const key = keyOf(item);
      const known = free.get(key);
      if (known) known.push(item.id);
      else free.set(key, [item.id]);
    }
    for (const item of mine.items) {
      if (found.has(item.id)) continue;
      const key = keyOf(item);
      const their = key === "" ? undefined : free.get(key)?.shift();
      if (their === undefined) continue;
      found.set(item.id, their);
      taken.add(their);
    }
  }
  return found;
}
