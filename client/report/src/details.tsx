// All that is known of the selected kernel, and of the program as a whole.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { textOf, type Wire } from "./expression";
import { bytes, percent, time, typeText } from "./format";
import { approximate, launchOf } from "./numbers";
import type { ItemView } from "./report";
import { remarksOf } from "./remarks";
import { Roofline } from "./roofline";
import type { State } from "./state";
import type { CodeUse } from "./texts";

const APART = new Set(["while", "custom"]);

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

type Tab = "kernel" | "node" | "program" | "roofline" | "compile";
/** The stage whose text is the code of a CPU. */
const CODE = "codegen";

function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl>
      {facts.filter(([, value]) => value !== "" && value !== false && value !== undefined && value !== null).map(([name, value]) => [<dt key={`${name}-t`}>{name}</dt>, <dd key={`${name}-d`}>{value}</dd>])}
    </dl>
  );
}

export function Details({ state }: { state: State }) {
  const wanted = useSignal<Tab | null>(null);
  const { item, node } = state.selection.value;
  const tab = wanted.value ?? (item < 0 && node < 0 ? "program" : "kernel");
  const tabs: Tab[] = ["kernel", "node", "program", "roofline", "compile"];
  return (
    <section class="panel details" aria-label="Details">
      <header>
        <div class="choice" role="tablist" aria-label="Details of">
          {tabs.map((each) => (
            <button key={each} id={`tab-${each}`} type="button" role="tab" aria-selected={tab === each} aria-controls="details" onClick={() => (wanted.value = each)}>
              {each}
            </button>
          ))}
        </div>
      </header>
      <div id="details" role="tabpanel" aria-labelledby={`tab-${tab}`} class="scroll" tabIndex={0}>
        {tab === "kernel" && (state.selectedItem ? <KernelFacts state={state} item={state.selectedItem} /> : <p class="none">Select a kernel.</p>)}
        {tab === "node" && <NodeFacts state={state} />}
        {tab === "program" && <ProgramFacts state={state} />}
        {tab === "roofline" && <Roofline state={state} />}
        {tab === "compile" && <CompileFacts state={state} />}
      </div>
    </section>
  );
}

