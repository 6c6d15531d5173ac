/** The tools, hooks and listeners of a scenario. */
import { Effect, Layer, Redacted, Schedule, Schema } from "effect"
import type { AgentEvent } from "../../src/Events.ts"
import { ConvertToLlm, Hooks, Messages, Tools } from "../../src/index.ts"
import { freeze } from "./actions.ts"
import { odd } from "./oddities.ts"
import type { Answer, Hook, HookKind, Listener, Tool } from "./types.ts"
import { call } from "./works.ts"
import { isNested, type Place, type World } from "./world.ts"

// -----------------------------------------------------------------------------
// Tools
// -----------------------------------------------------------------------------

export const schedule = ({ every, times }: { readonly times: number; readonly every: number }) =>
  Schedule.upTo(Schedule.spaced(every), { times })

/** What a call beyond those a scenario describes gives. */
const quick: Tool["runs"][number] = { work: { sync: true, steps: [] }, output: "text" }

const execute = (world: World, tool: Tool) => {
  const { toolTimeout } = world.scenario.options
  const deadline = tool.timeout !== undefined || toolTimeout !== undefined
  let count = 0
  return (context: Tools.CallContext): Effect.Effect<Tools.ToolOutput, unknown> => {
    const { output, work } = tool.runs[count++] ?? quick
    const { id } = context.toolCall
    const place: Place = { kind: "tool", name: tool.name, callId: id, nested: isNested(id) }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a tool may give anything
    const give = () => odd(output) as Tools.ToolOutput
    const answer = call(world, place, work, deadline, give, context)
    return Effect.isEffect(answer) ? answer : Effect.succeed(answer)
  }
}

const makeTool = (world: World, tool: Tool): Tools.Tool => {
  const run = execute(world, tool)
  const { prepare } = tool
  const options = {
    description: `The tool ${tool.name}.`,
    executionMode: tool.mode,
    timeout: tool.timeout,
    retry: tool.retry === undefined ? undefined : schedule(tool.retry),
    prepareArguments: prepare === undefined
      ? undefined
      : (args: unknown) => call(world, { kind: "prepare", name: tool.name }, prepare, false, () => args)
  }
  return tool.parameters === "any"
    ? Tools.dynamic(tool.name, {
      ...options,
      parameters: { type: "object" },
      execute: (_, context) => run(context)
    })
    : Tools.make(tool.name, {
      ...options,
      parameters: Schema.Struct({ n: Schema.Finite }),
      execute: (_, context) => run(context)
    })
}

export const makeTools = (world: World): ReadonlyArray<Tools.Tool> =>
  world.scenario.tools.map((tool) => makeTool(world, tool))

// -----------------------------------------------------------------------------
// Hooks
// -----------------------------------------------------------------------------

/** What a hook answers, to be typed as the place wants it: some of the answers are none. */
type Given = (answer: Answer, input: unknown, world: World) => unknown

type Conversation = ReadonlyArray<Messages.AgentMessage>

const conversation = (answer: Answer, messages: Conversation): unknown => {
  switch (answer) {
    case "short":
      return Messages.keepLast(messages, 3)
    case "noResults":
      return messages.filter(({ role }) => role !== "toolResult")
    case "empty":
      return []
    case "more":
      return freeze([...messages, Messages.user("From a hook")])
    case "odd":
      return messages.length % 2 === 0 ? odd("cyclic") : [odd("proxy")]
    default:
      return messages
  }
}

/** What replaces parts of a run. */
const update: Given = (answer, input, world) => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both hooks get a context
  const { context } = input as { readonly context: Hooks.RunContext }
  switch (answer) {
    case "short":
    case "noResults":
    case "empty":
    case "more":
      return { context: { messages: conversation(answer, context.messages) } }
    case "odd":
      return { context: { messages: odd("cyclic") }, messages: [odd("getterContent")] }
    case "model":
      return freeze({ model: { id: "hooked" } })
    case "thinking":
      return { thinkingLevel: "high" }
    case "messages":
      return freeze({ messages: [Messages.user("Prepared"), Messages.system("Prepared too")] })
    case "fewerTools":
      return { context: { tools: context.tools.slice(1) } }
    case "moreTools":
      return { context: { tools: world.tools } }
    case "doubleTools":
      return { context: { tools: [...world.tools, ...world.tools] } }
    default:
      return undefined
  }
}

