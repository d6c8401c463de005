// Builds dist/: CommonJS, minified as the package has a maximum size, types with their comments, and
// beside each entry an ES module that exports the names of the CommonJS module, so that a program that
// loads both has one state.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { transform } from "esbuild";

const require = createRequire(import.meta.url);
const compiler = require.resolve("typescript/bin/tsc");
const manifest = require("./package.json");
const entries = Object.values(manifest.exports).filter((entry) => typeof entry !== "string");

rmSync("dist", { recursive: true, force: true });
execFileSync(process.execPath, [compiler, "-p", "tsconfig.json", "--declaration", "--inlineSourceMap"], { stdio: "inherit" });
await Promise.all(files(".js").map(minify));
for (const entry of entries) {
  const file = entry.require.default;
  const name = file.slice(file.lastIndexOf("/") + 1);
  const names = Object.keys(require(file)).sort();
  // Not `export … from`: the names of a minified CommonJS module cannot be read from its text.
  writeFileSync(entry.import.default, `import all from "./${name}";\nexport const { ${names.join(", ")} } = all;\n`);
  writeFileSync(entry.import.types, `export * from "./${name}";\n`);
}
const needed = reachable(entries.map((entry) => join(entry.require.types)));
for (const file of files(".d.ts")) if (!needed.has(file)) rmSync(file);

/** The files in dist/ with this ending. */
function files(ending) {
  return readdirSync("dist", { recursive: true }).filter((name) => name.endsWith(ending)).map((name) => join("dist", name));
}

/** Minifies a file in its place; names at its top stay, so stack traces and classes keep theirs. */
async function minify(file) {
  const name = file.slice(file.lastIndexOf("/") + 1);
  const options = { minify: true, target: "node20", sourcemap: "external", sourcefile: name };
  const { code, map } = await transform(readFileSync(file, "utf8"), options);
  writeFileSync(file, `${code}//# sourceMappingURL=${name}.map\n`);
  writeFileSync(`${file}.map`, map);
}

/** The declarations that those of the entries import, directly or not. */
function reachable(found) {
  const seen = new Set();
  for (const file of found) {
    if (seen.has(file)) continue;
    seen.add(file);
    const imports = readFileSync(file, "utf8").matchAll(/from "(\.[^"]+)\.js"|import\("(\.[^"]+)\.js"\)/g);
    for (const [, one, other] of imports) found.push(`${join(dirname(file), one ?? other)}.d.ts`);
  }
  return seen;
}