function KernelFacts({ state, item }: { state: State; item: ItemView }) {
  const { report } = state;
  const { kernel } = item;
  const spec = report.program.kernels[kernel?.kernel_id ?? -1];
  const numbers = state.numbers.value.items[item.id];
  const launch = launchOf(report, item, state.values.value);
  const analysis = report.program.schedule.analysis[item.id];
  const size = (wire: Wire): string => textOf(wire);
  const use = useSignal<CodeUse | null>(null);
  useEffect(() => {
    let isCurrent = true;
    use.value = null;
    if (report.program.target.kind === "cpu" && report.stages.includes(CODE)) void state.text(report, CODE).then((text) => isCurrent && (use.value = text.useOf(item)));
    return () => {
      isCurrent = false;
    };
  }, [item.id]);
  return (
    <>
      <h3>
        {item.name} <small>{item.kinds}</small>
      </h3>
      {remarksOf(state, item).map((remark) => (
        <p class="remark" key={`${remark.about}${remark.text}`}>
          <b>{remark.about}</b>{" "}
          {remark.item === undefined ? remark.text : <button type="button" class="link" onClick={() => state.select(remark.item ?? -1)}>{remark.text}</button>}
        </p>
      ))}
      <Facts
        facts={[
          ["grid", spec && <code>{spec.global_size.map(size).join(" × ")}</code>],
          ["", launch?.error ? launch.error : spec?.global_size.some((each) => typeof each === "object" || typeof each === "string") && launch && `= ${launch.grid.join(" × ")}`],
          ["group", spec?.local_size && <code>{spec.local_size.map(size).join(" × ")}</code>],
          ["operations", analysis && <code>{size(analysis.flops)}</code>],
          ["read", analysis && <code>{size(analysis.bytes_read)}</code>],
          ["written", analysis && <code>{size(analysis.bytes_written)}</code>],
          ["estimate", numbers && `${time(numbers.estimate)} on ${state.evaluator.machine?.label ?? "the target"}`],
          ["measured", numbers?.measured !== undefined ? `${time(numbers.measured)} on ${count(report.measured.get(item.id)?.threads ?? 1, "thread")}` : ""],
          ["bound", numbers?.bound && `${numbers.bound}, ${percent(numbers.attained)} of the machine's rate`],
          ["occupancy", analysis && analysis.occupancy < 1 ? percent(analysis.occupancy) : ""],
          ["shared memory", analysis?.smem_bytes ? bytes(analysis.smem_bytes) : ""],
          ["registers", spec?.resources?.registers ?? (use.value && `${use.value.vectors} for vectors, of ${use.value.instructions} instructions`)],
          ["spills", spec?.resources?.spill_bytes ?? (use.value && `${count(use.value.stack, "instruction")} with the stack`)],
          ["code", spec?.resources?.code_bytes ? bytes(spec.resources.code_bytes) : ""],
          ["entry", spec && <code>{spec.entry}</code>],
          ["after", item.item.depends_on.length > 0 && <Links state={state} ids={item.item.depends_on} />],
          ["before", item.item.dependents.length > 0 && <Links state={state} ids={item.item.dependents} />],
        ]}
      />
      {kernel && kernel.iter.axes.length > 0 && (
        <table>
          <thead><tr><th>loop</th><th>extent</th><th>runs on</th><th>tiles</th></tr></thead>
          <tbody>
            {kernel.iter.axes.map((axis, index) => (
              <tr key={index}>
                <td>{axis.name}{axis.role === "reduction" ? " (reduced)" : ""}</td>
                <td><code>{axis.size !== null ? size(axis.size) : axis.sym?.name}</code></td>
                <td>{(["block", "thread", "vec", "serial"] as const).filter((level) => kernel.iter.mapping[level].includes(index)).join(", ")}</td>
                <td><code>{kernel.iter.tiles[index]?.map(size).join(", ")}</code></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {spec && (
        <table>
          <thead><tr><th>buffer</th><th>type</th><th>bytes</th><th>role</th><th>use</th></tr></thead>
          <tbody>
            {spec.buffers.map((id, slot) => {
              const buffer = report.program.buffers[id];
              return (
                buffer && (
                  <tr key={slot}>
                    <td>{id}</td>
                    <td><code>{typeText(buffer.dtype, buffer.shape)}</code></td>
                    <td>{bytes(approximate(buffer.size_bytes, state.values.value))}</td>
                    <td>{buffer.role}</td>
                    <td>{[spec.ins.includes(slot) ? "read" : "", spec.outs.includes(slot) ? "written" : ""].filter(Boolean).join(", ")}</td>
                  </tr>
                )
              );
            })}
          </tbody>
        </table>
      )}
    </>
  );
}

function Links({ state, ids }: { state: State; ids: readonly number[] }) {
  return (
    <>
      {ids.slice(0, 12).map((id) => (
        <button key={id} type="button" class="link" onClick={() => state.select(id)}>
          {state.report.items[id]?.name ?? id}
        </button>
      ))}
      {ids.length > 12 && ` and ${ids.length - 12} more`}
    </>
  );
}

function NodeFacts({ state }: { state: State }) {
  const { report } = state;
  const { node } = state.selection.value;
  const view = report.nodes.find((each) => each.index === node);
  if (view === undefined) return <p class="none">Select a node of the graph.</p>;
  const fields = Object.entries(report.graph?.nodes[node] ?? {});
  const link = (index: number) => (
    <button key={index} type="button" class="link" onClick={() => state.select(report.nodes[index]?.item ?? -1, index)}>
      #{index} {report.nodes[index]?.label}
    </button>
  );
  const why = APART.has(view.kind) ? "none: it is an item of the schedule by itself" : "none: it is an input, a constant that was folded, or of no use to an output";
  return (
    <>
      <h3>
        #{view.index} {view.label} <small>{view.type}</small>
      </h3>
      <Facts
        facts={[
          ["in kernel", view.item >= 0 ? <Links state={state} ids={[view.item]} /> : why],
          ["reads", view.operands.length > 0 && view.operands.map((each) => report.makers.get(each)).filter((each) => each !== undefined).map(link)],
          ["read by", view.out === undefined ? "" : (report.readers.get(view.out) ?? []).slice(0, 20).map(link)],
          ...fields.filter(([name]) => name !== "node").map(([name, value]) => [name, <code>{JSON.stringify(value, (_, each) => (typeof each === "bigint" ? String(each) : each))?.slice(0, 2000)}</code>] as const),
        ]}
      />
    </>
  );
}

function ProgramFacts({ state }: { state: State }) {
  const { report } = state;
  const { program } = report;
  const numbers = state.numbers.value;
  return (
    <>
      <Facts
        facts={[
          ["name", program.name || report.graph?.name || ""],
          ["target", [program.target.kind, program.target.cpu ?? program.target.arch, program.target.triple].filter(Boolean).join(", ")],
          ["features", program.target.features?.join(" ") ?? ""],
          ["kernels", `${program.kernels.length} in ${report.items.length} items${program.prepare.length > 0 ? `, ${program.prepare.length} of them run once` : ""}`],
          ["nodes", report.graph ? `${report.graph.nodes.length} in the graph` : `${report.nodes.length} in kernels`],
          ["time", `${time(numbers.total)} estimated${numbers.measuredTotal ? `, ${time(numbers.measuredTotal)} measured` : ""}; critical path ${time(numbers.span)}`],
          ["memory", `at most ${bytes(numbers.peak)} of temporaries, outputs and scratch; ${bytes(numbers.constants)} of inputs and constants`],
          ["against", state.other && `${state.other.program.digest.slice(0, 12)} ${state.other.program.target.cpu ?? state.other.program.target.arch ?? ""}: ${[...state.matches.keys()].length} of ${report.items.length} items have one that does the same`],
        ]}
      />
      <table>
        <thead><tr><th>call</th><th>var</th><th>type</th><th>bytes</th></tr></thead>
        <tbody>
          {[...program.inputs.map((each) => ["input", each] as const), ...program.outputs.map((each) => ["output", each] as const)].slice(0, 500).map(([role, each], index) => (
            <tr key={index}>
              <td>{each.is_parameter ? "parameter" : role}</td>
              <td>v{each.var}</td>
              <td><code>{typeText(each.dtype, each.shape)}</code></td>
              <td>{bytes(approximate(program.buffers[each.buffer]?.size_bytes ?? 0, state.values.value))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {program.constraints.map((each, index) => (
        <p class="remark" key={index}>
          <b>must hold</b> <code>{textOf(each.left)} {each.kind === "eq" ? "=" : "≥"} {textOf(each.right)}</code> {each.message} <small>{each.pointer}</small>
        </p>
      ))}
    </>
  );
}

function CompileFacts({ state }: { state: State }) {
  const { report } = state;
  const { program, signed } = report;
  const { provenance, cache, tuning } = program;
  const record = signed?.record ?? {};
  const issued = record["issued_at"];
  const longest = Math.max(...program.stages.map((stage) => stage.seconds), 1e-9);
  return (
    <>
      <Facts
        facts={[
          ["digest", program.digest && <code>{program.digest}</code>],
          ["cache", `${cache.status}${cache.reason ? `: ${cache.reason}` : ""}`],
          ["nearest", cache.nearest && <code>{cache.nearest}</code>],
          ["differs in", cache.differs.join(", ")],
          ["build", provenance?.build_id && <code>{provenance.build_id}</code>],
          ["isolation", provenance?.isolation ?? ""],
          ["flags", provenance?.flags.join(" ") ?? ""],
          ["versions", Object.entries(provenance?.versions ?? {}).map(([name, version]) => `${name} ${version}`).join(", ")],
          ["signature", signed ? <code>{signed.signature}</code> : "not part of this report"],
          ["key", signed && <code>{String(record["key"])}</code>],
          ["compiled by", signed && String(record["worker"])],
          ["at", typeof issued === "number" ? new Date(issued * 1000).toISOString() : ""],
          ["options", record["request"] !== undefined && <code>{JSON.stringify((record["request"] as { options?: unknown }).options)}</code>],
          ["measured on", tuning && `${tuning.machine}, ${tuning.rounds} rounds: ${time(Number(tuning.before_ns))} before, ${time(Number(tuning.after_ns))} after`],
          ...Object.entries(report.about),
        ]}
      />
      <p class="note">What the page says of the signature was not verified by the page: <code>kiln</code> does that.</p>
      <table>
        <thead><tr><th>stage</th><th>time</th><th /></tr></thead>
        <tbody>
          {program.stages.map((stage) => (
            <tr key={stage.name}>
              <td>{stage.name}</td>
              <td>{stage.seconds > 0 ? time(stage.seconds * 1e9) : ""}</td>
              <td class="wide"><i class="bar" style={{ width: `${(100 * stage.seconds) / longest}%` }} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
