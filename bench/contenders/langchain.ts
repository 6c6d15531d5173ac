/**
 * LangChain: `createAgent`, its `stream` of messages read to the end. An agent is a compiled graph that keeps nothing without a
 * checkpointer: a conversation is the list of messages that one run hands over to the next.
 */
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager"
import { BaseChatModel } from "@langchain/core/language_models/chat_models"
import { AIMessage, AIMessageChunk, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages"
import { ChatGenerationChunk } from "@langchain/core/outputs"
import { createAgent, createMiddleware, tool } from "langchain"
import * as z from "zod"
import type { Contender, Measured, Workload } from "../contender.ts"
import {
  callsOf,
  echo,
  limitOf,
  play,
  prompt,
  recorded,
  stored,
  Tally,
  textOf,
  wakeUp,
  wakeUpEach
} from "./peers-play.ts"

// By default callbacks run in the background, and what they bring when the graph has ended is lost to the listener.
process.env["LANGCHAIN_CALLBACKS_BACKGROUND"] = "false"

const chunk = (message: AIMessageChunk): ChatGenerationChunk => new ChatGenerationChunk({ message, text: message.text })

/** A chunk for each piece and one at the end, as of a provider. Pieces that are the same share their chunk: nothing changes it. */
const record = (...[response, request]: Parameters<typeof callsOf>): Array<ChatGenerationChunk> => {
  const id = `message-${request}`
  const chunks: Array<ChatGenerationChunk> = []
  const made = new Map<string, ChatGenerationChunk>()
  for (const delta of textOf(response)) {
    const same = made.get(delta) ?? chunk(new AIMessageChunk({ id, content: delta }))
    made.set(delta, same)
    chunks.push(same)
  }
  for (const [index, call] of callsOf(response, request).entries()) {
    for (const [piece, args] of call.pieces.entries()) {
      const named = piece === 0 ? { id: call.id, name: "echo" } : {}
      const tool_call_chunks = [{ type: "tool_call_chunk" as const, index, args, ...named }]
      chunks.push(chunk(new AIMessageChunk({ id, content: "", tool_call_chunks })))
    }
  }
  chunks.push(chunk(new AIMessageChunk({ id, content: "", response_metadata: { finish_reason: "stop" } })))
  return chunks
}

class Scripted extends BaseChatModel {
  readonly #respond: (added: number) => ReadonlyArray<ChatGenerationChunk> | undefined
  readonly #start: number
  readonly #wakeUpEach: number
  readonly #wait: () => Promise<void>

  constructor(workload: Workload, tally: Tally, start: number) {
    super({})
    this.#respond = recorded(workload, record)
    this.#start = start
    this.#wakeUpEach = wakeUpEach(workload)
    this.#wait = tally.wait
  }

  _llmType(): string {
    return "bench"
  }

  override bindTools(): this {
    return this
  }

  _generate(): Promise<never> {
    return Promise.reject(new Error("only streams are asked for"))
  }

  override async *_streamResponseChunks(
    messages: Array<BaseMessage>,
    _options: this["ParsedCallOptions"],
    manager?: CallbackManagerForLLMRun
  ): AsyncGenerator<ChatGenerationChunk> {
    const chunks = this.#respond(messages.length - this.#start)
    if (chunks === undefined) await this.#wait()
    for (const [index, each] of (chunks ?? []).entries()) {
      if (this.#wakeUpEach > 0 && index % this.#wakeUpEach === 0) await wakeUp()
      yield each
      // What a listener sees is told here, as every integration does.
      await manager?.handleLLMNewToken(each.text, undefined, undefined, undefined, undefined, { chunk: each })
    }
  }
}

/** Every hook there is. */
const hooks = createMiddleware({
  name: "look",
  beforeAgent: () => undefined,
  beforeModel: () => undefined,
  wrapModelCall: (request, handler) => handler(request),
  wrapToolCall: (request, handler) => handler(request),
  afterModel: () => undefined,
  afterAgent: () => undefined
})

const makeAgent = (workload: Workload, tally: Tally, start: number) => {
  const run = echo(workload, tally)
  return createAgent({
    model: new Scripted(workload, tally, start),
    tools: [
      tool(({ text }: { readonly text: string }) => run(text), {
        name: "echo",
        description: "Says what it is told.",
        schema: z.object({ text: z.string() })
      })
    ],
    middleware: workload.hooks ? [hooks] : []
  })
}

const exchange = (n: number): ReadonlyArray<BaseMessage> => [
  new HumanMessage({ id: `question-${n}`, content: `question ${n}` }),
  new AIMessage({
    id: `call-${n}`,
    content: "",
    tool_calls: [{ type: "tool_call", id: `stored-${n}`, name: "echo", args: { text: "hi" } }]
  }),
  new ToolMessage({ id: `result-${n}`, content: "hi", tool_call_id: `stored-${n}`, name: "echo" }),
  new AIMessage({ id: `answer-${n}`, content: "done" })
]

const see = (tally: Tally, message: BaseMessage): void => {
  if (ToolMessage.isInstance(message)) tally.results++
  else if (AIMessageChunk.isInstance(message)) {
    if (message.response_metadata["finish_reason"] !== undefined) tally.responses++
    else if (message.text !== "" || (message.tool_call_chunks?.length ?? 0) > 0) tally.deltas++
  }
}

/** Whether a conversation goes on after its first run, or is kept. */
const goesOn = (workload: Workload): boolean => workload.name === "transcript" || workload.name === "memory"

const run = (workload: Workload): Promise<Measured> => {
  const tally = new Tally()
  const history = stored(workload, exchange)
  const agent = makeAgent(workload, tally, history.length + 1)
  const limit = limitOf(workload)
  const options = {
    streamMode: goesOn(workload) ? ["messages" as const, "values" as const] : ["messages" as const],
    recursionLimit: Number.MAX_SAFE_INTEGER,
    ...(limit === undefined ? {} : { maxConcurrency: limit })
  }

  return play(workload, tally, () => {
    let messages = history
    return async () => {
      const stream = await agent.stream({ messages: [...messages, new HumanMessage(prompt)] }, options)
      for await (const [mode, payload] of stream) {
        if (mode === "values") messages = payload.messages
        else if (workload.listener === "sync") see(tally, payload[0])
        else await Promise.resolve(see(tally, payload[0]))
      }
      return messages
    }
  })
}

const cannot = (workload: Workload): string | undefined => {
  if (workload.name === "steering") return "has no queue of messages"
  if (workload.name === "abort") return "an abort fails the run, without results for the calls"
  return undefined
}

export const contender: Contender = {
  name: "langchain",
  version: "1.5.14",
  prepare: (workload) => Promise.resolve(cannot(workload) ?? (() => run(workload)))
}
export default contender
