// The data of the page: parts of JSON in elements that no browser runs, large ones compressed.

import { textOfLines } from "./lines";

/** Integers that a double does not hold are read as BigInt. */
export function parseExact(text: string): unknown {
  if (!/(^|[^\d.])\d{16,}/.test(text)) return JSON.parse(text);
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
    /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? `{"$integer":"${token}"}` : token,
  );
  return JSON.parse(marked, (_, value: unknown) => {
    if (value !== null && typeof value === "object" && "$integer" in value && Object.keys(value).length === 1) {
      return BigInt(String(value.$integer));
    }
    return value;
  });
}

async function inflated(base64: string): Promise<string> {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** A part of the data, read when it is asked for first. */
export class Part {
  private read: Promise<unknown> | undefined;

  constructor(
    readonly name: string,
    private readonly element: Element,
  ) {}

  content(): Promise<unknown> {
    this.read ??= this.load();
    return this.read;
  }

  private async load(): Promise<unknown> {
    const text = this.element.textContent ?? "";
    const encoding = this.element.getAttribute("data-encoding");
    const content = parseExact(encoding === null ? text : await inflated(text));
    return encoding === "lines+gzip" ? textOfLines(content) : content;
  }
}

/** The parts of one program, by name. */
export function partsOf(root: ParentNode, side: string): Map<string, Part> {
  const found = new Map<string, Part>();
  for (const element of root.querySelectorAll(`script[data-side="${side}"]`)) {
    const name = element.getAttribute("data-part") ?? "";
    found.set(name, new Part(name, element));
  }
  return found;
}
