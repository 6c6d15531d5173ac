/** An abort at every place of one run that passes them all; see `utils/journey.ts`. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Messages, type Tools } from "../src/index.ts"
import { Transcript } from "../src/testing/index.ts"
import { ofType } from "./utils/events.ts"
import { violations } from "./utils/invariants.ts"
import * as Journey from "./utils/journey.ts"
import { finish } from "./utils/play.ts"

const stopped = "U A{aborted}"
const oneCall = "U A[a]{aborted}"
const twoCalls = "U A[a,b]{aborted}"
const none = "U A[a,b] R(a!) R(b!)"
const onlyA = "U A[a,b] R(a) R(b!)"
const onlyB = "U A[a,b] R(a!) R(b)"
const both = "U A[a,b] R(a) R(b)"
const secondStopped = `${both} U A{aborted}`
const second = `${both} U A`
const thirdStopped = `${second} U A{aborted}`
const third = `${second} U A`

/** Where the run is and what the transcript is when it is aborted there. */
type Row = readonly [transcript: string, ...labels: ReadonlyArray<string>]

const beforeTools: ReadonlyArray<Row> = [
  [stopped, "on agent_start 1", "on turn_start 1", "on message_start user 1", "on message_end user 1"],
  [stopped, "prepareRequest 1", "transformContext 1", "convertToLlm 1", "apiKey 1", "connect 1", "stream start 1"],
  [stopped, "on message_start assistant 1", "stream thinking_start 1", "on thinking_start 1"],
  [stopped, "stream thinking_delta 1", "on thinking_delta 1", "stream thinking_end 1", "on thinking_end 1"],
  [stopped, "stream text_start 1", "on text_start 1", "stream text_delta 1", "on text_delta 1"],
  [stopped, "stream text_delta 2", "on text_delta 2", "stream text_end 1", "on text_end 1", "stream toolcall_start 1"],
  [oneCall, "on toolcall_start 1", "stream toolcall_delta 1", "on toolcall_delta 1", "stream toolcall_delta 2"],
  [oneCall, "on toolcall_delta 2", "stream toolcall_end 1", "on toolcall_end 1", "stream toolcall_start 2"],
  [twoCalls, "on toolcall_start 2", "stream toolcall_end 2", "on toolcall_end 2", "stream done 1"],
  [none, "on message_end assistant 1"]
]

const behindTools: ReadonlyArray<Row> = [
  [both, "finishTurn 1", "on turn_end 1", "prepareNextTurn 1"],
  [`${both} A{aborted}`, "on turn_start 2", "on message_start system 1", "on message_end system 1"],
  [secondStopped, "on message_start user 2", "on message_end user 2", "prepareRequest 2", "transformContext 2"],
  [secondStopped, "convertToLlm 2", "apiKey 2", "connect 2", "stream start 2", "on message_start assistant 2"],
  [secondStopped, "stream text_start 2", "on text_start 2", "stream text_delta 3", "on text_delta 3"],
  [secondStopped, "stream text_end 2", "on text_end 2", "stream done 2"],
  [second, "on message_end assistant 2", "finishTurn 2", "on turn_end 2", "prepareNextTurn 2"],
  [`${second} A{aborted}`, "on turn_start 3", "on message_start system 2", "on message_end system 2"],
  [thirdStopped, "on message_start user 3", "on message_end user 3", "prepareRequest 3", "transformContext 3"],
  [thirdStopped, "convertToLlm 3", "apiKey 3", "connect 3", "stream start 3", "on message_start assistant 3"],
  [thirdStopped, "stream text_start 3", "on text_start 3", "stream text_delta 4", "on text_delta 4"],
  [thirdStopped, "stream text_end 3", "on text_end 3", "stream done 3"],
  [third, "on message_end assistant 3", "finishTurn 3", "on turn_end 3"]
]

