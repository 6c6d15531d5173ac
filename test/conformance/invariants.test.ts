import { assert, describe, it } from "@effect/vitest"
import { attribute } from "./attribute.ts"
import { readScenario, readTrace } from "./files.ts"
import { violations } from "./invariants.ts"
import type { Trace, TraceEvent } from "./trace.ts"

/** Names of the invariants that a changed trace of a scenario violates. */
const violated = (name: string, change: (trace: Trace) => Trace): ReadonlyArray<string> => {
  const problems = violations(readScenario(name), change(readTrace("traces", name)))
  return [...new Set(problems.map((problem) => problem.slice(0, 2)))]
}

const withoutEvents = (drop: (event: TraceEvent) => boolean) => (trace: Trace): Trace => ({
  ...trace,
  events: trace.events.filter((event) => !drop(event))
})

describe("invariants", () => {
  it("hold for the trace of a tool turn as it is", () => {
    assert.deepStrictEqual(violated("loop-tool-turn-sequence", (trace) => trace), [])
  })

  it("I1 misses the result of a call", () => {
    const drop = withoutEvents((event) =>
      event.type.startsWith("message_") && "message" in event && event.message.role === "toolResult"
    )
    assert.include(violated("loop-tool-turn-sequence", drop), "I1")
  })

  it("I1 misses a result in a request", () => {
    const cut = (trace: Trace): Trace => ({
      ...trace,
      requests: trace.requests.map((request) => ({
        ...request,
        messages: request.messages.filter((message) => message.role !== "toolResult")
      }))
    })
    assert.deepStrictEqual(violated("loop-tool-turn-sequence", cut), ["I1"])
  })

  it("I2 finds the request after the abort that pi makes", () => {
    assert.deepStrictEqual(violated("abort-during-api-key", (trace) => trace), ["I2"])
  })

  it("I3 misses an end", () => {
    for (const type of ["agent_end", "turn_end", "message_end", "tool_execution_end"]) {
      assert.include(violated("loop-tool-turn-sequence", withoutEvents((event) => event.type === type)), "I3")
    }
  })

  it("I4 finds the message that pi loses", () => {
    assert.include(violated("queues-steer-lost-when-prepare-next-turn-throws", (trace) => trace), "I4")
  })

  it("I4 finds a message that is delivered and still queued", () => {
    const keep = (trace: Trace): Trace => ({
      ...trace,
      final: { ...trace.final, steering: [{ role: "user", content: "turn around" }] }
    })
    assert.deepStrictEqual(violated("queues-steer-during-tool", keep), ["I4"])
  })
})

describe("attribution", () => {
  it("explains no difference in a scenario that no rule is about", () => {
    const scenario = readScenario("loop-tool-turn-sequence")
    const trace = readTrace("traces", "loop-tool-turn-sequence")
    trace.events.forEach((_, index) => {
      const ours = { ...trace, events: trace.events.toSpliced(index, 1) }
      assert.deepStrictEqual([...attribute(scenario, trace, ours)], [])
    })
  })

  it("explains no difference before the moment a rule is about", () => {
    const scenario = readScenario("abort-single-tool")
    const pi = readTrace("traces", "abort-single-tool")
    const ours = readTrace("expected", "abort-single-tool")
    assert.deepStrictEqual([...attribute(scenario, pi, ours)], ["request-after-abort"])
    assert.deepStrictEqual([...attribute(scenario, pi, { ...ours, events: ours.events.slice(1) })], [])
  })
})
