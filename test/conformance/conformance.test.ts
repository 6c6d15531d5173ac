import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { attribute } from "./attribute.ts"
import { classes } from "./classes.ts"
import { diffTraces } from "./compare.mjs"
import { namesIn, readDivergences, readScenario, readTrace, url } from "./files.ts"
import { violations } from "./invariants.ts"
import { playScenario } from "./player.ts"
import type { Trace } from "./trace.ts"

/** Starting a program takes its time on a busy machine. */
const patience = { timeout: 60_000 }

const divergences = readDivergences()
const diverging = new Set(divergences.map((entry) => entry.scenario))

describe("conformance", () => {
  for (const name of namesIn("scenarios")) {
    it(`conformance ${name}`, async () => {
      const scenario = readScenario(name)
      const trace = await playScenario(scenario)
      const expected = readTrace(diverging.has(name) ? "expected" : "traces", name)
      assert.deepStrictEqual(diffTraces(expected, trace), [])
      assert.deepStrictEqual(violations(scenario, trace), [])
    })
  }
})

describe("determinism", patience, () => {
  it("I7: the same scenario gives the same bytes", async () => {
    for (const name of namesIn("scenarios")) {
      const scenario = readScenario(name)
      assert.strictEqual(JSON.stringify(await playScenario(scenario)), JSON.stringify(await playScenario(scenario)))
    }
  })
})

describe("divergences", () => {
  it("are one entry and one expected trace for each scenario", () => {
    assert.deepStrictEqual([...diverging].toSorted(), namesIn("expected"))
    assert.strictEqual(diverging.size, divergences.length)
  })

  for (const { class: kind, reason, scenario: name } of divergences) {
    it(`${name} differs by a rule`, () => {
      const pi = readTrace("traces", name)
      const ours = readTrace("expected", name)
      assert.notDeepEqual(diffTraces(pi, ours), [])
      assert.isNotEmpty(reason)
      assert.include<string>(classes, kind)
      assert.include<string>([...attribute(readScenario(name), pi, ours)], kind)
    })
  }
})

describe("scenario.ts", patience, () => {
  const scenario = readScenario("loop-text-reply")
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
    const traces: ReadonlyArray<Trace> = lines.map((line) => JSON.parse(line))
    assert.deepStrictEqual(traces.map((trace) => trace.scenario), order)
    assert.deepStrictEqual(diffTraces(readTrace("traces", order[0]!), traces[0]!), [])
  })

  it("reads JSON lines from standard input and from a file", () => {
    const line = JSON.stringify(scenario)
    const text = `${line}\n\n${line}\n`
    const piped = play(["-"], text)
    assert.strictEqual(piped.status, 0)
    assert.strictEqual(piped.stdout.split("\n").length, 3)
    withFile(text, (path) => assert.strictEqual(play([path]).stdout, piped.stdout))
  })

  it("refuses malformed JSON, naming file and line", () => {
    const line = JSON.stringify(scenario)
    refuses(play(["-"], `${line}\n{"format": 1,\n`), "standard input, line 2", "not valid JSON")
    withFile("{\n  \"format\": 1,\n", (path) => refuses(play([path]), path, "not valid JSON"))
    withFile("", (path) => refuses(play([path]), path, "not valid JSON"))
  })

  it("refuses what is not a scenario", () => {
    refuses(play(["-"], "{\"format\": 1}\n"), "line 1", "not a valid scenario", "missing name")
    refuses(play(["-"], "null\n"), "not a valid scenario")
    const unknown = { ...scenario, timeline: [{ at: 1, do: "dance" }] }
    withFile(JSON.stringify(unknown), (path) => refuses(play([path]), path, "timeline[0]"))
  })

  it("refuses what cannot be read", () => {
    refuses(play(["no-such-file.json"]), "no-such-file.json", "cannot be read")
    refuses(play([fileURLToPath(url("."))]), "cannot be read")
    refuses(play([]), "usage")
  })

  it("refuses a scenario that names a tool it does not have", () => {
    const messages = [{ role: "system", toolsAdded: ["missing"] }]
    refuses(
      play(["-"], JSON.stringify({ ...scenario, agent: { ...scenario.agent, messages } })),
      "cannot be played",
      "missing"
    )
  })
})

describe("fuzz.ts", patience, () => {
  const program = fileURLToPath(url("fuzz.ts"))
  const run = (...args: ReadonlyArray<string>) => spawnSync(process.execPath, [program, ...args], { encoding: "utf8" })

  it("tells how many seeds are equal, differ by a rule, or are unexplained", () => {
    const { status, stdout } = run("--seeds", "1-5", "--profile", "safe")
    assert.strictEqual(stdout, "safe, seeds 1-5: 5 equal, 0 differ by rule, 0 unexplained\n")
    assert.strictEqual(status, 0)
  })

  it("refuses bad arguments", () => {
    for (const args of [[], ["--seeds", "5-1"], ["--seeds", "1", "--profile", "odd"]]) {
      const { status, stderr, stdout } = run(...args)
      assert.strictEqual(status, 2)
      assert.strictEqual(stdout, "")
      assert.isNotEmpty(stderr)
      assert.notInclude(stderr, "    at ")
    }
  })
})
