// A line of IR or assembly with its parts in colours.

import type { ComponentChildren } from "preact";

const PARTS = /(;.*|\/\/.*|#(?!map|loc)\s.*)|("(?:[^"\\]|\\.)*")|([%$][\w.$#-]+)|([@!][\w.$-]+)|(#\w+)|(-?\b\d[\w.+-]*\b)|(\b(?:memref|tensor|vector|f16|f32|f64|bf16|i1|i8|i16|i32|i64|index|ptr|float|double|half)\b)|([a-z_]\w*(?:\.[\w$]+)+)/g;
const KINDS = ["comment", "string", "value", "symbol", "attribute", "number", "typed", "op"] as const;
const MOST = 4000;

export function tinted(line: string): ComponentChildren[] {
  const text = line.length > MOST ? `${line.slice(0, MOST)}…` : line;
  const parts: ComponentChildren[] = [];
  let last = 0;
  for (const found of text.matchAll(PARTS)) {
    if (found.index > last) parts.push(text.slice(last, found.index));
    const kind = KINDS[found.slice(1).findIndex((each) => each !== undefined)];
    parts.push(<span class={`t-${kind}`}>{found[0]}</span>);
    last = found.index + found[0].length;
  }
  parts.push(text.slice(last));
  return parts;
}
