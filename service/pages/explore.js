// Compile what is pasted, follow the job, and show what is stored. A short link is the digest after `#`.
import { Problem, ask, events, useKey } from "./api.js";
import { button, confined, element, fact, problem, shape, table, target } from "./show.js";

const $ = (id) => document.getElementById(id);
const DIGEST = /^#([0-9a-f]{64})$/;
const EXAMPLES = {
  graph: JSON.stringify(
    {
      schema: 1,
      name: "double",
      nodes: [
        { node: "placeholder", out_var: 0, dtype: "float32", shape: ["n"] },
        { node: "binop", op: "add", a_var: 0, b_var: 0, out_var: 1, dtype: "float32" },
      ],
      input_vars: [0],
      output_vars: [1],
      symbolic_vars: [{ name: "n", min_val: 1, max_val: 4096 }],
    },
    null,
    1,
  ),
  stablehlo: `func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = stablehlo.add %x, %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}`,
  builder: `b = Builder("layer")
n = b.symbol("n", 1, 4096)
x, w = b.input("float32", (n, 64)), b.input("float32", (64, 10))
b.output(relu(x @ w))
`,
};
let graph; // What was sent, for the pointers of errors.
let job;
// What is asked for is numbered: what comes late of anything older is not shown.
let asked = 0;
let reported = 0;

const form = () => document.querySelector("input[name=form]:checked").value;

function dims(text) {
  const found = {};
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const parts = /^(.+)=(\d+)(?::(\d+))?$/.exec(word);
    if (!parts) throw new Problem({ code: "dims", detail: `${word}: write NAME=MIN:MAX or NAME=SIZE.` }, 0);
    found[parts[1]] = { min: Number(parts[2]), max: Number(parts[3] ?? parts[2]) };
  }
  return found;
}

// A graph is sent as it was typed: numbers beyond those of JavaScript stay what they are.
function source() {
  const text = $("source").value;
  graph = undefined;
  if (form() === "stablehlo") {
    const bounds = dims($("dims").value);
    const stated = Object.keys(bounds).length ? `,"dims":${JSON.stringify(bounds)}` : "";
    return `"stablehlo":${JSON.stringify({ text })}${stated}`;
  }
  // The service reads the lines; they are run nowhere.
  if (form() === "builder") return `"builder":${JSON.stringify(text)}`;
  try {
    graph = JSON.parse(text);
  } catch (error) {
    throw new Problem({ code: "json", detail: `The graph is not JSON: ${error.message}` }, 0);
  }
  return `"graph":${text}`;
}

function request() {
  const targets = [...$("targets").selectedOptions].map((option) => option.value);
  if (!targets.length) throw new Problem({ code: "targets", detail: "Pick a target or several." }, 0);
  const options = {
    dump_stages: $("dump_stages").checked,
    fast_math: $("fast_math").checked,
    fusion: !$("no_fusion").checked,
    cubin: $("cubin").checked,
    schedule: $("schedule").value,
    tuned: $("tuned").value.trim() || "off",
  };
  return `{${source()},"target":${JSON.stringify(targets)},"options":${JSON.stringify(options)}}`;
}

function clear() {
  reported += 1;
  $("progress").replaceChildren();
  $("result").replaceChildren();
  $("report").replaceChildren();
  $("report").hidden = true;
}

async function stageOf(digest, name, place) {
  const { body } = await ask(`/programs/${digest}/stages/${encodeURIComponent(name)}`, { text: true });
  place.replaceChildren(element("h4", name), element("pre", body));
}

// Asked for here, with the key: a frame would ask without.
async function reportOf(program) {
  const mine = ++reported;
  const { body } = await ask(`/programs/${program.digest}/report`, { text: true });
  if (mine !== reported) return;
  const title = `Report of ${program.name || "the program"} for ${target(program.target)}`;
  const save = button("save the page", () => saved(body, `${program.digest.slice(0, 12)}.html`));
  showReport(element("h2", title), save, confined(body, "Report"));
}

