// The texts of two stages side by side; what is selected is marked in both.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { type Difference, difference } from "./difference";
import { named } from "./remarks";
import type { Report } from "./report";
import { Rows } from "./rows";
import type { State } from "./state";
import type { StageText } from "./texts";
import { tinted } from "./tint";

const NONE: readonly number[] = [];

interface Shown {
  readonly report: Report;
  readonly side: "this" | "other";
  readonly name: string;
}

export function Stages({ state }: { state: State }) {
  const { report, other } = state;
  const first = report.stages[0] ?? "";
  const left = useSignal(report.stages.includes("form-kernels") ? "form-kernels" : first);
  const right = useSignal(other ? left.value : (report.stages.at(-1) ?? first));
  const texts = useSignal<readonly [StageText | null, StageText | null]>([null, null]);
  const theirs = other ?? report;
  useEffect(() => {
    let isCurrent = true;
    void Promise.all([state.text(report, left.value), state.text(theirs, right.value)]).then((found) => {
      if (isCurrent) texts.value = found;
    });
    return () => {
      isCurrent = false;
    };
  }, [left.value, right.value]);
  const changed = useComputed<Difference | undefined>(() => {
    const [mine, their] = texts.value;
    return other && mine && their ? difference(mine.lines, their.lines) : undefined;
  });
  if (report.stages.length === 0 && (other?.stages.length ?? 0) === 0) {
    return (
      <section class="panel" aria-label="Stages">
        <header><h2>Stages</h2></header>
        <div class="none">
          <p>This program was compiled without the texts of its stages.</p>
          <p>
            Compile it with the option <code>dump_stages</code>, or run <code>kiln report</code> on the model itself.
          </p>
        </div>
      </section>
    );
  }
  return (
    <section class="panel stages" aria-label="Stages">
      <Pane state={state} shown={{ report, side: "this", name: left.value }} text={texts.value[0]} marked={changed.value?.mine} onPick={(name) => {
        left.value = name;
        if (other?.stages.includes(name)) right.value = name;
      }} title={other ? "this" : "Stage"} />
      <Pane state={state} shown={{ report: theirs, side: other ? "other" : "this", name: right.value }} text={texts.value[1]} marked={changed.value?.theirs} onPick={(name) => (right.value = name)} title={other ? "other" : "Stage"} />
    </section>
  );
}

interface PaneProps {
  readonly state: State;
  readonly shown: Shown;
  readonly text: StageText | null;
  readonly marked: ReadonlySet<number> | undefined;
  readonly title: string;
  readonly onPick: (name: string) => void;
}

interface Marks {
  readonly nodes: ReadonlySet<number>;
  /** Of these, the lines that come from other nodes too. */
  readonly shared: ReadonlySet<number>;
  readonly own: readonly (readonly [number, number])[];
  readonly called: readonly (readonly [number, number])[];
  readonly first: number;
}

function marksOf(text: StageText, report: Report, item: number, node: number, several: readonly number[]): Marks {
  const view = report.items[item];
  const wanted = node >= 0 ? [node] : several.length > 0 ? several : (view?.nodes ?? []);
  const nodes = new Set(wanted.flatMap((each) => text.linesOf(each)));
  const { own, called } = view ? text.rangesOf(view) : { own: [], called: [] };
  // A node's own line where it has one, then what is about few others, then the code of its kernel.
  let [exact, least] = [-1, Number.POSITIVE_INFINITY];
  for (const line of node >= 0 ? nodes : []) {
    const width = text.width(line, node);
    if (width < least || (width === least && line < exact)) [exact, least] = [line, width];
  }
  const any = nodes.size > 0 ? Math.min(...nodes) : -1;
  const shared = new Set(node >= 0 ? [...nodes].filter((line) => text.width(line, node) > 1) : []);
  return { nodes, shared, own, called, first: exact >= 0 ? exact : (own[0]?.[0] ?? any) };
}

