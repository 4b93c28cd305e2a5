// What each kernel attains beside what the machine can: operations for each byte, and operations for each nanosecond.

import { count, time } from "./format";
import type { Machine } from "./machine";
import type { ItemNumbers } from "./numbers";
import type { State } from "./state";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [420, 250, 46, 30, 20] as const;
/** Of work that is long enough for a machine's full rates. */
const MUCH = 1e12;

interface Point {
  readonly id: number;
  readonly intensity: number;
  readonly rate: number;
  readonly numbers: ItemNumbers;
}

function pointsOf(state: State): Point[] {
  const points: Point[] = [];
  state.numbers.value.items.forEach((numbers, id) => {
    const [intensity, rate] = [numbers.flops / (numbers.read + numbers.written), numbers.flops / (numbers.measured ?? numbers.estimate)];
    if (intensity > 0 && rate > 0 && Number.isFinite(intensity) && Number.isFinite(rate)) points.push({ id, intensity, rate, numbers });
  });
  return points;
}

function powers(least: number, most: number): number[] {
  return Array.from({ length: most - least + 1 }, (_, at) => 10 ** (least + at));
}

export function Roofline({ state }: { state: State }) {
  const { machine } = state.evaluator;
  const points = pointsOf(state);
  if (machine === undefined || points.length === 0) return <p class="none">No kernel computes and moves anything that a roof could be drawn for.</p>;
  return <Roof state={state} machine={machine} points={points} />;
}

function Roof({ state, machine, points }: { state: State; machine: Machine; points: readonly Point[] }) {
  const [computes, moves] = [MUCH / machine.computes(MUCH), MUCH / machine.moves(MUCH)];
  const ridge = computes / moves;
  const [intensities, rates] = [points.map((each) => each.intensity), points.map((each) => each.rate)];
  const [left, right] = [Math.floor(Math.log10(Math.min(ridge, ...intensities) / 2)), Math.ceil(Math.log10(Math.max(ridge, ...intensities) * 2))];
  const [low, high] = [Math.floor(Math.log10(Math.min(computes, ...rates) / 2)), Math.ceil(Math.log10(Math.max(computes, ...rates) * 1.5))];
  const x = (value: number): number => LEFT + ((Math.log10(value) - left) / (right - left)) * (WIDTH - LEFT - 10);
  const y = (value: number): number => HEIGHT - BOTTOM - ((Math.log10(value) - low) / (high - low)) * (HEIGHT - BOTTOM - TOP);
  const foot = Math.max(10 ** left, 10 ** low / moves);
  const { item } = state.selection.value;
  return (
    <>
      <svg class="roofline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label="Roofline">
        {powers(left, right).map((each) => [<line key={`x${each}`} class="grid" x1={x(each)} x2={x(each)} y1={TOP} y2={HEIGHT - BOTTOM} />, <text key={`xt${each}`} x={x(each)} y={HEIGHT - BOTTOM + 12} text-anchor="middle">{each}</text>])}
        {powers(low, high).map((each) => [<line key={`y${each}`} class="grid" x1={LEFT} x2={WIDTH - 10} y1={y(each)} y2={y(each)} />, <text key={`yt${each}`} x={LEFT - 4} y={y(each) + 3} text-anchor="end">{each}</text>])}
        <path class="roof" d={`M${x(foot)},${y(foot * moves)} L${x(ridge)},${y(computes)} L${x(10 ** right)},${y(computes)}`} />
        {points.map(({ id, intensity, rate, numbers }) => (
          <circle key={id} class={`${numbers.bound || "launch"}${id === item ? " selected" : ""}`} cx={x(intensity)} cy={y(rate)} r={id === item ? 5 : 3.5} data-item={id} onClick={() => state.select(id)}>
            <title>{`${state.report.items[id]?.name}: ${intensity.toPrecision(3)} operations a byte, ${count(rate)} a nanosecond, ${time(numbers.measured ?? numbers.estimate)}`}</title>
          </circle>
        ))}
        <text x={WIDTH - 10} y={HEIGHT - 4} text-anchor="end">operations for each byte</text>
        <text x={2} y={9}>operations for each nanosecond</text>
      </svg>
      <p class="note">
        The roof is that of {machine.label}: {count(computes)} operations and {count(moves)} bytes a nanosecond beyond its caches. Kernels that stay in a cache may be above its slope. Times are measured where they were at these sizes, else estimated.
      </p>
    </>
  );
}
