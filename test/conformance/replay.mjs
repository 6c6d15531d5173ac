#!/usr/bin/env node
// Plays every scenario against pi and compares the outcome with the recorded trace.   node replay.mjs
import { readdirSync, readFileSync } from "node:fs"
import { diffTraces } from "./compare.mjs"
import { piVersion, playScenario } from "./player-pi.mjs"

const folder = (name) => new URL(`${name}/`, import.meta.url)
const read = (name, file) => JSON.parse(readFileSync(new URL(file, folder(name)), "utf8"))
const files = new Set([...readdirSync(folder("scenarios")), ...readdirSync(folder("traces"))])

let reproduced = 0
for (const file of files) {
  try {
    // As JSON, because absent and undefined are the same in a recorded trace.
    const trace = JSON.parse(JSON.stringify(await playScenario(read("scenarios", file))))
    const differences = diffTraces(read("traces", file), trace)
    if (differences.length === 0) reproduced++
    else console.log(`${file}:\n  ${differences.join("\n  ")}`)
  } catch (error) {
    console.log(`${file}:`, error)
  }
}
console.log(`${reproduced} of ${files.size} traces reproduced by pi-agent-core ${piVersion}`)
process.exitCode = reproduced === files.size ? 0 : 1
