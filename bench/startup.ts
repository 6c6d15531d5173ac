/**
 * How long `import` of an entry point takes in a new process, round after round: of what is published for Node, of the modules that
 * bundlers get, and of a bundle with `effect` in it.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { bundle } from "./bundle.ts"
import { runNode } from "./children.ts"
import { ours } from "./roster.ts"
import { rotate, type Row } from "./rounds.ts"

/** Other forms of the entry point. */
export const forms = {
  modules: `${ours}, as modules`,
  inside: `${ours}, with effect in it`
}

/** What a program imports, where it is not the id of the contender. */
const specifiers: Readonly<Record<string, string>> = {
  [ours]: new URL("../dist/node/index.js", import.meta.url).href,
  "pi-1.0.3": "@earendil-works/pi-agent-core",
  "pi-1.6.0": "pi-agent-core-1.6.0",
  "effect-ai": "effect/ai/Chat",
  "ai-sdk": "ai",
  "openai-agents": "@openai/agents",
  langchain: "langchain"
}

const writeBundle = async (): Promise<string> => {
  // Where `effect` is found and no tool looks.
  const folder = new URL("../node_modules/.cache/effect-pi-bench/", import.meta.url)
  mkdirSync(folder, { recursive: true })
  const file = new URL("inside.js", folder)
  writeFileSync(file, await bundle(fileURLToPath(new URL("../src/index.ts", import.meta.url))))
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
  entries.set(forms.modules, new URL("../dist/index.js", import.meta.url).href)
  entries.set(forms.inside, await writeBundle())
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