const answers: { readonly [Kind in HookKind]: Given } = {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the hook gets
  transformContext: (answer, input) => conversation(answer, input as Conversation),
  convertToLlm: (answer, input) =>
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the conversion gets
    conversation(answer, (input as Conversation).filter(Messages.isMessage)),
  beforeToolCall: (answer) => {
    switch (answer) {
      case "allow":
        return Hooks.allow
      case "otherArguments":
        return Hooks.allowWith(freeze({ n: 2, hidden: true }))
      case "block":
        return Hooks.block("not now \ud800")
      case "blockAndTerminate":
        return Hooks.block(undefined, { terminate: true })
      case "odd":
        return odd("proxy")
      default:
        return undefined
    }
  },
  afterToolCall: (answer) => {
    switch (answer) {
      case "content":
        return freeze({ content: [{ type: "text", text: "changed" }] })
      case "details":
        return freeze({ details: null, structuredContent: { seen: true } })
      case "error":
        return { isError: true }
      case "noError":
        return { isError: false }
      case "terminate":
        return { terminate: true }
      case "odd":
        return { content: odd("badBlocks"), details: odd("getterDetails") }
      default:
        return undefined
    }
  },
  finishTurn: (answer) =>
    answer === "end" || answer === "continue" ? answer : answer === "odd" ? odd("proxy") : undefined,
  prepareNextTurn: update,
  prepareRequest: update,
  apiKey: (answer) => answer === "key" ? "secret" : answer === "odd" ? Redacted.make("secret") : undefined
}

/** T2: the results of a batch are no part of the context that its hooks see. */
const inspect = (world: World, kind: HookKind, input: unknown): void => {
  if (kind !== "beforeToolCall" && kind !== "afterToolCall") return
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what these hooks get
  const { assistantMessage, context, toolCall } = input as Hooks.ToolCallRequest
  if (!isNested(toolCall.id) && context.messages.at(-1) !== assistantMessage) {
    world.complaints.push(`T2: the context of ${kind} for ${toolCall.id} does not end with the calling message`)
  }
}

/** The function of a hook. The types of the answers are what a scenario may get wrong. */
const hookFunction = (world: World, { kind, runs }: Hook) => {
  const deadline = world.scenario.options.hookTimeout !== undefined
  let count = 0
  return (input: unknown) => {
    inspect(world, kind, input)
    const run = runs[count++]
    if (run === undefined) return answers[kind]("nothing", input, world)
    return call(world, { kind: "hook", name: kind }, run.work, deadline, () => answers[kind](run.answer, input, world))
  }
}

const makeHook = (world: World, hook: Hook): Hooks.Hook => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see `hookFunction`
  const run = hookFunction(world, hook) as (input: unknown) => never
  switch (hook.kind) {
    case "transformContext":
    case "convertToLlm":
      return Hooks.transformContext(run)
    case "beforeToolCall":
      return Hooks.beforeToolCall(run)
    case "afterToolCall":
      return Hooks.afterToolCall(run)
    case "finishTurn":
      return Hooks.finishTurn(run)
    case "prepareNextTurn":
      return Hooks.prepareNextTurn(run)
    case "prepareRequest":
      return Hooks.prepareRequest(run)
    case "apiKey":
      return Hooks.apiKey(run)
  }
}

/** The hooks, and the conversion: the last one counts. */
export const hooksLayer = (world: World): Layer.Layer<never> => {
  const { hooks } = world.scenario
  const conversion = hooks.findLast(({ kind }) => kind === "convertToLlm")
  const layer = Hooks.layer(
    ...hooks.filter(({ kind }) => kind !== "convertToLlm").map((hook) => makeHook(world, hook))
  )
  if (conversion === undefined) return layer
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see `hookFunction`
  return Layer.merge(layer, ConvertToLlm.layer(hookFunction(world, conversion) as (input: unknown) => never))
}

// -----------------------------------------------------------------------------
// Listeners
// -----------------------------------------------------------------------------

/** The function of a listener, which also notes what it heard. */
const listenerFunction = (world: World, { required = false, rules }: Listener, name: string) => {
  const counts = new Map<string, number>()
  const heard = world.hears(name)
  return (event: AgentEvent): Effect.Effect<unknown, unknown> | void => {
    heard.push(event)
    const { type } = event
    if (world.heard.get(name)!.removed && world.scenario.yieldAfter === undefined) {
      world.complaints.push(`H3: listener ${name} is told of ${type} after it was removed`)
    }
    const count = (counts.get(type) ?? 0) + 1
    counts.set(type, count)
    const rule = rules.find(({ nth, on }) => on === type && nth === count)
    if (rule === undefined) return
    return call(world, { kind: "listener", name, event: type, required }, rule.work, false, () => undefined)
  }
}

/** Subscribes a listener, each time as a new one. */
export const subscribing = (world: World) => {
  const { listeners } = world.scenario
  const removals = new Map<number, Effect.Effect<void>>()
  let count = 0
  const subscribe = (number: number): Effect.Effect<void> => {
    const listener = listeners[number % Math.max(1, listeners.length)]
    // A listener that subscribes itself and steers would never end.
    if (listener === undefined || count >= 8) return Effect.void
    return Effect.suspend(() => {
      const name = `${number}.${count++}`
      const subscribed = world.agent.subscribe(listenerFunction(world, listener, name), { required: listener.required })
      return Effect.map(subscribed, (remove) => {
        const forget = Effect.sync(() => {
          world.heard.get(name)!.removed = true
        })
        removals.set(number, Effect.andThen(forget, remove))
      })
    })
  }
  const unsubscribe = (number: number): Effect.Effect<void> => removals.get(number) ?? Effect.void
  return { subscribe, unsubscribe }
}
