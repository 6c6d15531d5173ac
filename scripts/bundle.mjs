// Bundles the entry points and the program for Node. The entry points: each with what only it needs and one file with what they share; `effect` stays outside.
// Node reads one file faster than sixty: the import of the library takes a fifth less time. Bundlers get the modules that
// `tsc` made, of which they leave out what a program does not use.
//
// The program (`effect-pi`) is a bundle of its own, with the packages it is made of in it, so that installing the library
// installs nothing but the library; the licences of those packages are in a file beside it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "vite"

const root = fileURLToPath(new URL("..", import.meta.url))

/** @type {{ exports: Record<string, string | null | { node: string }>, peerDependencies: Record<string, string> }} */
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

/** Every entry point: `index` of `./dist/node/index.js` → `src/index.ts`. */
const input = Object.fromEntries(
  Object.values(manifest.exports).flatMap((target) => {
    if (target === null || typeof target === "string") return []
    const name = target.node.replace(/^\.\/dist\/node\/|\.js$/g, "")
    return [[name, `src/${name}.ts`]]
  })
)

const external = Object.keys(manifest.peerDependencies).map((peer) => new RegExp(`^${peer}(/|$)`))

await build({
  root,
  configFile: false,
  logLevel: "warn",
  build: {
    ssr: true,
    outDir: "dist/node",
    minify: false,
    sourcemap: true,
    target: "es2024",
    rolldownOptions: {
      input,
      external,
      preserveEntrySignatures: "strict",
      output: { format: "es", entryFileNames: "[name].js", chunkFileNames: "shared.js" }
    }
  }
})

const program = await build({
  root,
  configFile: false,
  logLevel: "warn",
  ssr: { noExternal: true },
  build: {
    ssr: true,
    outDir: "dist/node",
    emptyOutDir: false,
    minify: false,
    sourcemap: false,
    target: "es2024",
    rolldownOptions: {
      // The second is the file of a thread, which src/cli/tools/matcher.ts starts by this name.
      input: { "cli": "src/cli/main.ts", "cli-matchWorker": "src/cli/tools/matchWorker.ts" },
      external,
      output: { format: "es", entryFileNames: "[name].js", chunkFileNames: "cli-[name].js" }
    }
  }
})

/** @type {Set<string>} */
const packages = new Set()
for (const built of [program].flat()) {
  for (const chunk of "output" in built ? built.output : []) {
    if (chunk.type !== "chunk") continue
    for (const id of chunk.moduleIds) {
      const at = id.lastIndexOf(`${sep}node_modules${sep}`)
      if (at < 0 || id.startsWith("\0")) continue
      const parts = id.slice(at + `${sep}node_modules${sep}`.length).split(sep)
      const name = parts.slice(0, parts[0]?.startsWith("@") ? 2 : 1).join(sep)
      packages.add(join(id.slice(0, at), "node_modules", name))
    }
  }
}

/**
 * The name, version and licence of a package, with the text where it has one.
 *
 * @param {string} folder
 */
const licenceOf = (folder) => {
  /** @type {{ name: string, version: string, license?: string, author?: string | { name: string } }} */
  const { author, license, name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
  const by = typeof author === "string" ? author : author?.name
  const text = file === undefined
    ? `Licence: ${license ?? "unknown"}${by === undefined ? "" : `, by ${by}`}`
    : readFileSync(join(folder, file), "utf8").trim()
  return `${name} ${version}\n\n${text}\n`
}

writeFileSync(
  join(root, "dist/node/cli.LICENSES.txt"),
  `Packages in cli.js and the files it loads, with their licences.\n\n${
    [...packages].toSorted().map(licenceOf).join(`\n${"-".repeat(80)}\n\n`)
  }`
)
