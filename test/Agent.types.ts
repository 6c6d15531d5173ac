/**
 * Type tests of agents, tools, hooks, loops and streams: what a program asks for and how it can fail. `tsc` checks them,
 * nothing runs them.
 */
// @effect-diagnostics missingEffectContext:off multipleEffectProvide:off -- what is missing is what is tested
import { Context, Effect, type Layer, Redacted, Schema, type Scope, Stream } from "effect"
import {
  Agent,
  ConvertToLlm,
  type Errors,
  type Events,
  Hooks,
  Loop,
  Messages,
  type Queues,
  StreamFn,
  Tools
} from "../src/index.ts"

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- compares exactly
type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false
const equal = <A, B>(_same: Equal<A, B>): void => {}

type ErrorOf<T> = T extends Effect.Effect<infer _A, infer E, infer _R> ? E : never
type ServicesOf<T> = T extends Effect.Effect<infer _A, infer _E, infer R> ? R : never
type NeedsOf<T> = T extends Layer.Layer<infer _Out, infer _E, infer In> ? In : never

class Files
  extends Context.Service<Files, { readonly read: (path: string) => Effect.Effect<string, "missing"> }>()("Files")
{}
class Web extends Context.Service<Web, { readonly get: (url: string) => Effect.Effect<string> }>()("Web") {}
class Secrets extends Context.Service<Secrets, { readonly mask: (text: string) => string }>()("Secrets") {}

declare const agent: Agent.AgentService
declare const files: Layer.Layer<Files>
declare const web: Layer.Layer<Web>
declare const model: Layer.Layer<StreamFn.StreamFn>

const readFile = Tools.make("read_file", {
  description: "Reads a file.",
  parameters: Schema.Struct({ path: Schema.String }),
  execute: ({ path }) => Files.use((files) => files.read(path))
})
const search = Tools.dynamic("search", {
  description: "Searches the web.",
  parameters: { type: "object" },
  execute: () => Web.use((web) => web.get("x"))
})
const plain = Tools.make("plain", {
  description: "Needs nothing.",
  parameters: Schema.Struct({ n: Schema.optionalKey(Schema.FiniteFromString) }),
  execute: ({ n }) => Effect.succeed(String(n))
})

// -----------------------------------------------------------------------------
// Tools
// -----------------------------------------------------------------------------

// A tool shows the services it asks for and swallows its errors.
equal<typeof readFile, Tools.Tool<Files>>(true)
equal<typeof search, Tools.Tool<Web>>(true)
equal<typeof plain, Tools.Tool>(true)
equal<Tools.Services<typeof readFile | typeof search | typeof plain>, Files | Web>(true)

// The arguments are those of the decoded schema.
Tools.make("typed", {
  description: "d",
  parameters: Schema.Struct({
    path: Schema.String,
    limit: Schema.optionalKey(Schema.Int),
    at: Schema.DateFromString,
    mode: Schema.Literals(["a", "b"])
  }),
  execute: (args, call) => {
    equal<
      typeof args,
      { readonly path: string; readonly limit?: number; readonly at: Date; readonly mode: "a" | "b" }
    >(true)
    equal<typeof call, Tools.CallContext>(true)
    // @ts-expect-error there is no such argument
    void args.nope
    return Effect.succeed("x")
  }
})

// Those of a dynamic tool are unknown.
Tools.dynamic("untyped", {
  description: "d",
  parameters: { type: "object" },
  execute: (args) => {
    equal<typeof args, unknown>(true)
    return Effect.succeed("x")
  }
})

Tools.make("wrong", {
  description: "d",
  parameters: Schema.Struct({}),
  // @ts-expect-error a number is no result
  execute: () => Effect.succeed(5)
})

Tools.make("wrong", {
  description: "d",
  parameters: Schema.Struct({}),
  // @ts-expect-error an execute returns an effect
  execute: () => "x"
})

// @ts-expect-error a description is needed
Tools.make("wrong", { parameters: Schema.Struct({}), execute: () => Effect.succeed("x") })

// What a nested call needs is what the tools given with it need.
Tools.make("nesting", {
  description: "d",
  parameters: Schema.Struct({}),
  execute: (_, { runToolCall }) => {
    const own = runToolCall({ id: "n", name: "plain" })
    equal<typeof own, Effect.Effect<Tools.ToolCallOutcome>>(true)
    const given = runToolCall({ id: "n", name: "read_file" }, { tools: [readFile, search] })
    equal<typeof given, Effect.Effect<Tools.ToolCallOutcome, never, Files | Web>>(true)
    return Effect.as(own, "x")
  }
})
const nesting = Tools.make("nesting", {
  description: "d",
  parameters: Schema.Struct({}),
  execute: (_, { runToolCall }) => Effect.as(runToolCall({ id: "n", name: "x" }, { tools: [readFile] }), "x")
})
equal<typeof nesting, Tools.Tool<Files>>(true)

// -----------------------------------------------------------------------------
// Agents
// -----------------------------------------------------------------------------

