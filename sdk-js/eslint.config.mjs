import js from "@eslint/js";
import { defineConfig } from "eslint/config";
import ts from "typescript-eslint";

export default defineConfig(
  { ignores: ["dist/", "node_modules/"] },
  js.configs.recommended,
  {
    files: ["src/**/*.ts"],
    extends: [ts.configs.strictTypeChecked, ts.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // Numbers are the usual content of our texts.
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
    },
  },
  {
    files: ["**/*.mjs"],
    languageOptions: {
      globals: Object.fromEntries(
        ["AbortController", "AbortSignal", "Blob", "Buffer", "DOMException", "Event", "EventTarget", "Headers", "ReadableStream", "Response", "URL", "clearTimeout",
          "console", "fetch", "globalThis", "performance", "process", "setImmediate", "setInterval", "setTimeout", "structuredClone"].map((name) => [name, "readonly"]),
      ),
    },
  },
);