function saved(html, name) {
  const link = element("a");
  link.href = URL.createObjectURL(new Blob([html], { type: "text/html" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function showReport(...parts) {
  $("report").replaceChildren(...parts);
  $("report").hidden = false;
}

const told = (place, action) => () => action().catch((error) => place.replaceChildren(problem(error, graph)));

function showProgram(program) {
  const made = element("article");
  const stage = element("div");
  const facts = element("dl");
  fact(facts, "Target", target(program.target));
  fact(facts, "Digest", program.digest);
  if (program.cache) fact(facts, "Cache", `${program.cache.status}: ${program.cache.reason}`);
  fact(facts, "Inputs", program.inputs.map(shape).join(", "));
  fact(facts, "Outputs", program.outputs.map(shape).join(", "));
  fact(facts, "Kernels", program.kernels.length);
  const stages = program.stages.map((each) => [
    each.dump ? button(each.name, told(stage, () => stageOf(program.digest, each.name, stage))) : each.name,
    `${(each.seconds * 1e3).toFixed(1)} ms`,
  ]);
  made.append(element("h3", title(program)), linkTo(program, "short link"), " ", button("report", told(stage, () => reportOf(program))), facts);
  made.append(table(["kernel", "entry"], program.kernels.map((each) => [each.name, each.entry ?? ""])));
  made.append(table(["stage", "time"], stages), stage);
  return made;
}

// A program that was compiled from its canonical graph has no name.
const title = (program) => program.name || program.digest.slice(0, 12);

function linkTo(program, text) {
  const link = element("a", text);
  link.href = `/explore#${program.digest}`;
  return link;
}

// Of a compile that ended while something else was looked at.
function announce(programs) {
  if (!programs.length) return;
  const line = element("li", "compiled: ");
  programs.forEach((program, index) => line.append(index ? ", " : "", linkTo(program, title(program))));
  $("progress").append(line);
}

function showPrograms(programs) {
  $("result").replaceChildren(...programs.map(showProgram));
  if (programs.length === 1) history.replaceState(null, "", `#${programs[0].digest}`);
  // Of several, the first: each has a button for its own. The programs stay where there is no room for a page.
  return reportOf(programs[0]).catch((error) => showReport(problem(error, graph)));
}

async function compile(isCurrent) {
  const { status, body } = await ask("/compile", {
    method: "POST",
    body: request(),
    headers: { Prefer: "respond-async, wait=1" },
  });
  if (status === 200) return isCurrent() ? showPrograms(body.programs) : announce(body.programs);
  // It is followed to its end, and can be cancelled, also while something else is looked at.
  job = body.id;
  $("cancel").hidden = false;
  for await (const event of events(`/jobs/${job}/events`)) {
    if (!isCurrent()) continue;
    const where = event.data?.target === undefined || event.data?.target === null ? "" : ` (target ${event.data.target})`;
    $("progress").append(element("li", `${event.data?.stage ?? event.kind}${where}`));
  }
  const ended = (await ask(`/jobs/${job}`)).body;
  if (!isCurrent()) return announce(ended.programs);
  if (ended.error) throw new Problem(ended.error, ended.error.status);
  if (ended.state === "cancelled") throw new Problem({ code: "job.cancelled", detail: "The job was cancelled." }, 0);
  return showPrograms(ended.programs);
}

async function validate(isCurrent) {
  const { body } = await ask("/validate", { method: "POST", body: `{${source()}}` });
  if (!isCurrent()) return;
  const facts = element("dl");
  fact(facts, "Graph", `${body.name}: ${body.nodes} nodes, ${body.live_nodes} of them live`);
  fact(facts, "Inputs", body.inputs.map(shape).join(", "));
  fact(facts, "Outputs", body.outputs.map(shape).join(", "));
  $("result").replaceChildren(facts);
}

async function explain(isCurrent) {
  const { body } = await ask("/explain", { method: "POST", body: request() });
  if (!isCurrent()) return;
  const rows = body.actions.map((each) => [each.digest.slice(0, 12), each.stored ? "stored" : "not stored", each.cache.reason ?? ""]);
  $("result").replaceChildren(table(["digest", "store", "why"], rows));
}

async function load(isCurrent) {
  const found = DIGEST.exec(location.hash);
  if (!found) return;
  const { body } = await ask(`/programs/${found[1]}`);
  if (isCurrent()) await showPrograms([body]);
}

const failed = (error) => $("result").replaceChildren(problem(error, graph));

async function act(action) {
  clear();
  const mine = ++asked;
  const isCurrent = () => mine === asked;
  useKey($("key").value);
  try {
    await action(isCurrent);
  } catch (error) {
    if (isCurrent()) failed(error);
  }
}

// One at a time. What is stored can be looked at meanwhile.
async function press(action) {
  const buttons = ["compile", "validate", "explain"].map($);
  for (const each of buttons) each.disabled = true;
  await act(action);
  for (const each of buttons) each.disabled = false;
  $("cancel").hidden = true;
  job = undefined;
}

function changeForm() {
  const examples = Object.values(EXAMPLES);
  if (!$("source").value || examples.includes($("source").value)) $("source").value = EXAMPLES[form()];
  $("dims-row").hidden = form() !== "stablehlo";
  if (form() === "stablehlo" && !$("dims").value) $("dims").value = "0.0=1:64";
}

async function targets() {
  const { body } = await ask("/capabilities");
  for (const name of body.targets) {
    const option = element("option", name);
    option.value = name;
    option.selected = name === "cpu";
    $("targets").append(option);
  }
}

for (const each of document.querySelectorAll("input[name=form]")) each.addEventListener("change", changeForm);
$("compile").addEventListener("click", () => press(compile));
$("validate").addEventListener("click", () => press(validate));
$("explain").addEventListener("click", () => press(explain));
$("cancel").addEventListener("click", () => job && ask(`/jobs/${job}`, { method: "DELETE" }).catch(failed));
$("key").addEventListener("change", () => act(load));
window.addEventListener("hashchange", () => act(load));
changeForm();
targets().catch(failed);
act(load);
