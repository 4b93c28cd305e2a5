// The schedule over time, to be moved and enlarged.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { bytes, count, percent, time } from "./format";
import { type Order, placesOf } from "./places";
import type { State } from "./state";
import { type Box, draw, type View } from "./timeline-drawing";

interface Pointed {
  readonly x: number;
  readonly y: number;
  readonly box: Box;
}

export function Timeline({ state }: { state: State }) {
  const { report } = state;
  const canvas = useRef<HTMLCanvasElement>(null);
  const order = useSignal<Order>("in order");
  const zoom = useSignal<View | null>(null);
  const size = useSignal<readonly [number, number]>([0, 0]);
  const pointed = useSignal<Pointed | null>(null);
  const dark = useSignal(0);
  const boxes = useRef<Box[]>([]);
  const drag = useRef<{ x: number; from: number; moved: boolean } | null>(null);
  const places = useComputed(() => placesOf(report, state.numbers.value, order.value, state.bound.value));
  const { other } = state;
  const theirs = useComputed(() => {
    const numbers = state.otherNumbers.value;
    return other && numbers && { report: other, numbers, places: placesOf(other, numbers, order.value, state.bound.value) };
  });
  const end = (): number => Math.max(places.value.end, theirs.value?.places.end ?? 0);
  const whole = (): View => ({ from: 0, scale: end() / Math.max(1, size.value[0] - 8) });
  const view = (): View => zoom.value ?? whole();

  useEffect(() => {
    const element = canvas.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => (size.value = [element.clientWidth, element.clientHeight]));
    watch.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const changed = (): void => void dark.value++;
    scheme.addEventListener("change", changed);
    const wheel = (event: WheelEvent): void => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX);
      else enlarge(1.0015 ** event.deltaY, event.offsetX);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
      watch.disconnect();
      scheme.removeEventListener("change", changed);
      element.removeEventListener("wheel", wheel);
    };
  }, []);

  const [width, height] = size.value;
  const shown = { places: places.value, view: view(), scheme: dark.value, item: state.selection.value.item, their: state.selection.value.theirs };
  useEffect(() => {
    if (canvas.current === null || width < 20 || height < 20) return;
    boxes.current = draw(canvas.current, {
      report,
      numbers: state.numbers.value,
      places: shown.places,
      selected: shown.item,
      other: theirs.value && { ...theirs.value, selected: shown.their },
      inOrder: order.value === "in order",
      view: shown.view,
      width,
      height,
    });
  }, [width, height, order.value, state.numbers.value, theirs.value, ...Object.values(shown)]);

  const set = (from: number, scale: number): void => {
    const last = end();
    const most = whole().scale;
    const kept = Math.min(most, Math.max(last / 1e9, scale));
    zoom.value = kept >= most ? null : { from: Math.max(0, Math.min(last - kept * size.value[0], from)), scale: kept };
  };
  const enlarge = (factor: number, at = size.value[0] / 2): void => {
    const { from, scale } = view();
    set(from + at * scale * (1 - factor), scale * factor);
  };
  const pan = (pixels: number): void => set(view().from + pixels * view().scale, view().scale);
  const boxAt = (x: number, y: number): Box | undefined =>
    boxes.current.findLast((box) => x >= box.x - 1 && x <= box.x + box.width + 1 && y >= box.y && y <= box.y + box.height);

  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "ArrowRight") state.step(1);
    else if (event.key === "ArrowLeft") state.step(-1);
    else if (event.key === "+" || event.key === "=") enlarge(0.7);
    else if (event.key === "-") enlarge(1 / 0.7);
    else if (event.key === "0") zoom.value = null;
    else return;
    event.preventDefault();
  };
  const numbers = state.numbers.value;
  return (
    <section class="panel timeline" aria-label="Schedule">
      <header>
        <h2>Schedule</h2>
        <div class="choice" role="radiogroup" aria-label="How items are placed">
          {(["in order", "by dependencies"] as const).map((each) => (
            <button key={each} type="button" role="radio" aria-checked={order.value === each} onClick={() => ((order.value = each), (zoom.value = null))}>
              {each}
            </button>
          ))}
        </div>
        {report.program.prepare.length > 0 && (
          <label class="check" title="Items that follow from parameters alone run once, when these are bound">
            <input type="checkbox" checked={state.bound.value} onChange={(event) => (state.bound.value = event.currentTarget.checked)} />
            without {report.program.prepare.length} prepared
          </label>
        )}
        <span class="legend">
          <i class="compute" />compute <i class="memory" />memory <i class="latency" />latency <i class="launch" />launch <i class="critical" />critical path
        </span>
        <span class="tools">
          <button type="button" aria-label="Smaller" onClick={() => enlarge(1 / 0.7)}>−</button>
          <button type="button" aria-label="Larger" onClick={() => enlarge(0.7)}>+</button>
          <button type="button" onClick={() => (zoom.value = null)}>all</button>
        </span>
      </header>
      <div class="canvas">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="img"
          aria-label={`${report.items.length} items, ${time(numbers.total)}, critical path ${time(numbers.span)}, at most ${bytes(numbers.peak)} live${theirs.value ? `; the other program ${time(theirs.value.numbers.total)}, at most ${bytes(theirs.value.numbers.peak)}` : ""}. Arrow keys select an item, + and − enlarge.`}
          onKeyDown={onKey}
          onPointerDown={(event) => {
            drag.current = { x: event.offsetX, from: view().from, moved: false };
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerMove={(event) => {
            const held = drag.current;
            if (held !== null) {
              const by = event.offsetX - held.x;
              if (Math.abs(by) > 3) held.moved = true;
              if (held.moved && zoom.value !== null) set(held.from - by * view().scale, view().scale);
              return;
            }
            const box = boxAt(event.offsetX, event.offsetY);
            pointed.value = box ? { x: event.offsetX, y: event.offsetY, box } : null;
          }}
          onPointerUp={(event) => {
            const held = drag.current;
            drag.current = null;
            if (held === null || held.moved) return;
            const box = boxAt(event.offsetX, event.offsetY);
            if (box?.item === undefined) return;
            if (box.isOther) state.selectTheirs(box.item);
            else state.select(box.item);
          }}
          onPointerLeave={() => (pointed.value = null)}
        />
        {pointed.value && <Tip state={state} pointed={pointed.value} width={size.value[0]} />}
      </div>
    </section>
  );
}

function Tip({ state, pointed, width }: { state: State; pointed: Pointed; width: number }) {
  const { x, y, box } = pointed;
  const style = { left: `${Math.max(0, Math.min(x + 12, width - 290))}px`, top: `${y + 14}px` };
  if (box.storage !== undefined) {
    const { storage } = box;
    return (
      <div class="tip" style={style}>
        <b>{storage.key}</b> {storage.role}, {bytes(storage.bytes)}
        <br />
        items {storage.first}–{storage.last}, buffers {storage.buffers.slice(0, 8).map((each) => each.id).join(", ")}
        {storage.buffers.length > 8 && " …"}
      </div>
    );
  }
  const all = box.isOther ? state.otherNumbers.value : state.numbers.value;
  const item = (box.isOther ? state.other : state.report)?.items[box.item ?? -1];
  const numbers = all?.items[box.item ?? -1];
  if (all === undefined || item === undefined || numbers === undefined) return null;
  return (
    <div class="tip" style={style}>
      <b>{item.name}</b> {box.isOther && "of the other program: "}{item.kinds}
      <br />
      {box.live !== undefined ? `${bytes(box.live)} live · ` : ""}
      {numbers.measured !== undefined ? `measured ${time(numbers.measured)}, ` : ""}estimated {time(numbers.estimate)} ({percent(numbers.estimate / all.total)})
      <br />
      {count(numbers.flops)} operations, {bytes(numbers.read)} read, {bytes(numbers.written)} written
    </div>
  );
}