const parallelTools: ReadonlyArray<Row> = [
  [none, "on tool_execution_start 1", "beforeToolCall 1", "on tool_execution_start 2", "beforeToolCall 2"],
  // While one call waits the other one ends.
  [onlyB, "tool a 1", "afterToolCall 1"],
  [onlyA, "tool b 1", "afterToolCall 2"],
  // A call's end waits until its progress is delivered, and the other's progress waits behind that.
  [none, "on tool_execution_update 1"],
  [onlyA, "on tool_execution_update 2"],
  // The second call has ended, too; only its event waits.
  [both, "on tool_execution_end 1", "on tool_execution_end 2"],
  [both, "on message_start toolResult 1", "on message_end toolResult 1"],
  [both, "on message_start toolResult 2", "on message_end toolResult 2"]
]

const sequentialTools: ReadonlyArray<Row> = [
  [none, "on tool_execution_start 1", "beforeToolCall 1", "tool a 1", "on tool_execution_update 1", "afterToolCall 1"],
  [onlyA, "on tool_execution_end 1", "on message_start toolResult 1", "on message_end toolResult 1"],
  [onlyA, "on tool_execution_start 2", "beforeToolCall 2", "tool b 1", "on tool_execution_update 2", "afterToolCall 2"],
  [both, "on tool_execution_end 2", "on message_start toolResult 2", "on message_end toolResult 2"]
]

const flat = (rows: ReadonlyArray<Row>): ReadonlyArray<readonly [label: string, transcript: string]> =>
  rows.flatMap(([transcript, ...labels]) => labels.map((label) => [label, transcript] as const))

const parallel = flat([...beforeTools, ...parallelTools, ...behindTools])
const sequential = flat([...beforeTools, ...sequentialTools, ...behindTools])

/** When a run is aborted by the test: everything that can happen before has happened. */
const abortAt = 60_000

const hour = Effect.sleep("1 hour")

type Made = Effect.Success<ReturnType<typeof Journey.make>>

/** What the run had done when it was aborted. */
interface AtAbort {
  readonly requests: number
  readonly visits: number
}

/** The invariants, now. */
const check = ({ accepted, agent, before, last, model, recorder }: Made, atAbort?: AtAbort) =>
  Effect.gen(function*() {
    const { followUps, steering } = yield* agent.queued
    const requests = yield* model.requests
    const transcript = yield* agent.messages
    const found = violations({
      events: recorder.events,
      before,
      transcript,
      requests,
      ...(atAbort === undefined ? {} : { requestsAtAbort: atAbort.requests, requestsAtEnd: requests.length }),
      accepted,
      queued: [...steering, ...followUps]
    })
    assert.deepStrictEqual([...found, ...recorder.changed], [])
    assert.deepStrictEqual(last.shown, recorder.shown)
    return transcript
  })

const isListener = (label: string): boolean => label.startsWith("on ")

/** Everything that must hold when a run was aborted at a label, and for ever after. */
const assertAborted = (
  journey: Made,
  { expected, label }: Case,
  atAbort: AtAbort,
  leftBehind: boolean
) =>
  Effect.gen(function*() {
    const { agent, prompt, recorder, visits } = journey
    const transcript = yield* check(journey, atAbort)
    assert.strictEqual(Transcript.print(transcript), expected)
    assert.strictEqual(recorder.shown.at(-1), "agent_end Aborted")
    for (const message of transcript) {
      if (message.role === "assistant") {
        const aborted = message.stopReason === "aborted"
        assert.strictEqual(message.errorMessage, aborted ? "Request was aborted" : undefined)
      }
      if (message.role === "toolResult" && message.isError) {
        const text = Messages.text(message)
        const isLeft = leftBehind && label.startsWith(`tool ${message.toolCallId}`)
        if (isLeft) assert.match(text, /^Operation aborted.*unknown/s)
        else assert.strictEqual(text, "Operation aborted")
      }
    }
    const state = yield* agent.state
    assert.deepStrictEqual([state.isStreaming, state.streamingMessage, [...state.pendingToolCalls]], [
      false,
      undefined,
      []
    ])
    assert.strictEqual(state.errorMessage, expected.endsWith("{aborted}") ? "Request was aborted" : undefined)

    // A3: nothing was called but finishTurn, once for every turn, and the listeners.
    const since = visits.slice(atAbort.visits)
    assert.deepStrictEqual(since.filter((visit) => !isListener(visit) && !visit.startsWith("finishTurn ")), [])
    const finished = visits.filter((visit) => visit.startsWith("finishTurn ")).length
    // A turn that was not open at the abort needs none.
    if (label !== "on agent_start 1") assert.strictEqual(finished, ofType(recorder.events, "turn_end").length)
    // A listener that is left behind is told when it has finished the event it has: one event at a time (H3).
    if (leftBehind && isListener(label)) assert.deepStrictEqual(since.filter(isListener), [])
    else assert.include(since, "on agent_end 1")

    // The next prompt works, whatever was left behind; queued messages are delivered.
    const next = yield* Effect.forkChild(prompt("next"))
    yield* TestClock.adjust("10 minutes")
    assert.isTrue(Journey.ended(next))
    const { outcome } = yield* Fiber.join(next)
    assert.deepInclude(outcome, { _tag: "Completed" })
    yield* check(journey)

    // A4: what was left behind has no part in it any more.
    const { bytes } = recorder
    const requests = yield* journey.requests
    yield* TestClock.adjust("5 hours")
    assert.strictEqual(recorder.bytes, bytes)
    assert.strictEqual(yield* journey.requests, requests)
    assert.include(visits, "on agent_end 1")
    assert.deepStrictEqual(yield* check(journey), yield* agent.messages)
  })

