// Long texts, of which `lines.py` has kept once what lines are alike in, and their numbers as differences.

interface Lines {
  /** A line without its numbers, each a NUL, and a column of differences for each number. */
  readonly shapes: readonly (readonly [string, ...(readonly number[])[]])[];
  /** The shape of each line. */
  readonly lines: readonly number[];
}

/** The text that was written so. */
export function textOfLines(written: unknown): string {
  const { shapes, lines } = written as Lines;
  const read = shapes.map(([shape, ...columns]) => ({ parts: shape.split("\0"), columns, at: 0, numbers: columns.map(() => 0) }));
  const texts = lines.map((index) => {
    const shape = read[index];
    if (shape === undefined) throw new Error(`no line has the shape ${index}`);
    let text = shape.parts[0] ?? "";
    shape.columns.forEach((column, place) => {
      const number = (shape.numbers[place] ?? 0) + (column[shape.at] ?? 0);
      shape.numbers[place] = number;
      text += number + (shape.parts[place + 1] ?? "");
    });
    shape.at += 1;
    return text;
  });
  return texts.join("\n");
}
