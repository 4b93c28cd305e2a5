// The first page: what the service can do, and how it stands as far as the caller may know.
import { ask } from "./api.js";
import { element, fact } from "./show.js";

const GAUGE = /^kiln_queue_(depth|running)\{[^}]*\} (\d+)/;

const facts = document.getElementById("facts");

const curl = `curl ${location.origin}/compile -H 'Content-Type: application/json' -d '{
  "target": "cpu",
  "graph": {
    "schema": 1, "name": "double",
    "nodes": [
      {"node": "placeholder", "out_var": 0, "dtype": "float32", "shape": ["n"]},
      {"node": "binop", "op": "add", "a_var": 0, "b_var": 0, "out_var": 1, "dtype": "float32"}
    ],
    "input_vars": [0], "output_vars": [1],
    "symbolic_vars": [{"name": "n", "min_val": 1, "max_val": 4096}]
  }
}'`;
document.getElementById("curl").textContent = curl;

async function capabilities() {
  const { body } = await ask("/capabilities");
  fact(facts, "Build", body.build_id.slice(0, 12));
  fact(facts, "Compiler", Object.entries(body.versions).map(([name, version]) => `${name} ${version}`).join(", "));
  fact(facts, "Isolation", body.isolation.level);
  fact(facts, "Wire format", `schema ${body.schema_versions.join(", ")}, kernel ABI ${body.abi}`);
  const list = document.getElementById("target-list");
  for (const target of body.targets) list.append(element("li", target));
}

async function readiness() {
  const ready = await ask("/readyz").then(() => "yes", (problem) => problem.message);
  fact(facts, "Takes compiles", ready);
}

async function queue() {
  const text = await ask("/metrics", { text: true }).then((answer) => answer.body, () => null);
  if (text === null) return; // Not for this caller.
  const sums = { depth: 0, running: 0 };
  for (const line of text.split("\n")) {
    const found = GAUGE.exec(line);
    if (found) sums[found[1]] += Number(found[2]);
  }
  fact(facts, "Queue", `${sums.running} running, ${sums.depth} waiting`);
}

for (const part of [capabilities, readiness, queue]) {
  part().catch((problem) => fact(facts, "Error", problem.message));
}