interface Case {
  readonly label: string
  readonly expected: string
  readonly toolExecution: Tools.ExecutionMode
}

/** Lets the run wait at the label, aborts it, twice, and checks everything. */
const aborted = (
  { expected, label, toolExecution }: Case,
  options: {
    readonly action: Journey.Action
    /** How long the abort takes. */
    readonly settlesAfter: number
    readonly gracePeriod?: number
    readonly leftBehind?: boolean
    readonly by?: "abort" | "interruption"
  }
) =>
  Effect.gen(function*() {
    const journey = yield* Journey.make({
      at: label,
      action: options.action,
      toolExecution,
      deaf: options.leftBehind === true,
      ...(options.gracePeriod === undefined ? {} : { gracePeriod: options.gracePeriod })
    })
    const run = yield* Effect.forkChild(Journey.timed(journey.prompt("go")))
    yield* TestClock.adjust(abortAt)
    assert.include(journey.visits, label)
    const atAbort = { requests: yield* journey.requests, visits: journey.visits.length }
    const abort = yield* Effect.forkChild(
      Journey.timed(options.by === "interruption" ? Fiber.interrupt(run) : journey.agent.abort),
      { startImmediately: true }
    )
    const again = yield* Effect.forkChild(Journey.timed(journey.agent.abort), { startImmediately: true })
    if (options.settlesAfter > 0) {
      yield* TestClock.adjust(options.settlesAfter - 1)
      assert.isFalse(Journey.ended(again))
      assert.isFalse(Journey.ended(abort))
      assert.isFalse(Journey.ended(run))
      yield* TestClock.adjust(1)
    } else yield* TestClock.adjust(0)
    const [, settledAt] = yield* Fiber.join(abort)
    assert.strictEqual(settledAt, abortAt + options.settlesAfter)
    assert.strictEqual((yield* Fiber.join(again))[1], settledAt)
    const exit = yield* Fiber.await(run)
    if (options.by === "interruption") assert.isTrue(Exit.hasInterrupts(exit))
    else {
      assert(Exit.isSuccess(exit))
      const [result, at] = exit.value
      assert.strictEqual(at, settledAt)
      assert.strictEqual(result.outcome._tag, "Aborted")
      assert.deepStrictEqual(result.messages, ofType(journey.recorder.events, "agent_end")[0]?.messages)
    }
    yield* assertAborted(journey, { expected, label, toolExecution }, atAbort, options.leftBehind ?? false)
  }).pipe(Effect.scoped)

const cases: ReadonlyArray<Case> = [
  ...parallel.map(([label, expected]) => ({ label, expected, toolExecution: "parallel" as const })),
  ...flat(sequentialTools).map(([label, expected]) => ({ label, expected, toolExecution: "sequential" as const }))
]

