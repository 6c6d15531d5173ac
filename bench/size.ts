/** The size of a program with one agent, in bytes after gzip, as rows of the results. */
import { fileURLToPath } from "node:url"
import { bundle, effect, gzipSize } from "./bundle.ts"
import type { Row, Shown } from "./rounds.ts"

/** Where the program of a contender is. */
export const programOf = (id: string): string => fileURLToPath(new URL(`programs/${id}.ts`, import.meta.url))

const row = (id: string, title: string, contenders: Readonly<Record<string, Shown>>): Row => ({
  id,
  title,
  size: "full",
  unit: "bytes",
  contenders
})

/** The rows of these contenders' programs, with Effect and without. */
export const measureSizes = async (ids: ReadonlyArray<string>): Promise<ReadonlyArray<Row>> => {
  const included: Record<string, Shown> = {}
  const excluded: Record<string, Shown> = {}
  for (const id of ids) {
    const program = programOf(id)
    included[id] = { values: [gzipSize(await bundle(program))] }
    excluded[id] = { values: [gzipSize(await bundle(program, [effect]))] }
  }
  return [
    row("bundle", "a program with one agent, minified, gzip", included),
    row("bundle-without-effect", "… with `effect` left outside", excluded)
  ]
}
