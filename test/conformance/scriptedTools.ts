/** The scripted tools of SCENARIO.md, section 4. */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Tools from "../../src/Tools.ts"
import { json, normResult } from "./normalize.mjs"
import { type Draft, ScriptedFailure, type Stage, wait } from "./stage.ts"
import type { TraceExecution } from "./trace.ts"
import type { Behaviour, ToolDefinition } from "./types.ts"
import { behaviourOf, compact, declarationIn, prepareArguments, resultIn } from "./values.mjs"

type Output = Effect.Effect<Tools.ToolOutput, unknown>

/** Runs the nested calls of a behaviour; the result tells how they went. */
const nested = (stage: Stage, calls: NonNullable<Behaviour["nested"]>, call: Tools.CallContext): Output =>
  Effect.map(
    Effect.forEach(calls, (inner) => {
      const keys = inner.tools ?? (stage.scenario.tools ?? []).map((tool) => tool.key ?? tool.name)
      return call.runToolCall(
        { id: inner.call, name: inner.tool, arguments: structuredClone(inner.args ?? {}) },
        { tools: keys.map(stage.tool), onUpdate: call.update }
      )
    }),
    (outcomes) =>
      Tools.result({
        text: outcomes.map((o) => `${o.toolCall.id}:${o.isError ? "error" : "ok"}`).join(" "),
        details: {
          outcomes: outcomes.map((o) =>
            compact({ call: o.toolCall.id, isError: o.isError, result: normResult(o.result) })
          )
        }
      })
  )

/** Progress at its times, also after the tool has settled; interrupting what is returned drops what is left. */
const updates = Effect.fnUntraced(function*(behaviour: Behaviour, call: Tools.CallContext) {
  const fibers: Array<Fiber.Fiber<void>> = []
  for (const { at, content, details } of behaviour.updates ?? []) {
    const update = call.update(resultIn(compact({ content: content ?? "", details })))
    if (at > 0) {
      fibers.push(yield* Effect.forkDetach(Effect.andThen(wait(at), update), { startImmediately: true }))
    } else yield* update
  }
  return fibers
})

const execution = (
  stage: Stage,
  behaviour: Behaviour,
  call: Tools.CallContext,
  settle: (how: TraceExecution["how"] & string) => void
): Output =>
  Effect.uninterruptibleMask(Effect.fnUntraced(function*(restore) {
    yield* stage.inner(behaviour.do, `tool:${call.toolCall.id}`)
    const progress = yield* updates(behaviour, call)
    const mode = behaviour.onAbort ?? "stop"
    const stop = Effect.suspend(() => {
      for (const fiber of progress) fiber.interruptUnsafe()
      return Effect.map(wait(typeof mode === "object" ? mode.after : 0), () => settle("aborted"))
    })
    const settled = Effect.suspend((): Output => {
      if (behaviour.throws !== undefined) {
        settle("threw")
        return Effect.fail(behaviour.throwsRaw ? behaviour.throws : new ScriptedFailure({ message: behaviour.throws }))
      }
      settle("returned")
      return Effect.succeed(resultIn(behaviour))
    })
    const calls = behaviour.nested
    const work: Output = calls === undefined
      ? settled
      : Effect.tap(nested(stage, calls, call), () => Effect.sync(() => settle("returned")))
    if (mode !== "ignore") {
      return yield* Effect.onInterrupt(restore(Effect.andThen(wait(behaviour.delay), work)), () => stop)
    }
    yield* wait(behaviour.delay)
    // Only the wait is deaf; the nested calls have rules of their own.
    return yield* calls === undefined ? work : Effect.onInterrupt(restore(work), () => stop)
  }))

export const fillRegistry = (stage: Stage): void => {
  const counts = new Map<string, number>()
  const build = (definition: ToolDefinition): Tools.Tool => {
    const { name, prepareArguments: rule } = definition
    const { description, parameters } = declarationIn(definition)
    return Tools.dynamic(name, {
      ...compact({ label: definition.label, executionMode: definition.executionMode }),
      description,
      parameters,
      ...(rule && { prepareArguments: (args) => prepareArguments({ ...rule, inPlace: false }, args) }),
      execute: (args, call) =>
        Effect.suspend(() => {
          const nth = (counts.get(name) ?? 0) + 1
          counts.set(name, nth)
          const behaviour = behaviourOf(definition, call.toolCall.id, nth, args)
          const record: Draft<TraceExecution> = { t: stage.now(), call: call.toolCall.id, tool: name, args: json(args) }
          stage.recording.executions.push(record)
          return execution(stage, behaviour, call, (how) => {
            record.end = stage.now()
            record.how = how
          })
        })
    })
  }
  for (const definition of stage.scenario.tools ?? []) {
    stage.registry.set(definition.key ?? definition.name, build(definition))
  }
}
