// Requests to the service that this page came from, with the key that was typed in, if there is one. It is kept nowhere.
let key = "";

export function useKey(text) {
  key = text.trim();
}

/** An answer that is an error: what its problem says. */
export class Problem extends Error {
  constructor(problem, status) {
    super(problem.detail ?? `The service answered ${status}.`);
    this.code = problem.code ?? String(status);
    this.pointers = problem.pointers ?? [];
    this.status = status;
  }
}

async function send(path, { method = "GET", body, headers = {} } = {}) {
  const all = { ...headers };
  if (key) all.Authorization = `Bearer ${key}`;
  if (body !== undefined) all["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, body, headers: all, redirect: "error" });
  } catch {
    throw new Problem({ code: "unreachable", detail: "The service does not answer." }, 0);
  }
  if (!answer.ok) throw new Problem(await answer.json().catch(() => ({})), answer.status);
  return answer;
}

/** The body of an answer, an object or a text, and its status. */
export async function ask(path, how = {}) {
  const answer = await send(path, how);
  return { status: answer.status, body: how.text ? await answer.text() : await answer.json() };
}

/** The server-sent events of a stream, one after the other: the kind and the data of each. */
export async function* events(path) {
  const answer = await send(path, { headers: { Accept: "text/event-stream" } });
  if (answer.status === 204) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (unread + value).replaceAll("\r\n", "\n").split("\n\n");
    unread = parts.pop();
    for (const part of parts) {
      const fields = {};
      for (const line of part.split("\n")) {
        const colon = line.indexOf(": ");
        if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
      }
      if (fields.event) yield { kind: fields.event, data: fields.data ? JSON.parse(fields.data) : null };
    }
  }
}
