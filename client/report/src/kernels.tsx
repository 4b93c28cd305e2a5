// Every item of the schedule in a table, to be sorted by what it costs.

import { useComputed, useSignal } from "@preact/signals";

import { bytes, change, count, percent, time } from "./format";
import { type ItemNumbers, type Launch, launchOf } from "./numbers";
import type { ItemView } from "./report";
import { Rows } from "./rows";
import type { State } from "./state";

interface Line {
  readonly item: ItemView;
  readonly numbers: ItemNumbers;
  readonly launch: Launch | undefined;
  readonly their: ItemNumbers | undefined;
  readonly share: number;
  /** Bytes that are live while it runs. */
  readonly live: number | undefined;
}

interface Column {
  readonly key: string;
  readonly title: string;
  readonly hint: string;
  readonly width: number;
  readonly isText?: boolean;
  readonly value: (line: Line, state: State) => number | string;
  readonly text: (line: Line, state: State) => string;
}

const dims = (sizes: readonly bigint[] | null | undefined): string => (sizes ? sizes.join("×") : "");
const volume = (sizes: readonly bigint[] | null | undefined): number => (sizes ? sizes.reduce((all, each) => all * Number(each), 1) : 0);
const some = (value: number, text: (value: number) => string): string => (Number.isFinite(value) && value !== 0 ? text(value) : "");
const resources = ({ item }: Line, state: State) => state.report.program.kernels[item.kernel?.kernel_id ?? -1]?.resources;
const registers = (line: Line, state: State): number =>
  resources(line, state)?.registers ?? state.report.program.schedule.analysis[line.item.id]?.regs_per_thread ?? 0;
const taken = ({ numbers }: Line): number => numbers.measured ?? numbers.estimate;

const COMPARED: readonly Column[] = [
  { key: "theirs", title: "other", hint: "Time of the item that does this in the other program", width: 74, value: ({ their }) => their?.estimate ?? 0, text: ({ their }) => (their ? time(their.measured ?? their.estimate) : "none") },
  { key: "change", title: "change", hint: "By how much this one takes longer than the other", width: 74, value: (line) => (line.their ? taken(line) / (line.their.measured ?? line.their.estimate) : 0), text: (line) => (line.their ? change(line.their.measured ?? line.their.estimate, taken(line)) : "") },
];

/** The figures of a line as they are, not rounded for people. */
function figures({ item, launch, numbers, live }: Line, state: State): Record<`data-${string}`, string | number | undefined> {
  return {
    "data-item": item.id,
    "data-grid": dims(launch?.grid),
    "data-group": dims(launch?.group),
    "data-error": launch?.error,
    "data-flops": numbers.flops,
    "data-read": numbers.read,
    "data-written": numbers.written,
    "data-estimate": numbers.estimate,
    "data-live": live,
    "data-critical": String(state.numbers.value.critical.has(item.id)),
  };
}

function columns(state: State): Column[] {
  const isMeasured = state.report.measured.size > 0;
  const isGpu = state.report.program.target.kind !== "cpu";
  const all: (Column | false)[] = [
    { key: "id", title: "#", hint: "Item of the schedule", width: 44, value: ({ item }) => item.id, text: ({ item }) => String(item.id) },
    { key: "name", title: "kernel", hint: "Its name", width: 92, isText: true, value: ({ item }) => item.name, text: ({ item }) => item.name },
    { key: "nodes", title: "computes", hint: "The nodes that it holds", width: 150, isText: true, value: ({ item }) => item.kinds, text: ({ item }) => item.kinds },
    { key: "grid", title: "grid", hint: "Work-groups of a launch", width: 92, value: ({ launch }) => volume(launch?.grid), text: ({ launch }) => launch?.error || dims(launch?.grid) },
    isGpu && { key: "group", title: "group", hint: "Threads of a work-group", width: 80, value: ({ launch }) => volume(launch?.group), text: ({ launch }) => dims(launch?.group) },
    { key: "flops", title: "ops", hint: "Operations, as additions of 32 bits", width: 66, value: ({ numbers }) => numbers.flops, text: ({ numbers }) => some(numbers.flops, count) },
    { key: "read", title: "read", hint: "Bytes read", width: 76, value: ({ numbers }) => numbers.read, text: ({ numbers }) => some(numbers.read, bytes) },
    { key: "written", title: "written", hint: "Bytes written", width: 76, value: ({ numbers }) => numbers.written, text: ({ numbers }) => some(numbers.written, bytes) },
    { key: "intensity", title: "ops/B", hint: "Operations for each byte moved", width: 58, value: ({ numbers }) => numbers.flops / (numbers.read + numbers.written), text: ({ numbers }) => some(numbers.flops / (numbers.read + numbers.written), (each) => each.toPrecision(3)) },
    { key: "bound", title: "bound", hint: "What it waits for most, by the compiler's table of machines", width: 74, isText: true, value: ({ numbers }) => numbers.bound, text: ({ numbers }) => numbers.bound },
    { key: "estimate", title: "estimate", hint: "By the compiler, at these sizes", width: 84, value: ({ numbers }) => numbers.estimate, text: ({ numbers }) => some(numbers.estimate, time) },
    isMeasured && { key: "measured", title: "measured", hint: "In the run that was profiled, at its sizes alone", width: 76, value: ({ numbers }) => numbers.measured ?? 0, text: ({ numbers }) => some(numbers.measured ?? 0, time) },
    { key: "share", title: "share", hint: "Of the time of all items", width: 92, value: (line) => line.share, text: (line) => (line.item.isPrepared && state.bound.value ? "once" : percent(line.share)) },
    { key: "attained", title: "of peak", hint: "Least time by the machine's rates over the time it takes", width: 64, value: ({ numbers }) => numbers.attained, text: ({ numbers }) => some(numbers.attained, percent) },
    { key: "vector", title: isGpu ? "regs" : "vector", hint: isGpu ? "Registers of a thread, where it was assembled" : "Elements of its widest vectors", width: 58, value: (line, s) => (isGpu ? registers(line, s) : line.item.vector), text: (line, s) => (isGpu ? some(registers(line, s), String) : line.item.vector > 1 ? `×${line.item.vector}` : "") },
    isGpu && { key: "spills", title: "spills", hint: "Bytes of registers kept in memory, where it was assembled", width: 58, value: (line, s) => resources(line, s)?.spill_bytes ?? 0, text: (line, s) => String(resources(line, s)?.spill_bytes ?? "") },
  ];
  const own = all.filter((each): each is Column => each !== false);
  if (state.other === undefined) return own;
  const at = own.findIndex((column) => column.key === "share");
  return [...own.slice(0, at), ...COMPARED, ...own.slice(at)];
}

