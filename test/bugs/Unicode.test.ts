/** B74: half a character, from wherever it comes, poisons neither the transcript nor a request. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Queue, Schema } from "effect"
import { Agent, ConvertToLlm, Hooks, Loop, Messages, Tools } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { type EventOf, ofType } from "../utils/events.ts"
import { lie } from "../utils/hostile.ts"
import { assertInvariants } from "../utils/invariants.ts"
import { finish, watched } from "../utils/play.ts"
import { echo, returning, tool } from "../utils/sampleTools.ts"
import { type Setting, withStage } from "./scene.ts"

const { calls, events, text } = ScriptedModel

const fine = text("fine")

/** Half of a character at the end, at the beginning, the wrong way round, and beside a whole one. */
const halves = ["x\uD83D", "\uDE00x", "\uDE00\uD83D", "😀\uD83D", "\uD99C"]

const strings = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([key, child]) => strings(child).concat(key))
}

/** Strict UTF-8: the text survives being encoded, and no escape stands for half a character. */
const assertSound = (what: string, value: unknown): void => {
  const broken = strings(value).filter((text) => new TextDecoder().decode(new TextEncoder().encode(text)) !== text)
  assert.deepStrictEqual(broken, [], what)
}

/** Where it comes from: a setting that plays it, and what is done beside the prompt. */
interface Source extends Partial<Setting> {
  readonly prompt?: string | Messages.AgentMessage
  readonly before?: (agent: Agent.AgentService) => Effect.Effect<unknown, unknown>
  readonly during?: (agent: Agent.AgentService) => Effect.Effect<unknown, unknown>
}

const calling = calls([["a", "echo", { x: "1" }]])
const custom = (
  note: string
): Messages.AgentMessage => lie({ role: "note", note, timestamp: 0 })