const make = Agent.make({ tools: [readFile, search, plain] })
equal<ServicesOf<typeof make>, Scope.Scope | StreamFn.StreamFn | Files | Web>(true)
equal<ErrorOf<typeof make>, Errors.AgentConfigError>(true)
const bare = Agent.make()
equal<ServicesOf<typeof bare>, Scope.Scope | StreamFn.StreamFn>(true)
const without = Agent.make({ tools: [plain] })
equal<ServicesOf<typeof without>, Scope.Scope | StreamFn.StreamFn>(true)

// A list of tools made elsewhere keeps its requirements.
const list: ReadonlyArray<Tools.Tool<Files | Web>> = [readFile, search]
const fromList = Agent.make({ tools: list })
equal<ServicesOf<typeof fromList>, Scope.Scope | StreamFn.StreamFn | Files | Web>(true)

const program = Effect.scoped(Effect.flatMap(make, (agent) => agent.prompt("hi")))
void Effect.runPromise(program.pipe(Effect.provide(model), Effect.provide(files), Effect.provide(web)))
// @ts-expect-error without a model it does not run
void Effect.runPromise(program.pipe(Effect.provide(files), Effect.provide(web)))
// @ts-expect-error without the services of the tools it does not run
void Effect.runPromise(program.pipe(Effect.provide(model), Effect.provide(web)))
// @ts-expect-error without a scope it does not run
void Effect.runPromise(make.pipe(Effect.provide(model), Effect.provide(files), Effect.provide(web)))

// An agent asks for nothing any more, and fails with misuse only.
const prompted = agent.prompt("hi")
equal<ErrorOf<typeof prompted>, Errors.AgentBusy | Errors.InvalidPrompt>(true)
equal<ServicesOf<typeof prompted>, never>(true)
equal<ErrorOf<typeof agent.continue>, Errors.AgentBusy | Errors.CannotContinue>(true)
equal<ErrorOf<typeof agent.awaitIdle>, Errors.AgentBusy>(true)
equal<ErrorOf<typeof agent.reset>, Errors.AgentBusy>(true)
equal<ErrorOf<typeof agent.abort>, never>(true)
const replaced = agent.setMessages([])
equal<ErrorOf<typeof replaced>, Errors.AgentBusy | Errors.AgentConfigError>(true)
equal<ErrorOf<ReturnType<typeof agent.steer>>, never>(true)

void agent.prompt([Messages.user("x")])
void agent.prompt(Messages.user("x"), { whileRunning: "steer" })
void agent.prompt("x", { images: [{ type: "image", data: "", mimeType: "image/png" }] })
// @ts-expect-error a number is no prompt
void agent.prompt(5)
// @ts-expect-error there are two ways to wait
void agent.prompt("x", { whileRunning: "wait" })
// @ts-expect-error a level that does not exist
void agent.setThinkingLevel("enormous")
// @ts-expect-error a mode that does not exist
void agent.setSteeringMode("some")
equal<Parameters<typeof agent.setFollowUpMode>[0], Queues.QueueMode>(true)

// setTools carries the requirements of the tools.
const set = agent.setTools([readFile, plain])
equal<ServicesOf<typeof set>, Files>(true)
equal<ErrorOf<typeof set>, Errors.AgentConfigError>(true)
// @ts-expect-error without the services of the tools it does not run
void Effect.runPromise(agent.setTools([readFile]))
void Effect.runPromise(agent.setTools([plain]))

// A listener may ask for services, fail, or return nothing.
const subscribed = agent.subscribe((event) => {
  equal<typeof event, Events.AgentEvent>(true)
  return Effect.andThen(Files.use((files) => files.read("x")), Web)
})
equal<typeof subscribed, Effect.Effect<Agent.Unsubscribe, never, Files | Web>>(true)
const silent = agent.subscribe(() => {})
equal<ServicesOf<typeof silent>, never>(true)
const printing = agent.subscribe(Agent.onText((delta) => Web.use((web) => web.get(delta))))
equal<ServicesOf<typeof printing>, Web>(true)
// @ts-expect-error a promise is not awaited: give an effect
void agent.subscribe(async () => {})

// A shared agent is a service; a layer of one needs what the agent needs, but no scope.
const shared = Agent.layer({ tools: [readFile] })
equal<typeof shared, Layer.Layer<Agent.Agent, Errors.AgentConfigError, StreamFn.StreamFn | Files>>(true)
equal<Agent.Agent["Service"], Agent.AgentService>(true)

const streamed = Agent.stream(agent, "hi")
equal<typeof streamed, Stream.Stream<Events.AgentEvent, Errors.AgentBusy | Errors.InvalidPrompt>>(true)

// -----------------------------------------------------------------------------
// Hooks
// -----------------------------------------------------------------------------

const redact = Hooks.afterToolCall(({ result }) =>
  Effect.map(
    Secrets,
    (secrets) => ({ content: [{ type: "text" as const, text: secrets.mask(JSON.stringify(result)) }] })
  )
)
equal<typeof redact, Hooks.Hook<Secrets>>(true)
const noDeletes = Hooks.beforeToolCall(({ toolCall }) => toolCall.name === "rm" ? Hooks.block("no") : Hooks.allow)
equal<typeof noDeletes, Hooks.Hook>(true)

