// Elements for what the service answers. Names and texts are other people's: they become text, never markup.

export function element(tag, text, name) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = String(text);
  if (name) made.className = name;
  return made;
}

export function fact(list, term, text) {
  list.append(element("dt", term), element("dd", text));
}

export function table(heads, rows) {
  const made = element("table");
  const head = element("tr");
  for (const each of heads) head.append(element("th", each));
  made.append(head);
  for (const row of rows) {
    const line = element("tr");
    for (const each of row) {
      const cell = element("td");
      if (each instanceof Node) cell.append(each);
      else cell.textContent = String(each);
      line.append(cell);
    }
    made.append(line);
  }
  return made;
}

export function button(text, action) {
  const made = element("button", text);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

/** A page of its own in a frame: its script runs, and reaches nothing of this page or of the service. */
export function confined(html, title) {
  const made = element("iframe");
  made.sandbox = "allow-scripts";
  made.title = title;
  made.srcdoc = html;
  return made;
}

/** What a JSON Pointer of an error points to in the graph that was sent: a whole node for a pointer into one. */
export function pointed(graph, pointer) {
  let value = graph;
  for (const part of pointer.split("/").slice(1, 3)) {
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

export function problem(error, graph) {
  const made = element("div", undefined, "problem");
  made.setAttribute("role", "alert");
  made.append(element("b", error.code ?? "error"), element("p", error.message));
  for (const pointer of error.pointers ?? []) {
    const value = pointed(graph, pointer);
    made.append(element("code", pointer));
    if (value !== undefined) made.append(element("pre", JSON.stringify(value, null, 1)));
  }
  return made;
}

export function shape(binding) {
  return `${binding.dtype}[${binding.shape.map((dim) => (typeof dim === "object" ? JSON.stringify(dim) : dim)).join(", ")}]`;
}

export function target(stated) {
  return stated.cpu ?? stated.arch ?? stated.kind;
}
