/**
 * What the work costs at least: a plain asynchronous loop that appends messages to an array, calls the listener and awaits
 * tools. It validates, guards and orders nothing, so it is no library, but what libraries are measured against.
 */
import type { Contender, Measured, Workload } from "../contender.ts"
import { heapOf, timed } from "../measure.ts"
import { type Response, script } from "../script.ts"
import { storedTranscript } from "../storedTranscript.ts"
import { Tally } from "../tally.ts"

interface Message {
  readonly role: string
  readonly content: unknown
  readonly stopReason?: string
}

interface Event {
  readonly type: string
  readonly message?: Message
  readonly assistantMessageEvent?: { readonly type: string; readonly delta: string }
  readonly callId?: string
}

type Listener = (event: Event) => Promise<void> | void
type Tool = (args: { readonly text: string }, signal: AbortSignal) => Promise<string>

/** A response as chunks of deltas, each a piece of text or of a call's arguments. */
async function* stream(workload: Workload, response: Response): AsyncGenerator<ReadonlyArray<string>, void, void> {
  if (response.type === "silence") return yield* silence()
  if (response.type === "calls") {
    for (let i = 0; i < response.calls; i++) yield response.pieces
    return
  }
  const chunked = workload.name === "deltas" && workload.chunk > 0
  const size = chunked ? workload.chunk : response.deltas
  const chunk = Array.from({ length: size }, () => response.delta)
  for (let i = 0; i < response.deltas; i += size) {
    if (workload.name === "deltas" && workload.wakeUps) await new Promise<void>((resolve) => queueMicrotask(resolve))
    yield response.deltas - i < size ? chunk.slice(0, response.deltas - i) : chunk
  }
}

const waiting: Array<() => void> = []

// oxlint-disable-next-line require-yield
async function* silence(): AsyncGenerator<never, void, void> {
  await new Promise<void>((resolve) => waiting.push(resolve))
}

class Agent {
  readonly messages: Array<unknown>
  readonly steering: Array<string> = []
  readonly controller = new AbortController()
  readonly #workload: Workload
  readonly #listener: Listener
  readonly #tool: Tool
  readonly #respond: (request: number) => Response
  #request = 0

  constructor(workload: Workload, listener: Listener, tool: Tool) {
    this.messages = workload.name === "transcript" ? storedTranscript(workload) : []
    this.#workload = workload
    this.#listener = listener
    this.#tool = tool
    this.#respond = script(workload)
  }

  async prompt(content: string): Promise<void> {
    await this.#add({ role: "user", content })
    let steer = 0
    for (let goesOn = true; goesOn && !this.controller.signal.aborted;) {
      const queued = this.steering[steer++]
      if (queued !== undefined) await this.#add({ role: "user", content: queued })
      const response = this.#respond(this.#request++)
      const calls = await this.#receive(response)
      const { signal } = this.controller
      const results = await Promise.all(calls.map((args) => this.#execute(args, signal)))
      for (const result of results) await this.#add({ role: "toolResult", content: result })
      goesOn = calls.length > 0 || steer < this.steering.length
    }
  }

  async #add(message: Message): Promise<void> {
    this.messages.push(message)
    const pending = this.#listener({ type: "message_end", message })
    if (pending !== undefined) await pending
  }

  /** Gives the arguments of the calls. */
  async #receive(response: Response): Promise<ReadonlyArray<string>> {
    const calls: Array<string> = []
    const type = response.type === "text" ? "text_delta" : "toolcall_delta"
    let text = ""
    for await (const chunk of stream(this.#workload, response)) {
      if (type === "toolcall_delta") text = ""
      for (const delta of chunk) {
        text += delta
        const message = { role: "assistant", content: text }
        const pending = this.#listener({ type: "message_update", message, assistantMessageEvent: { type, delta } })
        if (pending !== undefined) await pending
      }
      if (type === "toolcall_delta") calls.push(text)
    }
    await this.#add({ role: "assistant", content: calls.length > 0 ? calls : text })
    return calls
  }

  async #execute(args: string, signal: AbortSignal): Promise<string> {
    const result = await this.#tool(JSON.parse(args), signal).catch(() => "aborted")
    const pending = this.#listener({ type: "tool_execution_end" })
    if (pending !== undefined) await pending
    return result
  }
}

const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true })
  })

const makeTool = (workload: Workload, tally: Tally): Tool => async ({ text }, signal) => {
  tally.executions++
  if (workload.name === "abort" || workload.name === "memory") return untilAborted(signal)
  if (workload.name !== "calls" || workload.tool === "sync") return text
  await (workload.tool === "promise"
    ? new Promise<void>((resolve) => queueMicrotask(resolve))
    : new Promise((resolve) => setTimeout(resolve, 1)))
  return text
}

const makeAgent = (workload: Workload, tally: Tally): Agent => {
  const see: Listener = workload.listener === "sync" ? (event) => tally.see(event) : async (event) => tally.see(event)
  return new Agent(workload, see, makeTool(workload, tally))
}

const run = async (workload: Workload): Promise<Measured> => {
  const tally = new Tally(workload)
  switch (workload.name) {
    case "agents": {
      const value = await timed(() =>
        Promise.all(Array.from({ length: workload.agents }, () => makeAgent(workload, tally).prompt("go")))
      )
      return { counts: tally.counts(workload), value }
    }
    case "abort": {
      const agent = makeAgent(workload, tally)
      const prompt = agent.prompt("go")
      while (tally.executions < workload.tools) await new Promise(setImmediate)
      const value = await timed(() => {
        agent.controller.abort()
        return prompt
      })
      return { counts: tally.counts(workload), value }
    }
    case "memory": {
      const { value, kept } = await heapOf(workload.agents, async () => {
        const agents: Array<Agent> = []
        for (let i = 0; i < workload.agents; i++) {
          const agent = makeAgent(workload, tally)
          agents.push(agent)
          const prompt = agent.prompt("go")
          if (workload.state === "idle") await prompt
        }
        return agents
      })
      const counts = tally.counts(workload)
      for (const agent of kept) agent.controller.abort()
      return { counts, value }
    }
    case "transcript": {
      const agent = makeAgent(workload, tally)
      const ask = async () => {
        for (let i = 0; i < workload.repeat; i++) await agent.prompt("go")
      }
      await ask()
      tally.reset(workload)
      const value = await timed(ask)
      return { counts: tally.counts(workload), value }
    }
    default: {
      const agent = makeAgent(workload, tally)
      if (workload.name === "steering") agent.steering.push(...Array.from({ length: workload.messages }, () => "steer"))
      const value = await timed(() => agent.prompt("go"))
      return { counts: tally.counts(workload), value }
    }
  }
}

export const contender: Contender = {
  name: "floor",
  version: "-",
  prepare: (workload) => {
    if (workload.hooks) return Promise.resolve("has no hooks")
    if (workload.name === "calls" && workload.concurrency > 0) {
      return Promise.resolve("runs all calls of a response at once")
    }
    return Promise.resolve(() => run(workload))
  }
}