export function Kernels({ state }: { state: State }) {
  const { report } = state;
  const sort = useSignal<{ readonly key: string; readonly isDown: boolean }>({ key: "id", isDown: false });
  const all = columns(state);
  const lines = useComputed(() => {
    const numbers = state.numbers.value;
    const theirs = state.otherNumbers.value;
    const total = numbers.measuredTotal || numbers.total;
    const values = state.values.value;
    const made = report.order.map((id, at): Line => {
      const item = report.items[id] as ItemView;
      const own = numbers.items[id] as ItemNumbers;
      const their = theirs?.items[state.matches.get(id) ?? -1];
      return { item, numbers: own, launch: launchOf(report, item, values), their, share: total && !(state.bound.value && item.isPrepared) ? (own.measured ?? own.estimate) / total : 0, live: numbers.live[at] };
    });
    const by = all.find((column) => column.key === sort.value.key);
    if (by === undefined || (by.key === "id" && !sort.value.isDown)) return made;
    const order = (a: Line, b: Line): number => {
      const [x, y] = [by.value(a, state), by.value(b, state)];
      return typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y)) : x - y;
    };
    return made.sort((a, b) => (sort.value.isDown ? order(b, a) : order(a, b)));
  });
  const { item } = state.selection.value;
  const selected = lines.value.findIndex((line) => line.item.id === item);
  const template = all.map((column) => (column.key === "nodes" ? `minmax(${column.width}px, 1fr)` : `${column.width}px`)).join(" ");
  const least = all.reduce((sum, column) => sum + column.width, 0);
  const most = useComputed(() => Math.max(...lines.value.map((line) => line.share), 1e-9));
  const onKey = (event: KeyboardEvent): void => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -1e9, End: 1e9 };
    const step = steps[event.key];
    if (step === undefined) return;
    const next = lines.value[Math.max(0, Math.min(lines.value.length - 1, (selected < 0 ? -1 : selected) + step))];
    if (next) state.select(next.item.id);
    event.preventDefault();
  };
  const head = (
    <div class="kernel-row head" role="row" style={{ gridTemplateColumns: template, minWidth: `${least}px` }}>
      {all.map((column) => {
        const isBy = sort.value.key === column.key;
        return (
          <span key={column.key} role="columnheader" aria-sort={isBy ? (sort.value.isDown ? "descending" : "ascending") : "none"} class={column.isText ? "text" : ""}>
            <button type="button" title={column.hint} onClick={() => (sort.value = { key: column.key, isDown: isBy ? !sort.value.isDown : !column.isText && column.key !== "id" })}>
              {column.title}
              {isBy ? (sort.value.isDown ? " ↓" : " ↑") : ""}
            </button>
          </span>
        );
      })}
    </div>
  );
  return (
    <section class="panel kernels" aria-label="Kernels">
      <Rows
        count={lines.value.length}
        height={23}
        label="Items of the schedule"
        role="grid"
        shown={selected}
        active={selected < 0 ? undefined : `kernel-${selected}`}
        head={head}
        onKey={onKey}
        row={(index) => {
          const line = lines.value[index];
          if (line === undefined) return null;
          const isSelected = line.item.id === item;
          return (
            <div id={`kernel-${index}`} class="kernel-row" role="row" aria-selected={isSelected} {...figures(line, state)} style={{ gridTemplateColumns: template, minWidth: `${least}px` }} onClick={() => state.select(line.item.id)}>
              {all.map((column) => (
                <span key={column.key} role="gridcell" class={`${column.isText ? "text" : ""} c-${column.key}${column.key === "bound" ? ` ${line.numbers.bound}` : ""}`} title={column.isText ? column.text(line, state) : undefined}>
                  {column.key === "share" && <i class="bar" style={{ width: `${(100 * line.share) / most.value}%` }} />}
                  {column.text(line, state)}
                </span>
              ))}
            </div>
          );
        }}
      />
    </section>
  );
}
