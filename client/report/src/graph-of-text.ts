// The graph that the first stage spells, where nobody has given the graph itself. Its nodes have canonical numbers.

import type { GraphNode, GraphRecord } from "./records";

const OPERATION = /^\s+(%[\w:]+(?:, %\w+)*) = "kiln\.(\w+)"\(([^)]*)\) \{(.*?)\} : \(.*\) -> (.*)$/;
const ARGUMENT = /(%arg\d+): tensor<([^>]*)>/g;
const TENSOR = /^tensor<((?:[?\d]+x)*)([\w.]+?)(?:, \[(.*)\])?>$/;
const DTYPES: Record<string, string> = {
  f16: "float16", bf16: "bfloat16", f32: "float32", f64: "float64", i1: "bool",
  i8: "int8", i16: "int16", i32: "int32", i64: "int64", ui8: "uint8", ui16: "uint16", ui32: "uint32", ui64: "uint64",
};

function typeOf(text: string): { dtype: string; shape: string[] } | undefined {
  const found = TENSOR.exec(text.trim());
  if (found === null) return undefined;
  const stated = found[3]?.match(/"[^"]*"/g)?.map((each) => each.slice(1, -1));
  return { dtype: DTYPES[found[2] ?? ""] ?? found[2] ?? "", shape: stated ?? (found[1] ?? "").split("x").filter(Boolean) };
}

/** The graph of a `from-graph` text; undefined where it is not read as one. */
export function graphOfText(text: string): GraphRecord | undefined {
  const vars = new Map<string, number>();
  const metadata: Record<string, { dtype: string; shape: string[] }> = {};
  const nodes: GraphNode[] = [];
  const make = (name: string, type: string): number => {
    const own = vars.size;
    vars.set(name, own);
    const read = typeOf(type);
    if (read !== undefined) metadata[String(own)] = read;
    return own;
  };
  const inputs: number[] = [];
  for (const line of text.split("\n")) {
    if (line.includes("func.func @graph(")) {
      for (const [, name, type] of line.slice(0, line.indexOf(") ->")).matchAll(ARGUMENT)) inputs.push(make(name ?? "", `tensor<${type}>`));
      continue;
    }
    const found = OPERATION.exec(line);
    const node = /kiln\.node = (\d+)/.exec(found?.[4] ?? "")?.[1];
    if (found === null || node === undefined) continue;
    const [, name = "", kind = "", operands = "", attributes = "", type = ""] = found;
    const detail = /\b(?:op|reduce_op_kind|op_name) = "(\w+)"/.exec(attributes)?.[1];
    const read = operands.split(",").map((each) => vars.get(each.trim()) ?? -1);
    const made: Record<string, unknown> = { node: kind, in_vars: read, out_var: make(name.replace(/[:,].*$/, ""), type) };
    if (detail !== undefined) made["op"] = detail;
    made["attributes"] = attributes;
    nodes[Number(node)] = made as GraphNode;
  }
  if (nodes.length === 0) return undefined;
  // What has no operation in the text is an input, in the order of these.
  let next = 0;
  for (let index = 0; index < nodes.length; index++) nodes[index] ??= { node: "placeholder", out_var: inputs[next++] };
  return { name: "", nodes, vars_metadata: metadata, input_vars: inputs, output_vars: [] };
}