/** How closely the selection is known in a text, where that is not by its own lines. */
function closeness(text: StageText, report: Report, item: number, node: number, several: readonly number[]): string {
  const view = report.items[item];
  if (view === undefined) return "";
  if (node < 0 && several.length > 0) return several.map((each) => labelled(report, each)).join(", ");
  if (node < 0) return text.rangesOf(view).own.length > 0 || view.nodes.some((each) => text.linesOf(each).length > 0) ? named(report, view) : "";
  const label = labelled(report, node);
  const known = text.closeness(node);
  if (known === "node") return label;
  return known === "loop" ? `${label}: one of those that these loops compute` : text.rangesOf(view).own.length > 0 ? `${label}: known by its kernel, ${view.name}, here` : "";
}

function labelled(report: Report, node: number): string {
  return `#${node} ${report.nodes.find((each) => each.index === node)?.label ?? ""}`.trim();
}

function isIn(ranges: readonly (readonly [number, number])[], line: number): boolean {
  return ranges.some(([first, last]) => line >= first && line <= last);
}

function Pane({ state, shown, text, marked, title, onPick }: PaneProps) {
  const isTheirs = shown.side === "other";
  const { item, node: mine, theirs } = state.selection.value;
  const [here, node] = isTheirs ? [theirs, state.nodeOfOther] : [item, mine];
  const several = isTheirs ? NONE : state.several.value;
  const marks = useMemo(() => (text ? marksOf(text, shown.report, here, node, several) : undefined), [text, here, node, several]);
  const known = useMemo(() => (text && here >= 0 ? closeness(text, shown.report, here, node, several) : ""), [text, here, node, several]);
  const widest = useMemo(() => (text ? Math.min(4000, text.lines.reduce((most, line) => Math.max(most, line.length), 0)) : 0), [text]);
  const select = (chosen: number, of = -1): void => (isTheirs ? state.selectTheirs(chosen, of) : state.select(chosen, of));
  const choose = (line: number): void => {
    if (text === null) return;
    // Of kernels that are one text, the selected one is meant, else the first.
    const places = text.placesAt(line);
    const place = places.find((each) => each.item === here) ?? places[0];
    const [only, ...others] = place?.nodes ?? [];
    if (place !== undefined && only !== undefined) {
      const home = place.item >= 0 ? place.item : (shown.report.nodes.find((each) => each.index === only)?.item ?? -1);
      if (others.length === 0) select(home, only);
      else if (isTheirs) select(home);
      else state.selectSeveral(home, place.nodes);
      return;
    }
    const runs = text.itemsAt(line);
    const run = runs.includes(here) ? here : runs[0];
    if (run !== undefined) select(run);
  };
  return (
    <div class="pane">
      <header>
        <h2>{title}</h2>
        <select aria-label={`Stage in the ${title === "Stage" ? "pane" : title}`} value={shown.name} onChange={(event) => onPick(event.currentTarget.value)}>
          {shown.report.stages.map((name) => (
            <option key={name} value={name}>{name}</option>
          ))}
        </select>
        <span class="note">{text ? `${text.lines.length} lines` : "reading…"}</span>
      </header>
      {known && <p class="note known" title={known}>{known}</p>}
      {text && (
        <Rows
          count={text.lines.length}
          height={17}
          label={`Text of ${shown.name}`}
          role="document"
          class="code"
          width={`${widest + 8}ch`}
          shown={marks?.first}
          align="center"
          row={(line) => {
            const mark = marks === undefined ? "" : marks.nodes.has(line) ? "node" : isIn(marks.own, line) ? "own" : isIn(marks.called, line) ? "called" : "";
            return (
              <div class={`line ${mark}${marks?.shared.has(line) ? " several" : ""}${marked?.has(line) ? " changed" : ""}`} data-line={line + 1} onClick={() => choose(line)}>
                <span class="gutter">{line + 1}</span>
                {tinted(text.lines[line] ?? "")}
              </div>
            );
          }}
        />
      )}
    </div>
  );
}
