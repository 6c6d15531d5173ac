/**
 * How long `import` of an entry point takes in a new process, round after round: of what is published, and of two ways to bundle it
 * beforehand.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { bundle, effect } from "./bundle.ts"
import { runNode } from "./children.ts"
import { ours } from "./roster.ts"
import { rotate, type Row } from "./rounds.ts"

/** Bundles of the entry point, which are measured only. */
export const bundled = {
  outside: `${ours}, bundled, effect outside`,
  inside: `${ours}, bundled with effect`
}

/** What a program imports, where it is not the id of the contender. */
const specifiers: Readonly<Record<string, string>> = {
  [ours]: new URL("../dist/index.js", import.meta.url).href,
  "pi-1.0.3": "@earendil-works/pi-agent-core",
  "pi-1.6.0": "pi-agent-core-1.6.0",
  "effect-ai": "effect/ai/Chat",
  "ai-sdk": "ai",
  "openai-agents": "@openai/agents",
  langchain: "langchain"
}

const writeBundle = async (name: string, external: ReadonlyArray<RegExp>): Promise<string> => {
  // Where `effect` is found and no tool looks.
  const folder = new URL("../node_modules/.cache/effect-pi-bench/", import.meta.url)
  mkdirSync(folder, { recursive: true })
  const file = new URL(`${name}.js`, folder)
  writeFileSync(file, await bundle(fileURLToPath(new URL("../src/index.ts", import.meta.url)), external))
  return file.href
}

const time = async (specifier: string): Promise<number> => {
  const { code, stderr, stdout } = await runNode("importer.js", [specifier])
  if (code !== 0) throw new Error(`import of ${specifier} failed:\n${stderr}`)
  return Number(stdout)
}

/** The row of these contenders. */
export const measureImports = async (contenders: ReadonlyArray<string>, rounds: number): Promise<Row> => {
  const entries = new Map(contenders.flatMap((id) => id in specifiers ? [[id, specifiers[id]!] as const] : []))
  entries.set(bundled.outside, await writeBundle("outside", [effect]))
  entries.set(bundled.inside, await writeBundle("inside", []))
  const values = new Map([...entries.keys()].map((id) => [id, [] as Array<number>]))
  for (let round = 0; round < rounds; round++) {
    for (const [id, specifier] of rotate([...entries], round)) values.get(id)!.push(await time(specifier))
  }
  return {
    id: "import",
    title: "import of the entry point in a new process",
    size: "full",
    unit: "ms",
    contenders: Object.fromEntries([...values].map(([id, list]) => [id, { values: list }]))
  }
}
