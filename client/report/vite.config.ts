import preact from "@preact/preset-vite";
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

import { notices } from "./notices.ts";

export default defineConfig({
  plugins: [
    preact({ prefreshEnabled: false, devToolsEnabled: false, devtoolsInProd: false }),
    viteSingleFile({ removeViteModuleLoader: true }),
    notices(),
  ],
  build: { target: "es2022", outDir: "node_modules/.page", assetsInlineLimit: 100_000_000, cssCodeSplit: false },
});
