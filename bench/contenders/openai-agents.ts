/**
 * OpenAI Agents: an `Agent` run by a `Runner` with streaming, its events read to the end. An agent is a definition and keeps nothing: a
 * conversation is the list of items that one run hands over to the next.
 */
import {
  Agent,
  type AgentInputItem,
  type CallModelInputFilterArgs,
  type Model,
  Runner,
  type RunStreamEvent,
  setTracingDisabled,
  type StreamEvent,
  tool
} from "@openai/agents"
import * as z from "zod"
import type { Contender, Measured, Workload } from "../contender.ts"
import { timed } from "../measure.ts"
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

setTracingDisabled(true)

type Output = Extract<StreamEvent, { readonly type: "response_done" }>["response"]["output"]

const usage = { requests: 1, inputTokens: 0, outputTokens: 0, totalTokens: 0 }

/** The pieces of arguments are events of the provider's own, which the library passes on as they are. */
const record = (...[response, request]: Parameters<typeof callsOf>): Array<StreamEvent> => {
  const events: Array<StreamEvent> = [{ type: "response_started" }]
  const output: Output = []
  const text = textOf(response)
  for (const delta of text) events.push({ type: "output_text_delta", delta })
  if (response.type === "text") {
    const content = [{ type: "output_text", text: text.join("") } as const]
    output.push({ type: "message", id: `message-${request}`, role: "assistant", status: "completed", content })
  }
  for (const { id, json, pieces } of callsOf(response, request)) {
    for (const delta of pieces) {
      events.push({ type: "model", event: { type: "response.function_call_arguments.delta", item_id: id, delta } })
    }
    output.push({ type: "function_call", callId: id, name: "echo", status: "completed", arguments: json })
  }
  events.push({ type: "response_done", response: { id: `response-${request}`, usage, output } })
  return events
}

/** Hands out recorded events. */
class Replay implements AsyncIterableIterator<StreamEvent> {
  readonly #events: ReadonlyArray<StreamEvent>
  readonly #wakeUpEach: number
  #next = 0

  constructor(events: ReadonlyArray<StreamEvent>, each: number) {
    this.#events = events
    this.#wakeUpEach = each
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<StreamEvent>> {
    const index = this.#next++
    const value = this.#events[index]
    if (value === undefined) return Promise.resolve({ done: true, value })
    const result = { done: false, value } as const
    return this.#wakeUpEach > 0 && index % this.#wakeUpEach === 0
      ? wakeUp().then(() => result)
      : Promise.resolve(result)
  }
}

const makeModel = (workload: Workload, tally: Tally, start: number): Model => {
  const respond = recorded(workload, record)
  const each = wakeUpEach(workload)
  const silence: AsyncIterable<StreamEvent> = {
    [Symbol.asyncIterator]: () => ({ next: () => tally.wait().then(() => ({ done: true, value: undefined })) })
  }
  return {
    getResponse: () => Promise.reject(new Error("only streams are asked for")),
    getStreamedResponse: ({ input }) => {
      const events = respond(typeof input === "string" ? 0 : input.length - start)
      return events === undefined ? silence : new Replay(events, each)
    }
  }
}

const look = () => {}
const pass = () => Promise.resolve({ outputInfo: undefined, tripwireTriggered: false })
const allow = () => Promise.resolve({ behavior: { type: "allow" } as const })

/** Every guardrail there is. */
const guardrails = {
  agent: {
    inputGuardrails: [{ name: "look", execute: pass }],
    outputGuardrails: [{ name: "look", execute: pass }]
  },
  tool: {
    inputGuardrails: [{ type: "tool_input" as const, name: "look", run: allow }],
    outputGuardrails: [{ type: "tool_output" as const, name: "look", run: allow }]
  }
}

/** Rejects when the signal fires. */
const untilAborted = (tally: Tally, signal: AbortSignal | undefined): Promise<never> => {
  tally.executions++
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(new Error("Operation aborted")), { once: true })
  })
}

