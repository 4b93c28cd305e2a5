// The time line on a canvas: items, what they wait for, memory over time, and when each storage is in use.

import { bytes, time } from "./format";
import type { Numbers, Storage } from "./numbers";
import type { Place, Places } from "./places";
import type { Report } from "./report";

export interface View {
  /** Nanoseconds at the left edge, and in a pixel. */
  readonly from: number;
  readonly scale: number;
}

/** One program over time, and its item that is selected; -1 for none. */
export interface Side {
  readonly report: Report;
  readonly numbers: Numbers;
  readonly places: Places;
  readonly selected: number;
}

export interface Scene extends Side {
  /** The program that this one is compared with, on the same axis. */
  readonly other: Side | undefined;
  readonly inOrder: boolean;
  readonly view: View;
  readonly width: number;
  readonly height: number;
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly item?: number;
  /** Whether the item is one of the other program. */
  readonly isOther?: boolean;
  readonly storage?: Storage;
  readonly live?: number;
}

const AXIS = 20;
const GAP = 8;
const LEFT = 4;

type Colours = Record<string, string>;

function colours(element: Element): Colours {
  const style = getComputedStyle(element);
  const names = ["ink", "faint", "line", "panel", "accent", "critical", "compute", "memory", "latency", "launch", "temp", "output", "scratch", "input", "constant", "select"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** Draws all of it, and gives what can be pointed at, topmost last. */
export function draw(canvas: HTMLCanvasElement, scene: Scene): Box[] {
  const ratio = window.devicePixelRatio || 1;
  const { width, height } = scene;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  if (pen === null) return [];
  pen.scale(ratio, ratio);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const ink = colours(canvas);
  const boxes: Box[] = [];
  const bars = barsBox(scene);
  drawAxis(pen, scene, ink);
  drawBars(pen, scene, ink, bars, boxes);
  const { other } = scene;
  const theirs = { ...bars, y: bars.y + bars.height + GAP };
  if (other !== undefined) {
    const their: Box[] = [];
    drawBars(pen, { ...scene, ...other }, ink, theirs, their);
    boxes.push(...their.map((box) => ({ ...box, isOther: true })));
    drawNames(pen, ink, bars, theirs);
  }
  if (scene.inOrder) {
    const top = (other === undefined ? bars.y : theirs.y) + bars.height + GAP;
    const rest = height - top;
    const chart = { x: LEFT, y: top, width: width - 2 * LEFT, height: Math.max(40, Math.min(130, rest * 0.42)) };
    drawMemory(pen, scene, ink, chart, boxes);
    drawStorages(pen, scene, ink, { ...chart, y: chart.y + chart.height + GAP, height: height - chart.y - chart.height - GAP }, boxes);
  }
  drawDependencies(pen, scene, ink, bars);
  return boxes;
}

function barsBox({ inOrder, height, width, other }: Scene): Box {
  const rest = height - AXIS - 8;
  const whole = inOrder ? Math.min(64, height * 0.2) : rest;
  return { x: LEFT, y: AXIS + 4, width: width - 2 * LEFT, height: other === undefined ? whole : inOrder ? whole * 0.8 : (rest - GAP) / 2 };
}

function drawNames(pen: CanvasRenderingContext2D, ink: Colours, mine: Box, theirs: Box): void {
  pen.fillStyle = ink["faint"] ?? "";
  pen.textAlign = "right";
  for (const [name, box] of [["this", mine], ["other", theirs]] as const) pen.fillText(name, box.x + box.width, box.y + box.height - 5);
}

function xOf({ view }: Scene, at: number): number {
  return LEFT + (at - view.from) / view.scale;
}

function drawAxis(pen: CanvasRenderingContext2D, scene: Scene, ink: Colours): void {
  const { view, width } = scene;
  const wanted = view.scale * 90;
  const power = 10 ** Math.floor(Math.log10(wanted));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= wanted) ?? wanted;
  pen.strokeStyle = ink["line"] ?? "";
  pen.fillStyle = ink["faint"] ?? "";
  pen.textAlign = "left";
  pen.beginPath();
  for (let at = Math.ceil(view.from / step) * step; xOf(scene, at) < width; at += step) {
    const x = Math.round(xOf(scene, at)) + 0.5;
    pen.moveTo(x, AXIS - 6);
    pen.lineTo(x, scene.height);
    pen.fillText(time(at), x + 3, AXIS / 2);
  }
  pen.stroke();
}

function drawBars(pen: CanvasRenderingContext2D, scene: Scene, ink: Colours, area: Box, boxes: Box[]): void {
  const { places, numbers, report, selected, inOrder, width } = scene;
  const lane = inOrder ? area.height * 0.55 : Math.min(26, area.height / places.lanes);
  const drawn = new Map<number, number>();
  for (const place of places.all) {
    const x = xOf(scene, place.start);
    const right = xOf(scene, place.start + place.length);
    if (right < 0 || x > width) continue;
    // Of items that are narrower than half a pixel, some are drawn; selected and critical ones always are.
    const isChosen = place.item === selected;
    if (right - x < 0.4 && !isChosen && (drawn.get(place.lane) ?? -1) > x - 0.4) continue;
    drawn.set(place.lane, right);
    const box = { x, y: area.y + place.lane * lane, width: Math.max(0.8, right - x), height: Math.max(2, lane - 3), item: place.item };
    const numbersOf = numbers.items[place.item];
    pen.globalAlpha = report.items[place.item]?.isPrepared ? 0.45 : 1;
    pen.fillStyle = ink[numbersOf?.bound || "launch"] ?? "";
    pen.fillRect(box.x, box.y, Math.max(0.8, box.width - (box.width > 3 ? 1 : 0)), box.height);
    pen.globalAlpha = 1;
    if (numbers.critical.has(place.item)) {
      pen.fillStyle = ink["critical"] ?? "";
      pen.fillRect(box.x, box.y + box.height - 3, Math.max(0.8, box.width - (box.width > 3 ? 1 : 0)), 3);
    }
    if (isChosen) {
      pen.strokeStyle = ink["select"] ?? "";
      pen.lineWidth = 2;
      pen.strokeRect(box.x - 1, box.y - 1, box.width + 2, box.height + 2);
      pen.lineWidth = 1;
    }
    if (box.width > 46 && box.height > 11) {
      pen.fillStyle = ink["panel"] ?? "";
      pen.textAlign = "left";
      const item = report.items[place.item];
      pen.save();
      pen.beginPath();
      pen.rect(box.x, box.y, box.width - 3, box.height);
      pen.clip();
      pen.fillText(box.width > 140 ? `${item?.name} · ${item?.kinds}` : `${item?.name}`, Math.max(4, box.x) + 4, box.y + (box.height - 3) / 2 + 1);
      pen.restore();
    }
    boxes.push(box);
  }
}

function drawDependencies(pen: CanvasRenderingContext2D, scene: Scene, ink: Colours, area: Box): void {
  const { places, report, selected, inOrder } = scene;
  const own = places.byItem.get(selected);
  const item = report.items[selected];
  if (own === undefined || item === undefined) return;
  const lane = inOrder ? area.height * 0.55 : Math.min(26, area.height / places.lanes);
  const middle = (place: Place): number => (inOrder ? area.y + lane - 3 : area.y + (place.lane + 0.5) * lane);
  const arc = (from: Place, to: Place): void => {
    const [x1, x2] = [xOf(scene, from.start + from.length), xOf(scene, to.start)];
    const [y1, y2] = [middle(from), middle(to)];
    const deep = inOrder ? Math.min(area.height * 0.55, 10 + Math.abs(x2 - x1) / 3) : 0;
    pen.beginPath();
    pen.moveTo(x1, y1);
    if (inOrder) pen.bezierCurveTo(x1, y1 + deep, x2, y2 + deep, x2, y2);
    else pen.bezierCurveTo((x1 + x2) / 2 + 8, y1, (x1 + x2) / 2 - 8, y2, x2, y2);
    pen.stroke();
    pen.beginPath();
    pen.arc(x2, y2, 2.5, 0, 7);
    pen.fill();
  };
  pen.lineWidth = 1.5;
  pen.strokeStyle = pen.fillStyle = ink["select"] ?? "";
  for (const before of item.item.depends_on) {
    const place = places.byItem.get(before);
    if (place) arc(place, own);
  }
  pen.strokeStyle = pen.fillStyle = ink["accent"] ?? "";
  for (const after of item.item.dependents) {
    const place = places.byItem.get(after);
    if (place) arc(own, place);
  }
  pen.lineWidth = 1;
}

/** The outline of live memory over time, and what it comes to in each item. */
function traceMemory(pen: CanvasRenderingContext2D, scene: Scene, side: Side, area: Box, top: number): Box[] {
  const { places, numbers, report } = side;
  const position = new Map(report.order.map((id, at) => [id, at]));
  const bottom = area.y + area.height;
  const boxes: Box[] = [];
  pen.beginPath();
  pen.moveTo(xOf(scene, 0), bottom);
  for (const place of places.all) {
    const live = numbers.live[position.get(place.item) ?? 0] ?? 0;
    const [x, right] = [xOf(scene, place.start), xOf(scene, place.start + place.length)];
    const y = bottom - (live / top) * (area.height - 14);
    pen.lineTo(x, y);
    pen.lineTo(right, y);
    if (right >= 0 && x <= scene.width && right - x > 0.3) boxes.push({ x, y: area.y, width: right - x, height: area.height, item: place.item, live });
  }
  pen.lineTo(xOf(scene, places.end), bottom);
  pen.closePath();
  return boxes;
}

function drawMemory(pen: CanvasRenderingContext2D, scene: Scene, ink: Colours, area: Box, boxes: Box[]): void {
  const { numbers, other } = scene;
  const top = Math.max(1, numbers.peak, other?.numbers.peak ?? 0);
  boxes.push(...traceMemory(pen, scene, scene, area, top));
  pen.fillStyle = ink["temp"] ?? "";
  pen.globalAlpha = 0.3;
  pen.fill();
  pen.globalAlpha = 1;
  pen.strokeStyle = ink["temp"] ?? "";
  pen.stroke();
  if (other !== undefined) {
    traceMemory(pen, scene, other, area, top);
    pen.setLineDash([4, 3]);
    pen.strokeStyle = ink["faint"] ?? "";
    pen.stroke();
    pen.setLineDash([]);
  }
  pen.fillStyle = ink["faint"] ?? "";
  pen.textAlign = "right";
  const their = other === undefined ? "" : `; of the other, dashed, ${bytes(other.numbers.peak)}`;
  pen.fillText(`live memory, at most ${bytes(numbers.peak)}${their}`, area.x + area.width, area.y + 6);
}

function drawStorages(pen: CanvasRenderingContext2D, scene: Scene, ink: Colours, area: Box, boxes: Box[]): void {
  const { numbers, places, report, selected, width } = scene;
  if (area.height < 12) return;
  const row = 7;
  const rows = Math.floor(area.height / row);
  const used = new Set(report.program.kernels[report.items[selected]?.kernel?.kernel_id ?? -1]?.buffers ?? []);
  const shown = numbers.storages
    .filter((each) => each.bytes > 0 && (each.role === "temp" || each.role === "output" || each.role === "scratch"))
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, rows)
    .sort((a, b) => a.first - b.first || a.last - b.last);
  shown.forEach((storage, index) => {
    const [first, last] = [places.byItem.get(storage.first), places.byItem.get(storage.last)];
    const x = first ? xOf(scene, first.start) : xOf(scene, 0);
    const right = last ? xOf(scene, last.start + last.length) : xOf(scene, places.end);
    if (right < 0 || x > width) return;
    const box = { x, y: area.y + index * row, width: Math.max(1, right - x), height: row - 2, storage };
    const isUsed = storage.buffers.some((buffer) => used.has(buffer.id));
    pen.fillStyle = ink[storage.role] ?? "";
    pen.globalAlpha = isUsed || selected < 0 ? 1 : 0.4;
    pen.fillRect(box.x, box.y, box.width, box.height);
    pen.globalAlpha = 1;
    if (isUsed) {
      pen.strokeStyle = ink["select"] ?? "";
      pen.strokeRect(box.x, box.y - 0.5, box.width, box.height + 1);
    }
    boxes.push(box);
  });
}
