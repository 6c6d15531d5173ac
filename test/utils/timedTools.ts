/** Tools of which nothing but their timing matters. */
import { Effect, Schema } from "effect"
import { Tools } from "../../src/index.ts"

const noParameters = Schema.Struct({})

interface Options {
  readonly executionMode?: Tools.ExecutionMode
}

/** A tool without parameters. */
export const tool = <E = never, R = never>(
  name: string,
  execute: (call: Tools.CallContext) => Effect.Effect<Tools.ToolOutput, E, R>,
  options: Options = {}
): Tools.Tool<R> =>
  Tools.make(name, {
    description: `The tool ${name}.`,
    parameters: noParameters,
    execute: (_, call) => execute(call),
    ...options
  })

/** Returns at once. */
export const quick = (name: string, output: Tools.ToolOutput = "done"): Tools.Tool =>
  tool(name, () => Effect.succeed(output))

/** Sleeps and can be interrupted. */
export const slow = (name: string, millis: number, output: Tools.ToolOutput = "done"): Tools.Tool =>
  tool(name, () => Effect.as(Effect.sleep(millis), output))

/** Sleeps and cannot be interrupted. */
export const deaf = (name: string, millis: number, output: Tools.ToolOutput = "done"): Tools.Tool =>
  tool(name, () => Effect.uninterruptible(Effect.as(Effect.sleep(millis), output)))

/** Returns its argument `text`. */
export const echo = Tools.make("echo", {
  description: "Returns its argument.",
  parameters: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) => Effect.succeed(text)
})

/** Asks the run to stop. */
export const terminator = (name: string): Tools.Tool => quick(name, Tools.result({ text: "bye", terminate: true }))

/** Notes that it ran. */
export const noting = (name: string, ran: Array<string>): Tools.Tool =>
  tool(name, ({ toolCall }) =>
    Effect.sync(() => {
      ran.push(toolCall.id)
      return "done"
    }))
