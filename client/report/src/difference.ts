// Which lines of one text are not in the other, in order.

import { diffArrays } from "diff";

/** Beyond so many changed lines two texts are called different as a whole. */
const MOST_EDITS = 4000;

export interface Difference {
  readonly mine: ReadonlySet<number>;
  readonly theirs: ReadonlySet<number>;
  readonly isWhole: boolean;
}

export function difference(mine: readonly string[], theirs: readonly string[]): Difference {
  const changes = diffArrays([...mine], [...theirs], { maxEditLength: MOST_EDITS });
  const [left, right] = [new Set<number>(), new Set<number>()];
  if (changes === undefined) return { mine: left, theirs: right, isWhole: true };
  let [a, b] = [0, 0];
  for (const { added, removed, count = 0 } of changes) {
    for (let at = 0; at < count; at++) {
      if (removed) left.add(a + at);
      if (added) right.add(b + at);
    }
    if (!added) a += count;
    if (!removed) b += count;
  }
  return { mine: left, theirs: right, isWhole: false };
}
