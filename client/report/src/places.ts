// Where each item is on the time line: one after the other as they run, or as soon as what they need is there.

import type { Numbers } from "./numbers";
import type { Report } from "./report";

export interface Place {
  readonly item: number;
  readonly start: number;
  readonly length: number;
  readonly lane: number;
}

export interface Places {
  readonly all: readonly Place[];
  readonly byItem: ReadonlyMap<number, Place>;
  readonly lanes: number;
  readonly end: number;
}

export type Order = "in order" | "by dependencies";

const MOST_LANES = 64;

export function placesOf(report: Report, numbers: Numbers, order: Order, withoutPrepared: boolean): Places {
  const length = (id: number): number => {
    const { measured, estimate } = numbers.items[id] ?? { measured: undefined, estimate: 0 };
    const time = measured ?? estimate;
    return Number.isFinite(time) ? Math.max(1, time) : 1;
  };
  const all: Place[] = [];
  const ends = new Map<number, number>();
  const lanes: number[] = [];
  let now = 0;
  for (const id of report.order) {
    const item = report.items[id];
    if (item === undefined || (withoutPrepared && item.isPrepared)) continue;
    const start = order === "in order" ? now : Math.max(0, ...item.item.depends_on.map((before) => ends.get(before) ?? 0));
    const end = start + length(id);
    let lane = 0;
    if (order !== "in order") {
      lane = lanes.findIndex((until) => until <= start);
      if (lane < 0) lane = lanes.length < MOST_LANES ? lanes.length : MOST_LANES - 1;
    }
    lanes[lane] = Math.max(lanes[lane] ?? 0, end);
    ends.set(id, end);
    all.push({ item: id, start, length: end - start, lane });
    now = end;
  }
  return {
    all,
    byItem: new Map(all.map((place) => [place.item, place])),
    lanes: Math.max(1, lanes.length),
    end: Math.max(1, ...lanes),
  };
}
