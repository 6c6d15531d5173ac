/** The program with effect/ai, without the loop that it does not have. */
import * as Chat from "effect/ai/Chat"
import type * as LanguageModel from "effect/ai/LanguageModel"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

const tools = Toolkit.make(
  Tool.make("echo", {
    description: "Says what it is told.",
    parameters: Schema.Struct({ text: Schema.String }),
    success: Schema.String
  })
)

const handlers = tools.toLayer({ echo: ({ text }) => Effect.succeed(text) })

const program = Effect.gen(function*() {
  const chat = yield* Chat.fromPrompt("You echo.")
  const toolkit = yield* tools
  yield* Stream.runDrain(chat.streamText({ prompt: "go", toolkit }))
})

export const main = (model: Layer.Layer<LanguageModel.LanguageModel>): Promise<void> =>
  Effect.runPromise(Effect.provide(program, [handlers, model]))