const makeAgent = (workload: Workload, tally: Tally, model: Model) => {
  const run = echo(workload, tally)
  return new Agent({
    name: "bench",
    model,
    tools: [tool({
      name: "echo",
      description: "Says what it is told.",
      parameters: z.object({ text: z.string() }),
      execute: workload.name === "abort"
        ? (_input, _context, details) => untilAborted(tally, details?.signal)
        : ({ text }) => run(text),
      ...(workload.hooks ? guardrails.tool : {})
    })],
    ...(workload.hooks ? guardrails.agent : {})
  })
}

const makeRunner = (workload: Workload): Runner => {
  const runner = new Runner({ tracingDisabled: true })
  if (workload.hooks) {
    for (const event of ["agent_start", "agent_end", "agent_tool_start", "agent_tool_end"] as const) {
      runner.on(event, look)
    }
  }
  return runner
}

const exchange = (n: number): ReadonlyArray<AgentInputItem> => [
  { role: "user", content: `question ${n}` },
  { type: "function_call", callId: `stored-${n}`, name: "echo", status: "completed", arguments: `{"text":"hi"}` },
  {
    type: "function_call_result",
    callId: `stored-${n}`,
    name: "echo",
    status: "completed",
    output: { type: "text", text: "hi" }
  },
  { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: "done" }] }
]

const see = (tally: Tally, event: RunStreamEvent): void => {
  if (event.type === "run_item_stream_event") {
    if (event.name === "tool_output") tally.results++
  } else if (event.type === "raw_model_stream_event") {
    const { data } = event
    if (data.type === "output_text_delta" || data.type === "model") tally.deltas++
    else if (data.type === "response_done") tally.responses++
  }
}

/** As much of a run as is looked at. */
interface Result extends AsyncIterable<RunStreamEvent> {
  readonly history: Array<AgentInputItem>
  readonly completed: Promise<void>
}

type Start = (items: Array<AgentInputItem>, signal?: AbortSignal) => Promise<Result>

const read = async (workload: Workload, tally: Tally, result: Result): Promise<void> => {
  if (workload.listener === "sync") { for await (const event of result) see(tally, event) }
  else for await (const event of result) await Promise.resolve(see(tally, event))
}

/** An abort ends the stream at once. The run ends when the tools have; what they gave is in its transcript only. */
const abort = async (workload: Workload, tally: Tally, tools: number, start: Start): Promise<Measured> => {
  const controller = new AbortController()
  const result = await start([{ role: "user", content: prompt }], controller.signal)
  const reading = read(workload, tally, result)
  while (tally.executions < tools) await new Promise(setImmediate)
  const value = await timed(async () => {
    controller.abort()
    await reading
    await result.completed
  })
  tally.results = result.history.filter((item) => item.type === "function_call_result").length
  return { counts: tally.counts(workload), value }
}

const run = (workload: Workload): Promise<Measured> => {
  const tally = new Tally()
  const history = stored(workload, exchange)
  const agent = makeAgent(workload, tally, makeModel(workload, tally, history.length + 1))
  const runner = makeRunner(workload)
  const options = {
    stream: true as const,
    maxTurns: null,
    toolExecution: { maxFunctionToolConcurrency: limitOf(workload) ?? null },
    ...(workload.hooks ? { callModelInputFilter: ({ modelData }: CallModelInputFilterArgs) => modelData } : {})
  }
  const start: Start = (items, signal) =>
    runner.run(agent, items, signal === undefined ? options : { ...options, signal })

  if (workload.name === "abort") return abort(workload, tally, workload.tools, start)
  return play(workload, tally, () => {
    let items = history
    return async () => {
      const result = await start([...items, { role: "user", content: prompt }])
      await read(workload, tally, result)
      items = result.history
      return items
    }
  })
}

export const contender: Contender = {
  name: "@openai/agents",
  version: "0.20.0",
  prepare: (workload) =>
    Promise.resolve(
      workload.name === "steering"
        ? "has no queue: input can be added to a run only when it was interrupted"
        : () => run(workload)
    )
}
export default contender
