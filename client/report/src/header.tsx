// What program this is, what it comes to, and a slider for every symbol.

import { bytes, change, count, time } from "./format";
import type { SymVar } from "./records";
import type { State } from "./state";

/** Steps of a slider: ranges that are larger are moved over by proportion. */
const STEPS = 1000;

function positionOf({ min_val, max_val }: SymVar, value: bigint): number {
  const [least, most] = [Number(min_val), Number(max_val)];
  if (most - least <= STEPS) return Number(value) - least;
  return Math.round((Math.log(Number(value) - least + 1) / Math.log(most - least + 1)) * STEPS);
}

function valueAt({ min_val, max_val }: SymVar, position: number): bigint {
  const [least, most] = [BigInt(min_val), BigInt(max_val)];
  if (most - least <= BigInt(STEPS)) return least + BigInt(position);
  if (position >= STEPS) return most;
  const value = least + BigInt(Math.round(Math.exp((position / STEPS) * Math.log(Number(most - least) + 1)) - 1));
  return value > most ? most : value;
}

function Slider({ state, symbol }: { state: State; symbol: SymVar }) {
  const value = state.values.value.get(symbol.name) ?? 0n;
  const [least, most] = [BigInt(symbol.min_val), BigInt(symbol.max_val)];
  const span = most - least;
  return (
    <label class="slider" title={`${symbol.name} from ${least} to ${most}`}>
      <span>{symbol.name}</span>
      <input
        type="range"
        min={0}
        max={span <= BigInt(STEPS) ? Number(span) : STEPS}
        value={positionOf(symbol, value)}
        aria-label={`Size ${symbol.name}`}
        aria-valuetext={String(value)}
        onInput={(event) => state.set(symbol.name, valueAt(symbol, Number(event.currentTarget.value)))}
      />
      <input
        type="text"
        inputMode="numeric"
        size={Math.max(3, String(most).length)}
        value={String(value)}
        data-symbol={symbol.name}
        aria-label={`Value of ${symbol.name}`}
        onChange={(event) => {
          const text = event.currentTarget.value.trim();
          const wanted = /^-?\d{1,20}$/.test(text) ? BigInt(text) : value;
          const kept = wanted < least ? least : wanted > most ? most : wanted;
          event.currentTarget.value = String(kept);
          state.set(symbol.name, kept);
        }}
      />
    </label>
  );
}

export function Header({ state }: { state: State }) {
  const { report, other } = state;
  const { program } = report;
  const numbers = state.numbers.value;
  const theirs = state.otherNumbers.value;
  const isMeasured = report.isMeasuredAt(state.values.value);
  const sizes = [...report.measuredAt].map(([name, value]) => `${name} = ${value}`).join(", ");
  const against = (own: number, their: number | undefined): string => (their === undefined ? "" : ` (${change(their, own)})`);
  const facts: [string, string, string][] = [
    [isMeasured ? "measured" : "estimate", time(isMeasured ? numbers.measuredTotal : numbers.total), against(numbers.total, theirs?.total)],
    ["critical path", time(numbers.span), against(numbers.span, theirs?.span)],
    ["operations", count(numbers.flops), against(numbers.flops, theirs?.flops)],
    ["moved", bytes(numbers.moved), against(numbers.moved, theirs?.moved)],
    ["live memory", bytes(numbers.peak), against(numbers.peak, theirs?.peak)],
    ["kernels", String(report.items.length), against(report.items.length, other?.items.length)],
  ];
  return (
    <header class="top">
      <div class="who">
        <h1>{program.name || report.graph?.name || "program"}</h1>
        <p>
          <span class="target">{program.target.kind}:{program.target.cpu ?? program.target.arch}</span>{" "}
          {program.digest && <code title={program.digest}>{program.digest.slice(0, 12)}</code>}
          {other && (
            <>
              {" "}against <span class="target">{other.program.target.kind}:{other.program.target.cpu ?? other.program.target.arch}</span> <code>{other.program.digest.slice(0, 12)}</code>
            </>
          )}
        </p>
      </div>
      <dl class="totals" data-peak={numbers.peak} data-span={numbers.span}>
        {facts.map(([name, value, changed]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}<small>{changed}</small></dd>
          </div>
        ))}
      </dl>
      {program.symbols.length > 0 && (
        <div class="sliders" role="group" aria-label="Sizes">
          {report.measured.size > 0 && !isMeasured && (
            <button type="button" onClick={() => (state.values.value = new Map(report.measuredAt))}>
              as measured: {sizes}
            </button>
          )}
          {program.symbols.map((symbol) => (
            <Slider key={symbol.name} state={state} symbol={symbol} />
          ))}
        </div>
      )}
    </header>
  );
}
