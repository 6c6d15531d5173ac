/** The files of the conformance suite. */
import { readdirSync, readFileSync } from "node:fs"
import type { Trace } from "./trace.ts"
import type { Scenario } from "./types.ts"

/** An entry of divergences.json: a scenario that this library plays differently from pi on purpose. */
export interface Divergence {
  readonly scenario: string
  /** One of classes.ts. */
  readonly class: string
  readonly reason: string
}

export const url = (path: string): URL => new URL(path, import.meta.url)

const text = (path: string): string => readFileSync(url(path), "utf8")

export const readScenario = (name: string): Scenario => JSON.parse(text(`scenarios/${name}.json`))

/** The recorded trace of pi (`traces`) or of this library, where that differs (`expected`). */
export const readTrace = (folder: "traces" | "expected", name: string): Trace =>
  JSON.parse(text(`${folder}/${name}.json`))

export const readDivergences = (): ReadonlyArray<Divergence> => JSON.parse(text("divergences.json"))

/** Names of the files of a folder, without their ending. */
export const namesIn = (folder: "scenarios" | "traces" | "expected"): ReadonlyArray<string> =>
  readdirSync(url(`${folder}/`)).map((file) => file.replace(/\.json$/, "")).toSorted()