const sources: Record<string, (half: string) => Source> = {
  "the text of a tool": (half) => ({ responses: [calls([["a", "odd", {}]]), fine], tools: [returning(half)] }),
  "a block of a tool": (half) => ({
    responses: [calls([["a", "odd", {}]]), fine],
    tools: [returning([{ type: "text", text: half }])]
  }),
  "a signature in a block of a tool": (half) => ({
    responses: [calls([["a", "odd", {}]]), fine],
    tools: [returning([{ type: "text", text: "x", textSignature: half }])]
  }),
  "an image of a tool": (half) => ({
    responses: [calls([["a", "odd", {}]]), fine],
    tools: [returning([{ type: "image", data: "AAAA", mimeType: half }])]
  }),
  "details of a tool": (half) => ({
    responses: [calls([["a", "odd", {}]]), fine],
    tools: [returning({ content: "x", details: { [half]: [half] }, structuredContent: { [half]: half } })]
  }),
  "progress of a tool": (half) => ({
    responses: [calls([["a", "odd", {}]]), fine],
    tools: [tool("odd", ({ update }) => Effect.as(update(half), "done"))]
  }),
  "the failure of a tool": (half) => ({
    responses: [calls([["a", "odd", {}], ["b", "dies", {}]]), fine],
    tools: [tool("odd", () => Effect.fail(half)), tool("dies", () => Effect.die(new Error(half)))]
  }),
  "a wrong result of a tool": (half) => ({
    responses: [calls([["a", "odd", {}]]), fine],
    tools: [returning({ [half]: 1 })]
  }),
  "the text of the model": (half) => ({ responses: [text(half, { thinking: half })] }),
  "signatures and ids of a response": (half) => ({
    responses: [
      events([
        { type: "start", responseId: half, responseModel: half, rawStopReason: half, providerThinkingLevel: half },
        { type: "thinking_start", contentIndex: 0 },
        { type: "thinking_delta", contentIndex: 0, delta: "x" },
        { type: "thinking_end", contentIndex: 0, thinkingSignature: half },
        { type: "text_start", contentIndex: 1 },
        { type: "text_delta", contentIndex: 1, delta: half },
        { type: "text_end", contentIndex: 1, textSignature: half },
        { type: "toolcall_start", contentIndex: 2, id: half, name: half },
        { type: "toolcall_end", contentIndex: 2, arguments: { [half]: half }, thoughtSignature: half },
        { type: "done", stopReason: "toolUse" }
      ]),
      fine
    ]
  }),
  "the namespace of a call": (half) => ({
    responses: [
      events([
        { type: "start" },
        { type: "toolcall_start", contentIndex: 0, id: "a", name: "x", namespace: half },
        { type: "toolcall_end", contentIndex: 0, arguments: {} },
        { type: "done", stopReason: "toolUse" }
      ]),
      fine
    ]
  }),
  "signatures in content that done brings": (half) => ({
    responses: [
      events([
        { type: "start" },
        {
          type: "done",
          stopReason: "toolUse",
          content: [
            { type: "text", text: "x", textSignature: half },
            { type: "thinking", thinking: "x", thinkingSignature: half },
            { type: "toolCall", id: "a", name: "x", namespace: half, arguments: {}, thoughtSignature: half }
          ]
        }
      ]),
      fine
    ]
  }),
  "the description of a parameter": (half) => ({
    responses: [fine],
    tools: [
      Tools.make("odd", {
        description: "",
        parameters: Schema.Struct({ x: Schema.String.annotate({ description: half }) }),
        execute: () => Effect.succeed("x")
      })
    ]
  }),
  "content that done brings": (half) => ({
    responses: [
      events([
        { type: "start" },
        {
          type: "done",
          stopReason: "toolUse",
          content: [
            { type: "text", text: half },
            { type: "thinking", thinking: half },
            { type: "toolCall", id: half, name: half, arguments: { [half]: half } }
          ]
        }
      ]),
      fine
    ]
  }),
  "arguments as they are streamed": (half) => ({
    responses: [
      calls([["a", "echo", { x: half }], ["b", "echo", `{"x":"${half}"}`], ["c", "echo", `{"x":"\\ud99c"}`]]),
      fine
    ],
    tools: [echo]
  }),
  "arguments that are refused": (half) => ({
    responses: [
      calls([["a", "echo", { x: [half] }], ["b", "echo", `{"x":"${half}`], ["c", "echo", `"${half}"`]]),
      fine
    ],
    tools: [echo]
  }),
  "id and name of a call": (half) => ({
    responses: [calls([[half, half, {}], [half, "echo", {}]]), fine],
    tools: [echo]
  }),
  "arguments cut off by the output limit": (half) => ({
    responses: [calls([["a", half, `{"x":"${half}`]], { stopReason: "length" }), fine]
  }),
  "the end of a stream that breaks off": (half) => ({
    responses: [events([
      { type: "start" },
      { type: "thinking_start", contentIndex: 0 },
      { type: "thinking_delta", contentIndex: 0, delta: half },
      { type: "text_start", contentIndex: 1 },
      { type: "text_delta", contentIndex: 1, delta: half },
      { type: "toolcall_start", contentIndex: 2, id: "a", name: "echo" },
      { type: "toolcall_delta", contentIndex: 2, delta: `{"x":"${half}` }
    ])]
  }),
  "the text of a stream's error": (half) => ({ responses: [ScriptedModel.error(half, { partial: half })] }),
  "a prompt": (half) => ({ responses: [fine], prompt: half }),
  "a prompt of blocks": (half) => ({
    responses: [fine],
    prompt: Messages.user([{ type: "text", text: half, textSignature: half }])
  }),
  "a prompt of the host's own": (half) => ({ responses: [fine], prompt: custom(half) }),
  "the system prompt and a description": (half) => ({
    responses: [calling, fine],
    options: { systemPrompt: half },
    tools: [
      echo,
      Tools.make("odd", {
        description: half,
        parameters: Schema.Struct({}),
        execute: () => Effect.succeed("x")
      }),
      Tools.dynamic("json", {
        description: half,
        parameters: { type: "object", properties: { [half]: { type: "string", description: half } } },
        execute: () => Effect.succeed("x")
      })
    ]
  }),
  "a stored transcript": (half) => ({
    responses: [fine],
    options: { messages: [Messages.system(half), Messages.user(half), Messages.assistant(half), custom(half)] }
  }),
  "messages that are set or appended": (half) => ({
    responses: [fine],
    before: (agent) =>
      Effect.andThen(
        agent.setMessages([Messages.user(half), Messages.assistant(half)]),
        agent.appendMessages([Messages.user([{ type: "text", text: half }]), custom(half)])
      )
  }),
  "a note, a steer and a follow-up": (half) => ({
    responses: [calling, fine, fine],
    tools: [echo],
    before: (agent) => agent.note(half),
    during: (agent) =>
      Effect.all([agent.note(half), agent.steer(half), agent.followUp(Messages.user([{ type: "text", text: half }]))])
  }),
  "a note that nothing reads": (half) => ({ responses: [fine], during: (agent) => agent.note(custom(half)) }),
  "what other code puts into the queues": (half) => ({
    responses: [calling, fine, fine],
    tools: [echo],
    during: (agent) =>
      Effect.andThen(
        Queue.offer(agent.steering, Messages.user(half)),
        Queue.offer(agent.followUps, Messages.user([{ type: "text", text: half, textSignature: half }]))
      )
  }),
  "a hook that blocks": (half) => ({
    responses: [calling, fine],
    tools: [echo],
    hooks: [Hooks.beforeToolCall(() => Hooks.block(half))]
  }),
  "a hook that fails for a call": (half) => ({
    responses: [calling, fine],
    tools: [echo],
    hooks: [Hooks.beforeToolCall(() => Effect.fail(half))]
  }),
  "a hook that allows with other arguments": (half) => ({
    responses: [calling, fine],
    tools: [echo],
    hooks: [Hooks.beforeToolCall(() => Hooks.allowWith({ x: half }))]
  }),
  "a hook that changes a result": (half) => ({
    responses: [calling, fine],
    tools: [echo],
    hooks: [Hooks.afterToolCall(() => ({ content: [{ type: "text", text: half }], details: { [half]: half } }))]
  }),
  "a hook that ends the run": (half) => ({ responses: [], hooks: [Hooks.transformContext(() => Effect.fail(half))] }),
  "a hook that appends messages": (half) => ({
    responses: [calling, fine],
    tools: [echo],
    hooks: [Hooks.prepareNextTurn(() => ({ messages: [Messages.user(half), custom(half)] }))]
  }),
  "a hook that replaces the context": (half) => ({
    responses: [fine],
    hooks: [Hooks.prepareRequest(() => ({ context: { messages: [Messages.system(half), Messages.user(half)] } }))]
  }),
  "a hook that makes the request's messages": (half) => ({
    responses: [fine],
    hooks: [
      Hooks.transformContext((
        messages
      ) => [Messages.system(half), ...messages, Messages.user([{ type: "text", text: half }])])
    ]
  }),
  "tools that a hook brings along": (half) => ({
    responses: [calls([["a", half, {}]]), fine],
    hooks: [Hooks.prepareRequest(() => ({ context: { tools: [returning(half)] } }))]
  })
}

