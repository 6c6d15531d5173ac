/**
 * Watches over one run: a span for the run, for each request and for each call, and what is counted of them. It learns what
 * happens from the events of the run, as the run's own state does, so that a span ends wherever its event is emitted from,
 * also when an ending is taken over. What is open when the run is over ends with it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as References from "effect/References"
import * as Stream from "effect/Stream"
import * as Tracer from "effect/Tracer"
import type { ModelError, RunError, RunOutcome } from "../../Errors.ts"
import type { AgentEvent } from "../../Events.ts"
import type { AgentMessage, AssistantMessage, ToolCall } from "../../Messages.ts"
import type { RunResult } from "../../RunResult.ts"
import type { StreamEvent, StreamRequest } from "../../StreamFn.ts"
import type { ToolResult } from "../../Tools.ts"
import { attempt } from "../json.ts"
import type { Probe, Watch } from "../probe.ts"
import type { Held, Run } from "../run.ts"
import type { Answered } from "../toolCall.ts"
import type { ToolSet } from "../toolSet.ts"
import * as Attributes from "./attributes.ts"
import * as Content from "./content.ts"
import { Meter } from "./metrics.ts"
import { Timed } from "./timed.ts"

/** Who the runs of a place belong to. */
export const AgentInfo = Context.Reference<Attributes.AgentInfo | undefined>("effect-pi/Telemetry/AgentInfo", {
  defaultValue: () => undefined
})

export interface Settings {
  readonly captureContent: boolean
}

/** The spans of runs, each with its run and the span around it. */
const runSpans = new WeakMap<
  Tracer.AnySpan,
  { readonly run: Run; readonly parent: Tracer.AnySpan | undefined }
>()

const isAround = (run: Run, inner: Run): boolean => {
  for (let around = inner.parent; around !== undefined; around = around.parent) if (around === run) return true
  return false
}

/** The span a run stands in. A run that follows another one begins in the place of that one, and stands beside it. */
const parentOf = (run: Run, services: Context.Context<never>): Tracer.AnySpan | undefined => {
  let parent = Context.getOrUndefined(services, Tracer.ParentSpan)
  for (;;) {
    const known = parent === undefined ? undefined : runSpans.get(parent)
    if (known === undefined || isAround(known.run, run)) return parent
    parent = known.parent
  }
}

const freshRunId = (services: Context.Context<never>): string => {
  const random = Context.get(services, Random.Random)
  const part = () => Math.floor(random.nextDoubleUnsafe() * 2 ** 32).toString(16).padStart(8, "0")
  return `${part()}${part()}`
}

/** One request and its response. */
interface Chat {
  readonly request: StreamRequest
  readonly timed: Timed
  /** Seconds to the first piece of the response that counts. */
  toFirstChunk: number | undefined
}

interface OpenCall {
  readonly timed: Timed
  readonly tool: string
  readonly known: boolean
}

const outcomeName = { Completed: "completed", Aborted: "aborted", Failed: "failed", Limited: "limited" } as const

export class RunProbe implements Probe {
  readonly services: Context.Context<never>
  readonly #run: Run
  readonly #settings: Settings
  readonly #info: Attributes.AgentInfo | undefined
  readonly #id: string
  readonly #timed: Timed
  readonly #meter: Meter
  #chat: Chat | undefined
  /** By id. */
  readonly #calls = new Map<string, OpenCall>()
  readonly #nested = new Set<OpenCall>()
  #requests = 0
  #toolCalls = 0
  /** How many of the held messages were told of. */
  #held: Held | undefined
  #told = 0
  #stopTold = false

