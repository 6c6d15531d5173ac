/**
 * AI SDK: `streamText` with tools, its `fullStream` read to the end. It has no agent that keeps anything: a conversation is a list of
 * messages.
 */
import {
  experimental_createSteering as createSteering,
  isStepCount,
  type LanguageModel,
  type ModelMessage,
  streamText,
  type TextStreamPart,
  tool,
  type ToolSet,
  zodSchema
} from "ai"
import * as z from "zod"
import type { Contender, Measured, Workload } from "../contender.ts"
import {
  callsOf,
  echo,
  grouped,
  limitOf,
  play,
  prompt,
  recorded,
  stored,
  Tally,
  textOf,
  wakesUp,
  wakeUp
} from "./peers-play.ts"

type Model = Extract<LanguageModel, { readonly specificationVersion: "v4" }>
type PartStream = Awaited<ReturnType<Model["doStream"]>>["stream"]
type Part = PartStream extends ReadableStream<infer A> ? A : never

const usage = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 }
}

const record = (...[response, request]: Parameters<typeof callsOf>): Array<Part> => {
  const parts: Array<Part> = []
  if (response.type === "text") {
    parts.push({ type: "text-start", id: "0" })
    for (const delta of textOf(response)) parts.push({ type: "text-delta", id: "0", delta })
    parts.push({ type: "text-end", id: "0" })
  }
  for (const { id, json, pieces } of callsOf(response, request)) {
    parts.push({ type: "tool-input-start", id, toolName: "echo" })
    for (const delta of pieces) parts.push({ type: "tool-input-delta", id, delta })
    parts.push({ type: "tool-input-end", id }, { type: "tool-call", toolCallId: id, toolName: "echo", input: json })
  }
  const unified = response.type === "text" ? "stop" : "tool-calls"
  parts.push({ type: "finish", usage, finishReason: { unified, raw: undefined } })
  return parts
}

const replay = (groups: ReadonlyArray<ReadonlyArray<Part>>, wakes: boolean): PartStream => {
  let next = 0
  const advance = (controller: ReadableStreamDefaultController<Part>) => {
    for (const part of groups[next++] ?? []) controller.enqueue(part)
    if (next >= groups.length) controller.close()
  }
  const pull = wakes
    ? (controller: ReadableStreamDefaultController<Part>) => wakeUp().then(() => advance(controller))
    : advance
  return new ReadableStream({ pull }, { highWaterMark: 0 })
}

const makeModel = (workload: Workload, tally: Tally, start: number): Model => {
  const respond = recorded(workload, (...response) => grouped(workload, record(...response)))
  return {
    specificationVersion: "v4",
    provider: "bench",
    modelId: "bench",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("only streams are asked for")),
    doStream: (request) => {
      const response = respond(request.prompt.length - start)
      const stream = response === undefined
        ? new ReadableStream<Part>({ pull: tally.wait })
        : replay(response, wakesUp(workload))
      return Promise.resolve({ stream })
    }
  }
}

const makeTools = (workload: Workload, tally: Tally) => {
  const run = echo(workload, tally)
  return {
    echo: tool({
      description: "Says what it is told.",
      // Wrapped once: a bare zod schema is turned into JSON Schema again at each step and each call.
      inputSchema: zodSchema(z.object({ text: z.string() })),
      execute: ({ text }) => run(text)
    })
  }
}

const exchange = (n: number): ReadonlyArray<ModelMessage> => [
  { role: "user", content: `question ${n}` },
  {
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: `stored-${n}`, toolName: "echo", input: { text: "hi" } }]
  },
  {
    role: "tool",
    content: [{
      type: "tool-result",
      toolCallId: `stored-${n}`,
      toolName: "echo",
      output: { type: "text", value: "hi" }
    }]
  },
  { role: "assistant", content: "done" }
]

const see = (tally: Tally, part: TextStreamPart<ToolSet>): void => {
  if (part.type === "text-delta" || part.type === "tool-input-delta") tally.deltas++
  else if (part.type === "tool-result") tally.results++
  else if (part.type === "finish-step") tally.responses++
  else if (part.type === "steering-message") tally.queued++
  else if (part.type === "error") throw part.error
}

const look = () => undefined
/** Every callback there is, but those for errors. */
const hooks = {
  prepareStep: look,
  onStart: look,
  onStepStart: look,
  onLanguageModelCallStart: look,
  onLanguageModelCallEnd: look,
  onToolExecutionStart: look,
  onToolExecutionEnd: look,
  onChunk: look,
  onStepEnd: look,
  onEnd: look
}

/** `steer` hands over everything at once, `queue` one message whenever the model is done: the first goes along with the prompt. */
const queue = (messages: number) => {
  const steering = createSteering()
  void steering.steer("steer")
  for (let n = 1; n < messages; n++) void steering.queue("steer")
  return steering
}

const run = (workload: Workload): Promise<Measured> => {
  const tally = new Tally()
  const history = stored(workload, exchange)
  const model = makeModel(workload, tally, history.length + 1)
  const tools = makeTools(workload, tally)
  const limit = limitOf(workload)
  const options = {
    model,
    tools,
    stopWhen: isStepCount(Number.POSITIVE_INFINITY),
    telemetry: { isEnabled: false },
    ...(limit === undefined ? {} : { toolCallConcurrency: limit }),
    ...(workload.hooks ? hooks : {})
  }

  return play(workload, tally, () => {
    const messages = [...history]
    const steering = workload.name === "steering" ? { experimental_steering: queue(workload.messages) } : {}
    return async () => {
      messages.push({ role: "user", content: prompt })
      const result = streamText({ ...options, ...steering, messages })
      if (workload.listener === "sync") { for await (const part of result.fullStream) see(tally, part) }
      else for await (const part of result.fullStream) await Promise.resolve(see(tally, part))
      messages.push(...await result.responseMessages)
      return messages
    }
  })
}

export const contender: Contender = {
  name: "ai",
  version: "7.0.173",
  prepare: (workload) =>
    Promise.resolve(
      workload.name === "abort"
        ? "an abort drops the step whose tools run: neither its calls nor results for them remain"
        : () => run(workload)
    )
}
export default contender