// What hooks ask for shows in the layer and not in the agent; that they are there shows nowhere.
const policy = Hooks.layer(noDeletes, redact, Hooks.apiKey(() => Effect.map(Web, () => Redacted.make("key"))))
equal<NeedsOf<typeof policy>, Secrets | Web>(true)
const policed = Agent.make({ tools: [plain] }).pipe(Effect.provide(policy))
equal<ServicesOf<typeof policed>, Scope.Scope | StreamFn.StreamFn | Secrets | Web>(true)
const free = Hooks.layer(noDeletes)
equal<NeedsOf<typeof free>, never>(true)
const none = Hooks.layer()
equal<NeedsOf<typeof none>, never>(true)

// Tools that a hook brings along ask through the layer.
const bringing = Hooks.prepareRequest(() => ({ context: { tools: [readFile, search] } }))
equal<NeedsOf<ReturnType<typeof Hooks.layer<[typeof bringing]>>>, Files | Web>(true)
const later = Hooks.prepareNextTurn(() => Effect.map(Secrets, () => ({ context: { tools: [readFile] } })))
equal<NeedsOf<ReturnType<typeof Hooks.layer<[typeof later]>>>, Files | Secrets>(true)

// @ts-expect-error a context is a list of messages
Hooks.transformContext(() => "x")
// @ts-expect-error there are two decisions
Hooks.finishTurn(() => "stop")
// @ts-expect-error a decision is made by the constructors
Hooks.beforeToolCall(() => false)

const conversion = ConvertToLlm.layer((messages) => Effect.map(Secrets, () => messages.filter(Messages.isMessage)))
equal<NeedsOf<typeof conversion>, Secrets>(true)
// @ts-expect-error messages of the host have to be converted
ConvertToLlm.layer((messages) => messages)

// -----------------------------------------------------------------------------
// The loop and the model
// -----------------------------------------------------------------------------

const events: Stream.Stream<Events.AgentEvent, Errors.CannotContinue, StreamFn.StreamFn> = Loop.stream(
  [Messages.user("hi")],
  { messages: [], tools: [] }
)
const exact = Loop.stream([Messages.user("hi")], { messages: [], tools: [] })
equal<typeof exact, typeof events>(true)

const looped = Loop.run([Messages.user("hi")], { messages: [], tools: [readFile] }, {
  emit: () => Effect.asVoid(Web)
})
equal<ServicesOf<typeof looped>, StreamFn.StreamFn | Files | Web>(true)
equal<ErrorOf<typeof looped>, Errors.CannotContinue>(true)
const continued = Loop.continue({ messages: [], tools: [search] })
equal<ServicesOf<typeof continued>, StreamFn.StreamFn | Web>(true)
equal<ErrorOf<typeof continued>, Errors.CannotContinue>(true)

// A model fails with typed errors and asks for nothing.
void StreamFn.layer(() => Stream.empty)
// @ts-expect-error a failure is a ModelError
void StreamFn.layer(() => Stream.fail("down"))
// @ts-expect-error what a model asks for is asked for by its layer
void StreamFn.layer(() => Stream.fromEffect(Effect.as(Web, { type: "start" as const })))

// -----------------------------------------------------------------------------
// Outcomes
// -----------------------------------------------------------------------------

// A switch over the outcome is exhaustive and narrows.
export const describe = (run: Effect.Success<typeof prompted>): string => {
  const { outcome } = run
  switch (outcome._tag) {
    case "Completed":
      return outcome.by
    case "Aborted":
      // @ts-expect-error nobody is to blame for an abort
      void outcome.error
      return "aborted"
    case "Failed":
      return outcome.error._tag === "HookError" ? outcome.error.hook : outcome.error.message
    case "Limited":
      equal<typeof outcome.limit, Errors.Limit>(true)
      return "limited"
    default:
      return outcome satisfies never
  }
}

// A switch over events is exhaustive and narrows.
export const name = (event: Events.AgentEvent): string => {
  switch (event.type) {
    case "agent_start":
    case "turn_start":
      return event.type
    case "agent_end":
      return event.outcome._tag
    case "turn_end":
      return event.message.stopReason
    case "message_start":
    case "message_end":
      return event.message.role
    case "message_update":
      return event.assistantMessageEvent.type
    case "tool_execution_start":
    case "tool_execution_update":
    case "tool_execution_end":
      return event.toolName
    default:
      return event satisfies never
  }
}

export const failing = (run: Effect.Success<typeof prompted>) => {
  type Failure = ErrorOf<typeof run.orFail>
  equal<Extract<Failure, Errors.RunAborted | Errors.RunFailed>, Errors.RunAborted | Errors.RunFailed>(true)
  // @ts-expect-error the messages of a run are read-only
  run.messages.push(Messages.user("x"))
}
