/**
 * Tools that echo, count, wait for the test, or return what they should not.
 */
import { Deferred, Effect, Schema } from "effect"
import { Tools } from "../../src/index.ts"

type Extra = Partial<Pick<Parameters<typeof Tools.dynamic>[1], "executionMode" | "prepareArguments">>

/** A value that is not what it seems: what code without types may hand over. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion, typescript/no-unnecessary-type-parameters -- that is the point
export const untyped = <A>(value: unknown): A => value as A

/** A tool without parameters. */
export const tool = <E = never, R = never>(
  name: string,
  execute: (call: Tools.CallContext) => Effect.Effect<Tools.ToolOutput, E, R>,
  options: Extra = {}
): Tools.Tool<R> =>
  Tools.make(name, {
    description: `The tool ${name}`,
    parameters: Schema.Struct({}),
    execute: (_, call) => execute(call),
    ...options
  })

/** A tool whose result is a value of any shape, allowed or not. */
export const returning = (value: unknown, name = "odd"): Tools.Tool =>
  tool(name, () => Effect.succeed(untyped<Tools.ToolOutput>(value)))

/** `echo({ x })` gives `x`. */
export const echo = Tools.make("echo", {
  description: "Gives back what it gets.",
  parameters: Schema.Struct({ x: Schema.optionalKey(Schema.String) }),
  execute: ({ x = "" }) => Effect.succeed(x)
})

/** `slow({ ms })` sleeps and gives `slept MS`. */
export const slow = Tools.make("slow", {
  description: "Takes its time.",
  parameters: Schema.Struct({ ms: Schema.Finite }),
  execute: ({ ms }) => Effect.as(Effect.sleep(ms), `slept ${ms}`)
})

/** A tool that counts its calls and remembers what it got. */
export const counting = (name = "write") => {
  const ran: Array<unknown> = []
  return {
    ran,
    tool: Tools.dynamic(name, {
      description: "Has a side effect.",
      parameters: { type: "object" },
      execute: (args) =>
        Effect.sync(() => {
          ran.push(args)
          return `ran ${ran.length}`
        })
    })
  }
}

/** A tool that begins, and ends when the test opens it. */
export const gated = Effect.fnUntraced(function*(name = "gated") {
  const begun = yield* Deferred.make<void>()
  const open = yield* Deferred.make<Tools.ToolOutput>()
  return {
    begun: Deferred.await(begun),
    open: (output: Tools.ToolOutput = "opened") => Deferred.succeed(open, output),
    tool: tool(name, () => Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(open)))
  }
})

/** The text of a tool's result. */
export const resultText = (result: Tools.ToolResult): string =>
  (result.content ?? []).map((block) => block.type === "text" ? block.text : `<${block.type}>`).join("\n")