/** What listeners are told, deltas apart: half a character may end one and begin the next. */
const told = (event: EventOf<"message_update"> | { readonly type: string }): unknown => {
  if (event.type === "agent_end") return "messages" in event ? event.messages : undefined
  return event.type === "message_update" ? undefined : event
}

describe("Half a character (B74)", () => {
  for (const [name, source] of Object.entries(sources)) {
    it.effect(`B74 (T9): in ${name} it is U+FFFD in transcript, requests and events`, () =>
      Effect.gen(function*() {
        for (const half of halves) {
          const { before: prepare, during, hooks = [], options = {}, prompt = "go", responses = [], tools = [] } =
            source(half)
          yield* Effect.gen(function*() {
            const { agent, recorder } = yield* watched({ ...options, tools })
            if (prepare !== undefined) yield* prepare(agent)
            const before = yield* agent.messages
            if (during !== undefined) {
              let done = false
              yield* agent.subscribe((event) => {
                if (done || event.type !== "message_end" || event.message.role !== "assistant") return
                done = true
                return during(agent)
              })
            }
            yield* finish(agent.prompt(prompt))
            const messages = yield* agent.messages
            const requests = yield* ScriptedModel.requests
            const { events } = recorder
            const noted = messages.slice(before.length + ofType(events, "message_end").length)
            assertInvariants({
              events,
              before,
              transcript: messages.slice(0, messages.length - noted.length),
              requests
            })
            assertSound("transcript", messages)
            for (const { messages, tools } of requests) assertSound("request", [messages, tools])
            for (const event of events) assertSound(event.type, told(event))
            assertSound("state", (yield* agent.state).systemPrompt)
            assert.include(
              JSON.stringify([messages, requests, events.map(told)]),
              "\uFFFD",
              "it was replaced, not dropped"
            )
            yield* ScriptedModel.assertComplete
          }).pipe(withStage({ responses, hooks }))
        }
      }))
  }

  it.effect("B74: a name that is no text is refused when the tools are given, or made one", () =>
    Effect.gen(function*() {
      for (const half of halves) {
        const parameters = Schema.Struct({ [half]: Schema.String })
        const named = Tools.make("odd", { description: "", parameters, execute: () => Effect.succeed("x") })
        for (const tool of [returning("x", half), named]) {
          const made = yield* Effect.exit(Agent.make({ tools: [tool] }))
          if (made._tag === "Success") assertSound("transcript", yield* made.value.messages)
          else assert.include(Cause.pretty(made.cause), "AgentConfigError")
        }
      }
    }).pipe(withStage({ responses: [] })))

  it.effect("B74: the loop alone and the conversion are treated alike", () =>
    Effect.gen(function*() {
      for (const half of halves) {
        yield* Effect.gen(function*() {
          const { messages } = yield* finish(
            Loop.run([Messages.user(half)], { messages: [Messages.system(half), Messages.assistant(half)], tools: [] })
          )
          assertSound("increment", messages)
          for (const request of yield* ScriptedModel.requests) assertSound("request", request.messages)
        }).pipe(
          Effect.provide(ConvertToLlm.layer((messages) => [
            Messages.user(half),
            ...messages.filter(Messages.isMessage),
            Messages.assistant(half)
          ])),
          withStage({ responses: [fine] })
        )
      }
    }))
})