  constructor(run: Run, services: Context.Context<never>, settings: Settings) {
    this.#run = run
    this.#settings = settings
    this.#info = Context.get(services, AgentInfo)
    this.#id = freshRunId(services)
    this.#meter = new Meter(services)
    const ambient = Context.getOrUndefined(services, Tracer.ParentSpan)
    const parent = parentOf(run, services)
    this.#timed = new Timed(services, this.#info === undefined ? "invoke_agent" : `invoke_agent ${this.#info.name}`, {
      kind: "internal",
      attributes: Attributes.agentAttributes(this.#id, run.settings.model, run.sessionId, this.#info),
      parent: parent === ambient ? undefined : parent ?? null
    })
    const { span } = this.#timed
    if (span !== undefined) runSpans.set(span, { run, parent })
    this.services = inSpan(
      services.pipe(
        Context.add(References.CurrentLogAnnotations, {
          ...Context.get(services, References.CurrentLogAnnotations),
          run: this.#id,
          ...(run.sessionId !== undefined && { session: run.sessionId })
        }),
        // Runs inside this one are those of other agents.
        Context.add(AgentInfo, undefined)
      ),
      this.#timed
    )
  }

  /** Puts itself in the way of what the run does. */
  attach(): void {
    const run = this.#run
    const { settle } = run
    const { stream } = run.functions
    run.probe = this
    run.emitter.source = {
      reduce: (event) => {
        attempt(() => this.#before(event))
        run.reduce(event)
        attempt(() => this.#after(event))
      },
      listenerFailed: (error) => run.listenerFailed(error)
    }
    run.functions = { ...run.functions, stream: (request) => this.#stream(stream, request) }
    run.settle = (result) =>
      Effect.suspend(() => {
        attempt(() => this.#end(result))
        return settle(result)
      })
  }

  // ---------------------------------------------------------------------------
  // Events
  // ---------------------------------------------------------------------------

  #before(event: AgentEvent): void {
    if (event.type === "message_end") this.#recorded(event.message)
  }

  #after(event: AgentEvent): void {
    switch (event.type) {
      case "turn_start":
        // One more turn after a limit is the one that wraps up.
        if (this.#run.limit !== undefined) this.#limited(this.#run.limit)
        break
      case "tool_execution_start":
        this.#openCall(event.toolCallId, event.toolName, event.args)
        break
      case "tool_execution_end":
        this.#closeCall(event)
        break
    }
  }

  #recorded(message: AgentMessage): void {
    if (message.role === "assistant") {
      if (this.#chat !== undefined) this.#closeChat(this.#chat, message)
      return
    }
    const { held, inbox } = this.#run
    if (held === undefined) return
    if (held !== this.#held) {
      this.#held = held
      this.#told = 0
    }
    // A message is taken out of what is held just before it is recorded.
    if (held.next <= this.#told) return
    this.#told = held.next
    this.#timed.event(held.queue === inbox.steering ? "effect_pi.steering" : "effect_pi.follow_up", {
      "effect_pi.turn": this.#run.turns
    })
  }

  stopped(outcome: RunOutcome): void {
    attempt(() => this.#tellStop(outcome))
  }

  #tellStop(outcome: RunOutcome): void {
    if (outcome._tag === "Limited") this.#limited(outcome.limit)
    if (outcome._tag !== "Aborted" || this.#stopTold) return
    this.#stopTold = true
    this.#timed.event("effect_pi.abort")
  }

  #limited(limit: string): void {
    if (this.#stopTold) return
    this.#stopTold = true
    this.#timed.event("effect_pi.limit", { "effect_pi.limit": limit })
  }

  // ---------------------------------------------------------------------------
  // Requests
  // ---------------------------------------------------------------------------

  #stream(
    inner: (request: StreamRequest) => Stream.Stream<StreamEvent, ModelError>,
    request: StreamRequest
  ): Stream.Stream<StreamEvent, ModelError> {
    const chat = attempt(() => this.#openChat(request))
    const stream = inner(request)
    if (chat === undefined) return stream
    const read = Stream.mapArray(stream, (events) => {
      attempt(() => this.#read(chat, events))
      return events
    })
    const { span } = chat.timed
    return span === undefined ? read : Stream.provideService(read, Tracer.ParentSpan, span)
  }

  #openChat(request: StreamRequest): Chat {
    this.#requests++
    const timed = new Timed(this.services, `chat ${request.model.id}`, {
      kind: "client",
      attributes: Attributes.chatAttributes(this.#id, request, this.#info)
    })
    if (this.#settings.captureContent) timed.attributes(Content.requestContent(request))
    return this.#chat = { request, timed, toFirstChunk: undefined }
  }

  #read(chat: Chat, events: ReadonlyArray<StreamEvent>): void {
    for (const event of events) {
      if (event.type === "retract") {
        chat.toFirstChunk = undefined
        chat.timed.event("effect_pi.retract", {
          "effect_pi.attempt": event.attempt,
          ...(event.error !== undefined && { "error.type": event.error.reason }),
          ...(event.model?.id !== undefined && { "gen_ai.request.model": event.model.id })
        })
      } else if (chat.toFirstChunk === undefined && event.type !== "start" && event.type !== "error") {
        chat.toFirstChunk = chat.timed.seconds()
      }
    }
  }

  #closeChat({ request, timed, toFirstChunk }: Chat, message: AssistantMessage): void {
    this.#chat = undefined
    const failure = message.stopReason === "error" ? this.#run.told : undefined
    const errorType = message.stopReason !== "error"
      ? undefined
      : failure === undefined
      ? "_OTHER"
      : Attributes.errorType(failure)
    const duration = timed.seconds()
    timed.attributes(Attributes.responseAttributes(message, toFirstChunk))
    if (this.#settings.captureContent) timed.attributes(Content.responseContent(message))
    this.#close(timed, errorType, failure, message.stopReason === "aborted")
    this.#meter.response(request, message, { duration, toFirstChunk }, errorType)
  }

  #close(timed: Timed, errorType: string | undefined, error: RunError | undefined, aborted: boolean): void {
    if (errorType !== undefined) timed.fail(errorType, this.#settings.captureContent ? error?.message : undefined)
    else timed.end(aborted ? Exit.interrupt() : Exit.void)
  }

  // ---------------------------------------------------------------------------
  // Calls
  // ---------------------------------------------------------------------------

  #newCall(services: Context.Context<never>, tools: ToolSet, id: string, name: string, args: unknown): OpenCall {
    this.#toolCalls++
    const found = tools.byName.get(name)
    const tool = found === undefined ? Attributes.unknownTool : name
    const shown = { id, name: this.#settings.captureContent ? name : tool }
    const timed = new Timed(services, `execute_tool ${tool}`, {
      kind: "internal",
      attributes: Attributes.toolAttributes(this.#id, shown, found?.description, this.#info)
    })
    if (this.#settings.captureContent) timed.attributes(Content.argumentsContent(args))
    return { timed, tool, known: found !== undefined }
  }

  #endCall({ known, timed, tool }: OpenCall, result: ToolResult | undefined, isError: boolean): void {
    const aborted = isError && (result === undefined || this.#run.stopping)
    const errorType = !isError || aborted ? undefined : known ? "tool_error" : "tool_not_found"
    const duration = timed.seconds()
    if (this.#settings.captureContent && result !== undefined) timed.attributes(Content.resultContent(result.content))
    this.#close(timed, errorType, undefined, aborted)
    this.#meter.toolCall(tool, duration, this.#info?.name, errorType)
  }

  #openCall(id: string, name: string, args: unknown): void {
    const tools = this.#run.batch?.scope.tools ?? this.#run.settings.tools
    this.#calls.set(id, this.#newCall(this.services, tools, id, name, args))
  }

  #closeCall({ isError, result, toolCallId }: AgentEvent & { readonly type: "tool_execution_end" }): void {
    const call = this.#calls.get(toolCallId)
    if (call === undefined) return
    this.#calls.delete(toolCallId)
    this.#endCall(call, result, isError)
  }

  inCall<A, E>(toolCallId: string, work: Effect.Effect<A, E>): Effect.Effect<A, E> {
    const span = this.#calls.get(toolCallId)?.timed.span
    return span === undefined ? work : Effect.provideService(work, Tracer.ParentSpan, span)
  }

  nestedCall(toolCall: ToolCall, tools: ToolSet, work: Effect.Effect<Answered>): Effect.Effect<Answered> {
    return Effect.withFiber((fiber) => {
      const { arguments: args, id, name } = toolCall
      const call = attempt(() => this.#newCall(fiber.context, tools, id, name, args))
      if (call === undefined) return work
      this.#nested.add(call)
      const { span } = call.timed
      return Effect.onExit(
        span === undefined ? work : Effect.provideService(work, Tracer.ParentSpan, span),
        (exit) => Effect.sync(() => this.#closeNested(call, Exit.isSuccess(exit) ? exit.value : undefined))
      )
    })
  }

  #closeNested(call: OpenCall, answer: Answered | undefined): void {
    if (this.#nested.delete(call)) attempt(() => this.#endCall(call, answer?.result, answer?.isError ?? true))
  }

  // ---------------------------------------------------------------------------
  // The end
  // ---------------------------------------------------------------------------

  #end(result: RunResult): void {
    for (const call of this.#nested) this.#endCall(call, undefined, true)
    this.#nested.clear()
    for (const call of this.#calls.values()) this.#endCall(call, undefined, true)
    this.#calls.clear()
    this.#chat?.timed.end(Exit.interrupt())
    const { outcome } = result
    this.#tellStop(outcome)
    const failure = outcome._tag === "Failed" ? outcome.error : undefined
    const errorType = failure === undefined ? undefined : Attributes.errorType(failure)
    const name = outcomeName[outcome._tag]
    const { turns } = this.#run
    const duration = this.#timed.seconds()
    const { totalUsage, usage } = result
    this.#timed.attributes({
      ...Attributes.usageAttributes(usage),
      "effect_pi.run.outcome": name,
      ...(outcome._tag === "Limited" && { "effect_pi.limit": outcome.limit }),
      "effect_pi.run.turns": turns,
      "effect_pi.run.tool_calls": this.#toolCalls,
      "effect_pi.total_usage.tokens": totalUsage.totalTokens,
      "effect_pi.total_usage.cost": totalUsage.cost.total
    })
    this.#close(this.#timed, errorType, failure, outcome._tag === "Aborted")
    const counted = { duration, turns, requests: this.#requests, toolCalls: this.#toolCalls }
    this.#meter.run(counted, this.#info?.name, name, errorType)
  }
}

const inSpan = (services: Context.Context<never>, { span }: Timed): Context.Context<never> =>
  span === undefined ? services : Context.add(services, Tracer.ParentSpan, span)

/** Watches over every run of a place. */
export const watch = (settings: Settings): Watch => (run, services) =>
  attempt(() => {
    const probe = new RunProbe(run, services, settings)
    probe.attach()
    return probe.services
  }) ?? services
