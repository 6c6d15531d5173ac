/**
 * The bytes of the contract give the same final message in pi-ai's own adapter, called as it is, and in all three of ours:
 * content, stop reason, tokens. `test/openai/differential.test.ts` has what differs beyond the contract.
 */
import { streamSimple } from "@earendil-works/pi-ai/api/openai-completions"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import type { Messages, StreamFn } from "../src/index.ts"
import { EffectAi } from "../src/language-model/index.ts"
import { PiAi } from "../src/pi-ai/index.ts"
import { StreamFnContract } from "../src/testing/index.ts"
import { lastMessage, layer } from "./openai/ask.ts"
import * as CompletionsModel from "./utils/completionsModel.ts"
import * as Server from "./utils/completionsServer.ts"
import { finalMessage, piModel } from "./utils/yardstick.ts"

const adapters: Readonly<Record<string, (url: string) => Layer.Layer<StreamFn.StreamFn>>> = {
  "OpenAi.layer": layer,
  "PiAi.layer": () => PiAi.layer(streamSimple, { apiKey: Redacted.make("k") }),
  "EffectAi.layer": (url) => EffectAi.layer().pipe(Layer.provide(CompletionsModel.layer(url)))
}

/** Without what is the business of one of them: signatures, ids, prices. */
const outline = ({ content, stopReason, usage }: Messages.AssistantMessage): object => {
  const { cacheRead, cacheWrite, input, output, totalTokens } = usage
  return {
    content: content.map((block) =>
      block.type === "text"
        ? { text: block.text }
        : block.type === "thinking"
        ? { thinking: block.thinking }
        : { id: block.id, name: block.name, arguments: block.arguments }
    ),
    stopReason,
    usage: { cacheRead, cacheWrite, input, output, totalTokens }
  }
}

describe("pi-ai's adapter and ours give the same message", { concurrent: true }, () => {
  for (const { exchange, name } of StreamFnContract.exchanges) {
    it.live(name, () =>
      Effect.scoped(Effect.gen(function*() {
        const server = yield* Server.serve(exchange)
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its messages are ours
        const theirs = outline((yield* finalMessage(server.url)) as unknown as Messages.AssistantMessage)
        for (const [adapter, layerOf] of Object.entries(adapters)) {
          const model = PiAi.model(piModel(server.url))
          const ours = outline(yield* lastMessage({ model }).pipe(Effect.provide(layerOf(server.url))))
          assert.deepStrictEqual(ours, theirs, adapter)
        }
      })))
  }
})