describe("Abort", () => {
  for (const [mode, labels] of [["parallel", parallel], ["sequential", sequential]] as const) {
    it.effect(`A1: the ${mode} journey passes every place that is aborted below`, () =>
      Effect.gen(function*() {
        const { agent, prompt, recorder, visits } = yield* Journey.make({ toolExecution: mode })
        yield* finish(prompt("go"))
        assert.strictEqual(Transcript.print(yield* agent.messages), third)
        assert.strictEqual(recorder.shown.at(-1), "agent_end Completed")
        const expected = new Set([...labels.map(([label]) => label), "on agent_end 1"])
        assert.deepStrictEqual(new Set(visits), expected)
      }).pipe(Effect.scoped))
  }

  for (const each of cases) {
    const { label, toolExecution } = each
    const place = `${label}, ${toolExecution}`

    if (!isListener(label)) {
      it.effect(`A1, A2, A3: at ${place}`, () =>
        Effect.gen(function*() {
          const log: Array<string> = []
          const polite: Journey.Action = () =>
            Effect.onInterrupt(hour, () => Effect.sync(() => void log.push("finalizer")))
          yield* aborted(each, { action: polite, settlesAfter: 0 })
          assert.deepStrictEqual(log, ["finalizer"])
        }))

      it.effect(`A4: a finalizer at ${place} is awaited within the grace`, () =>
        Effect.gen(function*() {
          const log: Array<string> = []
          const polite: Journey.Action = () =>
            Effect.onInterrupt(hour, () =>
              Effect.andThen(Effect.sleep(600), Effect.sync(() => void log.push("finalizer"))))
          yield* aborted(each, { action: polite, settlesAfter: 600 })
          assert.deepStrictEqual(log, ["finalizer"])
        }))

      it.effect(`A1: by interrupting prompt's fiber at ${place}`, () =>
        aborted(each, { action: () => hour, settlesAfter: 0, by: "interruption" }))
    } else {
      it.effect(`A4: a listener finishes the event it has within the grace, at ${place}`, () =>
        Effect.gen(function*() {
          const log: Array<string> = []
          const settled: Journey.Action = () =>
            Effect.gen(function*() {
              const now = yield* Clock.currentTimeMillis
              yield* Effect.sleep(abortAt + 300 - now)
              log.push("finished")
            })
          yield* aborted(each, { action: settled, settlesAfter: 300 })
          assert.deepStrictEqual(log, ["finished"])
        }))
    }

    it.effect(`A4, B04: ${isListener(label) ? "a busy listener" : "who is deaf"} at ${place} is left behind`, () =>
      aborted(each, { action: () => Effect.uninterruptible(hour), settlesAfter: 1000, leftBehind: true }))

    it.effect(`A4, B04: with a grace of 0 at once, at ${place}`, () =>
      aborted(each, { action: () => Effect.uninterruptible(hour), settlesAfter: 0, gracePeriod: 0, leftBehind: true }))
  }

  // An abort from inside comes at the instant the place is reached: the other call has not ended then.
  const inside: Record<string, string> = {
    "tool a 1": none,
    "tool b 1": none,
    "on tool_execution_update 2": none,
    "afterToolCall 1": none,
    "on tool_execution_end 1": onlyA
  }
  for (const { expected: after, label, toolExecution } of cases) {
    const expected = toolExecution === "parallel" ? inside[label] ?? after : after
    it.effect(`A1: from inside it returns at once, at ${label}, ${toolExecution}`, () =>
      Effect.gen(function*() {
        const log: Array<unknown> = []
        const atAbort = { requests: 0, visits: 0 }
        // Cannot be cut: what follows the abort shows that it has returned.
        const action: Journey.Action = ({ agent, requests, visits }) =>
          Effect.uninterruptible(Effect.gen(function*() {
            const { _tag } = yield* Effect.flip(agent.awaitIdle)
            const now = yield* Clock.currentTimeMillis
            atAbort.requests = yield* requests
            atAbort.visits = visits.length
            yield* agent.abort
            log.push(_tag, (yield* Clock.currentTimeMillis) - now)
          })).pipe(Effect.orDie)
        const journey = yield* Journey.make({ at: label, action, toolExecution })
        const { outcome } = yield* finish(journey.prompt("go"))
        assert.deepStrictEqual(log, ["AgentBusy", 0])
        assert.strictEqual(outcome._tag, "Aborted")
        yield* assertAborted(journey, { expected, label, toolExecution }, atAbort, false)
      }).pipe(Effect.scoped))
  }
})
