import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { attribute } from "./attribute.ts"
import { classes } from "./classes.ts"
import { type Comparable, diffTraces } from "./compare.mjs"
import divergences from "./divergences.json" with { type: "json" }
import { violations } from "./invariants.ts"
import { playScenario } from "./player.ts"
import type { Trace } from "./player-pi.mjs"
import type { Scenario } from "./types.ts"

const url = (path: string): URL => new URL(path, import.meta.url)
const read = (path: string): unknown => JSON.parse(readFileSync(url(path), "utf8"))
const names = (folder: string): ReadonlyArray<string> => readdirSync(url(folder)).map((file) => file.replace(/\.json$/, ""))

const diverging = new Map(divergences.map((entry) => [entry.scenario, entry]))

describe("conformance", () => {
  for (const name of names("scenarios/")) {
    it(`conformance ${name}`, async () => {
      const scenario = read(`scenarios/${name}.json`) as Scenario
      const trace = await playScenario(scenario)
      const folder = diverging.has(name) ? "expected" : "traces"
      assert.deepStrictEqual(diffTraces(read(`${folder}/${name}.json`) as Comparable, trace), [])
      assert.deepStrictEqual(violations(scenario, trace), [])
    })
  }
})

describe("divergences", () => {
  it("are one entry and one expected trace for each scenario", () => {
    assert.deepStrictEqual([...diverging.keys()].toSorted(), names("expected/").toSorted())
    assert.strictEqual(diverging.size, divergences.length)
  })

  for (const { class: kind, reason, scenario: name } of divergences) {
    it(`${name} differs by a rule`, () => {
      const [pi, ours] = [read(`traces/${name}.json`), read(`expected/${name}.json`)] as [Trace, Trace]
      assert.notDeepEqual(diffTraces(pi, ours), [])
      assert.isNotEmpty(reason)
      assert.include<string>(classes, kind)
      assert.include<string>([...attribute(read(`scenarios/${name}.json`) as Scenario, pi, ours)], kind)
    })
  }
})

describe("scenario.ts", () => {
  const program = fileURLToPath(url("scenario.ts"))
  const play = (args: ReadonlyArray<string>, input?: string) => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [program, ...args], { encoding: "utf8", input })
    return { status, stderr, stdout }
  }
  const file = (name: string) => fileURLToPath(url(`scenarios/${name}.json`))
  const withFile = (text: string, use: (path: string) => void): void => {
    const folder = mkdtempSync(join(tmpdir(), "scenario-"))
    try {
      const path = join(folder, "given.json")
      writeFileSync(path, text)
      use(path)
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
  const refuses = (result: ReturnType<typeof play>, ...parts: ReadonlyArray<string>): void => {
    assert.strictEqual(result.status, 2)
    assert.strictEqual(result.stdout, "")
    for (const part of parts) assert.include(result.stderr, part)
    assert.notInclude(result.stderr, "    at ")
  }

  it("prints one line for each scenario, in order", () => {
    const order = ["loop-text-reply", "abort-single-tool", "errors-listener-throws-on-update"]
    const { status, stderr, stdout } = play(order.map(file))
    assert.strictEqual(stderr, "")
    assert.strictEqual(status, 0)
    const lines = stdout.split("\n")
    assert.strictEqual(lines.pop(), "")
    assert.deepStrictEqual(lines.map((line) => (JSON.parse(line) as Trace).scenario), order)
    assert.deepStrictEqual(diffTraces(read("traces/loop-text-reply.json") as Comparable, JSON.parse(lines[0]!) as Trace), [])
  })

  it("reads JSON lines from standard input and from a file", () => {
    const line = JSON.stringify(read("scenarios/loop-text-reply.json"))
    const text = `${line}\n\n${line}\n`
    const piped = play(["-"], text)
    assert.strictEqual(piped.status, 0)
    assert.strictEqual(piped.stdout.split("\n").length, 3)
    withFile(text, (path) => assert.strictEqual(play([path]).stdout, piped.stdout))
  })

  it("refuses malformed JSON, naming file and line", () => {
    const line = JSON.stringify(read("scenarios/loop-text-reply.json"))
    refuses(play(["-"], `${line}\n{"format": 1,\n`), "standard input, line 2", "not valid JSON")
    withFile("{\n  \"format\": 1,\n", (path) => refuses(play([path]), path, "not valid JSON"))
    withFile("", (path) => refuses(play([path]), path, "not valid JSON"))
  })

  it("refuses what is not a scenario", () => {
    refuses(play(["-"], "{\"format\": 1}\n"), "line 1", "not a valid scenario", "missing name")
    refuses(play(["-"], "null\n"), "not a valid scenario")
    const unknown = { ...(read("scenarios/loop-text-reply.json") as object), timeline: [{ at: 1, do: "dance" }] }
    withFile(JSON.stringify(unknown), (path) => refuses(play([path]), path, "timeline[0]"))
  })

  it("refuses what cannot be read", () => {
    refuses(play(["no-such-file.json"]), "no-such-file.json", "cannot be read")
    refuses(play([fileURLToPath(url("."))]), "cannot be read")
    refuses(play([]), "usage")
  })

  it("refuses a scenario that names a tool it does not have", () => {
    const scenario = read("scenarios/loop-text-reply.json") as Scenario
    const messages = [{ role: "system", toolsAdded: ["missing"] }]
    refuses(play(["-"], JSON.stringify({ ...scenario, agent: { ...scenario.agent, messages } })), "cannot be played", "missing")
  })
})
