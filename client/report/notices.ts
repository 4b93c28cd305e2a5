// The licences of what is bundled, kept in the page, and what a browser may run of it.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Plugin } from "vite";

function packageOf(module: string): string | undefined {
  const found = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(module.replace(/^\0/, "").replace(/\?.*$/, ""));
  return found?.[0];
}

function noticeOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf-8")) as Record<string, string>;
  const file = readdirSync(folder).find((each) => /^licen[cs]e(\.\w+)?$/i.test(each));
  if (file === undefined) throw new Error(`${name} has no licence file`);
  return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf-8").trim()}\n`;
}

/** Adds what the licences of the bundled packages ask to be kept. */
export function notices(): Plugin {
  const folders = new Set<string>();
  return {
    name: "notices",
    enforce: "post",
    moduleParsed({ id }) {
      const folder = packageOf(id);
      if (folder !== undefined && existsSync(join(folder, "package.json"))) folders.add(folder);
    },
    generateBundle: {
      order: "post",
      handler(_, bundle) {
      const kept = [...folders].filter((each) => !dirname(each).endsWith("/vite")).sort().map(noticeOf).join("\n\n");
      for (const file of Object.values(bundle)) {
        if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
        const text = kept.replaceAll("<", "&lt;");
        const page = String(file.source).replace("</head>", () => `<script type="text/plain" id="notices">\n${text}</script></head>`);
        file.source = confined(page);
      }
      },
    },
  };
}

function hashes(page: string, element: RegExp): string {
  return [...page.matchAll(element)].map((found) => `'sha256-${createHash("sha256").update(found[1] ?? "").digest("base64")}'`).join(" ");
}

/** The SHA-256 of all that the page is made of: what is checked in says by it what it was built from. */
export function sourceDigest(root: string): string {
  const digest = createHash("sha256");
  const files = ["index.html", "notices.ts", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts"];
  for (const file of [...files, ...readdirSync(join(root, "src")).sort().map((name) => `src/${name}`)]) {
    digest.update(`${file}\0`).update(readFileSync(join(root, file))).update("\0");
  }
  return digest.digest("hex");
}

/** The page with the rule that nothing but its own script and style is run, and nothing is fetched. */
function confined(page: string): string {
  const scripts = hashes(page, /<script type="module"[^>]*>([\s\S]*?)<\/script>/g);
  const styles = hashes(page, /<style[^>]*>([\s\S]*?)<\/style>/g);
  const rule = `default-src 'none'; script-src ${scripts}; style-src ${styles}; img-src data:; base-uri 'none'; form-action 'none'`;
  return page.replace("<head>", () => `<head>\n    <meta http-equiv="Content-Security-Policy" content="${rule}" />\n    <meta name="source" content="${sourceDigest(import.meta.dirname)}" />`);
}
