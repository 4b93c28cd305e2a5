import { render } from "preact";

import { App } from "./app";
import { typeText } from "./format";
import { loadReport } from "./report";
import { State } from "./state";
import "./style.css";

async function start(): Promise<void> {
  const root = document.getElementById("app");
  if (root === null) return;
  try {
    const [report, other] = await Promise.all([
      loadReport(document, "this", typeText),
      loadReport(document, "against", typeText),
    ]);
    if (report === undefined) throw new Error("there is no program in it");
    const state = new State(report, other);
    document.title = `${report.program.name || report.graph?.name || "program"} · tensorkiln report`;
    root.replaceChildren();
    render(<App state={state} />, root);
  } catch (error) {
    root.textContent = `This page cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
    root.className = "broken";
    throw error;
  }
}

void start();
