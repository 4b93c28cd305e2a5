// The page: graph, schedule and stages side by side, kernels and details below.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { Details } from "./details";
import { Header } from "./header";
import { Kernels } from "./kernels";
import { Neighbourhood } from "./neighbourhood";
import { Outline } from "./outline";
import { Stages } from "./stages";
import type { State } from "./state";
import { Timeline } from "./timeline";

const KEYS: readonly (readonly [string, string])[] = [
  ["/", "search the graph"],
  ["j  k", "next and previous item of the schedule"],
  ["Esc", "select nothing"],
  ["Tab", "from panel to panel; arrows move in each"],
  ["→  ←", "open and close a kernel in the graph"],
  ["+  −  0", "enlarge the schedule, and see all of it"],
  ["?", "this list"],
];

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
}

export function App({ state }: { state: State }) {
  const help = useRef<HTMLDialogElement>(null);
  const main = useRef<HTMLElement>(null);
  const split = useSignal({ left: 22, right: 42, bottom: 36, drawing: 40 });
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape") {
        if (isTyping(event.target)) (event.target as HTMLElement).blur();
        state.search.value = "";
        state.clear();
        return;
      }
      if (isTyping(event.target)) return;
      if (event.key === "/") document.getElementById("search")?.focus();
      else if (event.key === "j") state.step(1);
      else if (event.key === "k") state.step(-1);
      else if (event.key === "?") help.current?.showModal();
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [state]);
  const { left, right, bottom, drawing } = split.value;
  const style = {
    "--left": `${left}fr`,
    "--centre": `${100 - left - right}fr`,
    "--right": `${right}fr`,
    "--upper": `${100 - bottom}fr`,
    "--lower": `${bottom}fr`,
    "--outline": `${100 - drawing}fr`,
    "--drawing": `${drawing}fr`,
  };
  const move = (name: keyof typeof split.value, of: (x: number, y: number) => number) => (
    <Splitter name={name} onMove={(x, y) => (split.value = { ...split.value, [name]: Math.max(8, Math.min(70, of(x, y))) })} within={main} isLevel={name === "bottom" || name === "drawing"} by={(step) => (split.value = { ...split.value, [name]: Math.max(8, Math.min(70, split.value[name] + step)) })} />
  );
  return (
    <>
      <Header state={state} />
      <main ref={main} style={style}>
        <div class="upper">
          <div class="column">
            <Outline state={state} />
            {move("drawing", (_, y) => 100 - (100 * y) / ((100 - bottom) / 100))}
            <Neighbourhood state={state} />
          </div>
          {move("left", (x) => 100 * x)}
          <Timeline state={state} />
          {move("right", (x) => 100 - 100 * x)}
          <Stages state={state} />
        </div>
        {move("bottom", (_, y) => 100 - 100 * y)}
        <div class="lower">
          <Kernels state={state} />
          <Details state={state} />
        </div>
      </main>
      <button type="button" class="help" aria-label="Keys" onClick={() => help.current?.showModal()}>?</button>
      <dialog ref={help} aria-label="Keys">
        <form method="dialog">
          <h2>Keys</h2>
          <dl>{KEYS.map(([key, what]) => [<dt key={key}><kbd>{key}</kbd></dt>, <dd key={what}>{what}</dd>])}</dl>
          <button>Close</button>
        </form>
      </dialog>
    </>
  );
}

interface SplitterProps {
  readonly name: string;
  readonly isLevel: boolean;
  readonly within: { readonly current: HTMLElement | null };
  readonly onMove: (x: number, y: number) => void;
  readonly by: (step: number) => void;
}

function Splitter({ name, isLevel, within, onMove, by }: SplitterProps) {
  const held = useRef(false);
  return (
    <div
      class={`splitter ${isLevel ? "level" : "upright"}`}
      role="separator"
      aria-orientation={isLevel ? "horizontal" : "vertical"}
      aria-label={`Size of the panels: ${name}`}
      tabIndex={0}
      onPointerDown={(event) => {
        held.current = true;
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const area = within.current?.getBoundingClientRect();
        if (held.current && area) onMove((event.clientX - area.left) / area.width, (event.clientY - area.top) / area.height);
      }}
      onPointerUp={() => (held.current = false)}
      onKeyDown={(event) => {
        const grows = name === "left" ? "ArrowRight" : isLevel ? "ArrowUp" : "ArrowLeft";
        const shrinks = name === "left" ? "ArrowLeft" : isLevel ? "ArrowDown" : "ArrowRight";
        if (event.key !== grows && event.key !== shrinks) return;
        by(event.key === grows ? 2 : -2);
        event.preventDefault();
      }}
    />
  );
}
