// A list of equal rows of which only those in sight are elements.

import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface RowsProps {
  readonly count: number;
  readonly height: number;
  readonly label: string;
  readonly role?: "listbox" | "tree" | "grid" | "rowgroup" | "document";
  readonly class?: string;
  /** The row that is to be in sight. */
  readonly shown?: number | undefined;
  readonly active?: string | undefined;
  readonly width?: string;
  readonly align?: "auto" | "center" | "start";
  readonly head?: ComponentChildren;
  readonly onKey?: (event: KeyboardEvent) => void;
  readonly row: (index: number) => ComponentChildren;
}

export function Rows(props: RowsProps) {
  const { count, height, shown, width, align = "auto" } = props;
  const outer = useRef<HTMLDivElement>(null);
  const [, redraw] = useState(0);
  const made = useRef<Virtualizer<HTMLDivElement, Element> | undefined>(undefined);
  const options = {
    count,
    getScrollElement: () => outer.current,
    estimateSize: () => height,
    overscan: 6,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw((now) => now + 1),
  };
  const rows = (made.current ??= new Virtualizer<HTMLDivElement, Element>(options));
  rows.setOptions({ ...rows.options, ...options });
  useLayoutEffect(() => rows._didMount(), [rows]);
  useLayoutEffect(() => rows._willUpdate());
  useEffect(() => rows.measure(), [rows, height]);
  useEffect(() => {
    if (shown !== undefined && shown >= 0 && shown < count) rows.scrollToIndex(shown, { align });
  }, [rows, shown, count, align]);
  return (
    <div
      ref={outer}
      class={`rows ${props.class ?? ""}`}
      role={props.role ?? "listbox"}
      aria-label={props.label}
      aria-activedescendant={props.active}
      tabIndex={0}
      onKeyDown={props.onKey}
    >
      {props.head}
      <div class="rows-all" style={{ height: `${rows.getTotalSize()}px`, width }}>
        {rows.getVirtualItems().map(({ index, start }) => (
          <div key={index} class="row-place" style={{ transform: `translateY(${start}px)`, height: `${height}px` }}>
            {props.row(index)}
          </div>
        ))}
      </div>
    </div>
  );
}
