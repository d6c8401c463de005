// Builds dist/: CommonJS without comments, types with them, and beside each entry an ES module that
// exports the names of the CommonJS module, so that a program that loads both has one state.
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const compiler = require.resolve("typescript/bin/tsc");
const manifest = require("./package.json");

rmSync("dist", { recursive: true, force: true });
for (const options of [["--removeComments", "--sourceMap"], ["--declaration", "--emitDeclarationOnly"]]) {
  execFileSync(process.execPath, [compiler, "-p", "tsconfig.json", ...options], { stdio: "inherit" });
}
for (const entry of Object.values(manifest.exports)) {
  if (typeof entry === "string") continue;
  const file = entry.require.default;
  const name = file.slice(file.lastIndexOf("/") + 1);
  const names = Object.keys(require(file)).sort();
  writeFileSync(entry.import.default, `export { ${names.join(", ")} } from "./${name}";\n`);
  writeFileSync(entry.import.types, `export * from "./${name}";\n`);
}
