// Packs the library as npm would publish it, installs the tarball in an empty project outside the repository, imports every
// entry point there under the project's Node, type-checks a program that uses them and runs the program it brings. Needs `npm run build` first.
// Nothing is downloaded: peers are links to those in node_modules, the optional ones only for the types: every entry point
// has to load without them.
import { spawnSync } from "node:child_process"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, "node_modules")
const node = join(modules, ".bin", "node")

/** @type {{ name: string, exports: Record<string, unknown>, peerDependenciesMeta: Record<string, unknown> }} */
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const entryPoints = Object.keys(manifest.exports)
  .filter((key) => !key.includes("*") && !key.endsWith(".json"))
  .map((key) => manifest.name + key.slice(1))

/**
 * Runs a command and returns what it printed; its output is shown when it fails.
 *
 * @param {string} folder
 * @param {string} command
 * @param {ReadonlyArray<string>} args
 */
const run = (folder, command, args) => {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"]
  })
  if (status !== 0) {
    process.stderr.write(`${stdout ?? ""}${stderr ?? ""}`)
    throw new Error(`failed: ${[command, ...args].join(" ")}`)
  }
  return stdout
}

/**
 * @param {string} project
 * @param {string} name
 */
const link = (project, name) => {
  const target = join(project, "node_modules", name)
  mkdirSync(dirname(target), { recursive: true })
  symlinkSync(join(modules, name), target, "dir")
}

/** @param {string} folder */
const check = (folder) => {
  const project = join(folder, "project")
  mkdirSync(project)
  run(root, "npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder])
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"))
  if (tarball === undefined) throw new Error("npm pack made no tarball")

  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }))
  run(project, "npm", [
    "install",
    "--offline",
    "--legacy-peer-deps",
    "--ignore-scripts",
    "--silent",
    join("..", tarball)
  ])
  link(project, "effect")

  writeFileSync(
    join(project, "main.mjs"),
    `for (const name of ${JSON.stringify(entryPoints)}) {
  const exported = Object.keys(await import(name))
  if (exported.length === 0) throw new Error(name + " exports nothing")
  console.log(name + ": " + exported.length + " exports")
}
const { Effect } = await import("effect")
const { Mcp } = await import("${manifest.name}/mcp")
const missing = await Effect.runPromise(Effect.flip(Effect.scoped(Mcp.connectStdio({ name: "any", command: "any" }))))
if (missing.reason !== "NotInstalled" || !missing.message.includes("npm install @modelcontextprotocol/sdk")) throw missing
console.log("without its peer, an MCP server is: " + missing.reason)
console.log("Node " + process.version)
`
  )
  process.stdout.write(run(project, node, ["main.mjs"]))

  // The program, without anything that only the repository has, and without a provider.
  const program = join(project, "node_modules", ".bin", "effect-pi")
  const help = run(project, node, [program, "--help"])
  if (!help.includes("--max-turns")) throw new Error(`effect-pi --help says:\n${help}`)
  const answer = run(project, node, [program, "--model", "offline", "--print", "read main.mjs"])
  if (!answer.includes("exports nothing")) throw new Error(`effect-pi --print says:\n${answer}`)
  const found = run(project, node, [program, "--model", "offline", "--print", "search exports nothing in main.mjs"])
  if (!found.includes("main.mjs:3: ")) throw new Error(`effect-pi --print "search …" says:\n${found}`)
  console.log("effect-pi: ok")

  for (const peer of Object.keys(manifest.peerDependenciesMeta)) link(project, peer)
  writeFileSync(
    join(project, "main.ts"),
    entryPoints.map((name, index) => `import * as entry${index} from "${name}"\nvoid entry${index}\n`).join("")
  )
  const flags = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--module", "NodeNext", "--target", "ES2022"]
  run(project, node, [join(modules, "typescript", "bin", "tsc"), ...flags, "main.ts"])
  console.log("types: ok")
}

if (!existsSync(join(root, "dist"))) throw new Error("dist/ is missing: run `npm run build` first")
const folder = mkdtempSync(join(tmpdir(), `${manifest.name}-pack-`))
try {
  check(folder)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
