/** effect-pi as it is built and published, in its default configuration. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import type { AgentService } from "../../src/Agent.ts"
import type * as Library from "../../src/index.ts"
import type { Contender, Measured, Workload } from "../contender.ts"
import { heapOf } from "../measure.ts"
import { storedTranscript } from "../storedTranscript.ts"
import { Tally } from "../tally.ts"
import { modelsOf } from "./effect-pi-model.ts"

/** What Node gets of what is published, unless a test of the harness asks for the sources, which need no build. */
const entry = process.env["BENCH_LIBRARY"] === "src" ? "../../src/index.ts" : "../../dist/node/index.js"

const { Agent, Hooks, StreamFn, Tools }: typeof Library = await import(
  new URL(entry, import.meta.url).href
)

const work = (workload: Workload): Effect.Effect<unknown> | undefined => {
  if (workload.name === "abort" || workload.name === "memory") return Effect.never
  if (workload.name !== "calls" || workload.tool === "sync") return undefined
  return workload.tool === "promise"
    ? Effect.promise(() => new Promise<void>((resolve) => queueMicrotask(resolve)))
    : Effect.sleep(1)
}

const echo = (workload: Workload, tally: Tally) => {
  const wait = work(workload)
  return Tools.make("echo", {
    description: "Says what it is told.",
    parameters: Schema.Struct({ text: Schema.String }),
    execute: ({ text }) => {
      tally.executions++
      return wait === undefined ? Effect.succeed(text) : Effect.as(wait, text)
    }
  })
}

/** Every hook there is. */
const allHooks = Hooks.layer(
  Hooks.transformContext((messages) => messages),
  Hooks.apiKey(() => undefined),
  Hooks.beforeToolCall(() => Hooks.allow),
  Hooks.afterToolCall(() => undefined),
  Hooks.finishTurn(() => undefined),
  Hooks.prepareRequest(() => undefined),
  Hooks.prepareNextTurn(() => undefined)
)

type Models = ReturnType<typeof modelsOf>

/** Makes agents that share their tool, as those of an application do. */
const makerOf = (workload: Workload, models: Models, tally: Tally) => {
  const tools = [echo(workload, tally)]
  return () =>
    Agent.make({
      systemPrompt: "You are a benchmark.",
      tools,
      messages: workload.name === "transcript" ? storedTranscript(workload) : [],
      toolConcurrency: workload.name === "calls" && workload.concurrency > 0 ? workload.concurrency : "unbounded"
    }).pipe(
      Effect.tap((agent) =>
        agent.subscribe(
          workload.listener === "sync"
            ? (event) => tally.see(event)
            : (event) => Effect.sync(() => tally.see(event))
        )
      ),
      Effect.provideService(StreamFn.StreamFn, { stream: models() }),
      workload.hooks ? Effect.provide(allHooks) : (agent) => agent
    )
}

const timed = (work: Effect.Effect<unknown, unknown>): Effect.Effect<number, unknown> =>
  Effect.suspend(() => {
    const began = performance.now()
    return Effect.map(work, () => performance.now() - began)
  })

const run = Effect.fnUntraced(function*(workload: Workload, models: Models) {
  const tally = new Tally(workload)
  const makeAgent = makerOf(workload, models, tally)
  switch (workload.name) {
    case "agents": {
      const value = yield* timed(Effect.scoped(Effect.forEach(
        Array.from({ length: workload.agents }),
        () => Effect.flatMap(makeAgent(), (agent) => agent.prompt("go")),
        { concurrency: "unbounded", discard: true }
      )))
      return { counts: tally.counts(workload), value }
    }
    case "abort": {
      const agent = yield* makeAgent()
      const prompt = yield* Effect.forkChild(agent.prompt("go"), { startImmediately: true })
      while (tally.executions < workload.tools) yield* Effect.yieldNow
      const value = yield* timed(Effect.andThen(agent.abort, Fiber.await(prompt)))
      return { counts: tally.counts(workload), value }
    }
    case "transcript": {
      const agent = yield* makeAgent()
      const ask = Effect.replicateEffect(agent.prompt("go"), workload.repeat, { discard: true })
      yield* ask
      tally.reset(workload)
      const value = yield* timed(ask)
      return { counts: tally.counts(workload), value }
    }
    default: {
      const agent = yield* makeAgent()
      if (workload.name === "steering") {
        for (let i = 0; i < workload.messages; i++) yield* agent.steer("steer")
      }
      const value = yield* timed(agent.prompt("go"))
      return { counts: tally.counts(workload), value }
    }
  }
}, Effect.scoped)

/** Each agent has a scope of its own, as a session has. */
const memory = async (workload: Extract<Workload, { name: "memory" }>, models: Models): Promise<Measured> => {
  const tally = new Tally(workload)
  const makeAgent = makerOf(workload, models, tally)
  const { kept, value } = await heapOf(workload.agents, async () => {
    const agents: Array<AgentService> = []
    const scopes: Array<Scope.Closeable> = []
    for (let i = 0; i < workload.agents; i++) {
      const scope = Scope.makeUnsafe()
      const agent = await Effect.runPromise(Scope.provide(makeAgent(), scope))
      agents.push(agent)
      scopes.push(scope)
      const prompt = Effect.runFork(agent.prompt("go"))
      if (workload.state === "idle") await Effect.runPromise(Fiber.await(prompt))
    }
    return { agents, scopes }
  })
  const counts = tally.counts(workload)
  for (const scope of kept.scopes) await Effect.runPromise(Scope.close(scope, Exit.void))
  return { counts, value }
}

export const contender: Contender = {
  name: "effect-pi",
  version: "0.1.0",
  prepare: (workload) => {
    const models = modelsOf(workload)
    return Promise.resolve(() =>
      workload.name === "memory" ? memory(workload, models) : Effect.runPromise(run(workload, models))
    )
  }
}
