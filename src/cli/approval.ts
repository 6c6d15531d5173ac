/**
 * Who is asked before a tool changes something: a person, or nobody.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Hooks from "../Hooks.ts"
import type { ToolCall } from "../Messages.ts"

export type Answer = "once" | "always" | "no"

const isReadOnly = ({ context, toolCall }: Hooks.ToolCallRequest): boolean =>
  context.tools.find((tool) => tool.name === toolCall.name)?.annotations.readOnly === true

/** Lets everything through. */
export const allowAll: Hooks.Hook = Hooks.beforeToolCall(() => Hooks.allow)

/** Without anybody to ask, what changes something is refused. */
export const refuseChanges: Hooks.Hook = Hooks.beforeToolCall((request) =>
  isReadOnly(request)
    ? Hooks.allow
    : Hooks.block(
      `The tool "${request.toolCall.name}" may change something, and there is nobody to ask. Started with --yes it would be allowed.`
    )
)

/** Asks a person, one call at a time. */
export const askFirst = (ask: (call: ToolCall) => Effect.Effect<Answer>): Effect.Effect<Hooks.Hook> =>
  Effect.map(Semaphore.make(1), (oneAtATime) => {
    const allowed = new Set<string>()
    return Hooks.beforeToolCall((request) => {
      const { name } = request.toolCall
      if (isReadOnly(request) || allowed.has(name)) return Hooks.allow
      return oneAtATime.withPermits(1)(Effect.suspend(() => {
        if (allowed.has(name)) return Effect.succeed(Hooks.allow)
        return Effect.map(ask(request.toolCall), (answer) => {
          if (answer === "always") allowed.add(name)
          return answer === "no" ? Hooks.block("The user did not allow this call.") : Hooks.allow
        })
      }))
    })
  })
