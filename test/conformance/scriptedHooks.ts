/** The scripted hooks of SCENARIO.md, section 6, as layers. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ConvertToLlm from "../../src/ConvertToLlm.ts"
import * as Hooks from "../../src/Hooks.ts"
import type { AgentMessage } from "../../src/Messages.ts"
import type { Tool } from "../../src/Tools.ts"
import { json, normResult, roles } from "./normalize.mjs"
import type { Stage } from "./stage.ts"
import type { ContextSpec, HookRules, Rule, UpdateRule } from "./types.ts"
import { compact, contentIn, convertMessages, keepLast, matchesCall, modelIn } from "./values.mjs"

/** The first rule that fits the call of a hook and is not used up. */
const numbered = <R extends Rule & { readonly n?: number; readonly stopReason?: string }>(
  stage: Stage,
  hook: string,
  rules: ReadonlyArray<R>,
  stopReason?: string
): { readonly n: number; readonly rule: R | undefined } => {
  const n = stage.count(hook)
  const rule = rules.find((rule) =>
    stage.unspent(rule) && (rule.n === undefined || rule.n === n) &&
    (rule.stopReason === undefined || rule.stopReason === stopReason)
  )
  return { n, rule }
}

const contextIn = (stage: Stage, spec: ContextSpec, messages: ReadonlyArray<AgentMessage>): Hooks.ContextUpdate<Tool> =>
  compact({
    messages: spec.messages === "live"
      ? messages
      : spec.messages !== undefined
      ? stage.messages(spec.messages)
      : spec.keepLast !== undefined
      ? keepLast(messages, spec)
      : undefined,
    tools: spec.tools?.map(stage.tool)
  })

const update = (stage: Stage, rule: UpdateRule | undefined, messages: ReadonlyArray<AgentMessage>) =>
  rule && compact({
    context: rule.context && contextIn(stage, rule.context, messages),
    model: rule.model === undefined ? undefined : modelIn(rule.model),
    thinkingLevel: rule.thinkingLevel
  })

const turnFields = (turn: Hooks.FinishedTurn) => ({
  stopReason: turn.message.stopReason,
  toolResults: turn.toolResults.map((result) => result.toolCallId),
  context: roles(turn.context.messages),
  newMessages: roles(turn.newMessages)
})

type Patch = NonNullable<NonNullable<HookRules["afterToolCall"]>[number]["patch"]>

const patchIn = ({ content, ...rest }: Patch): Hooks.ToolResultPatch => ({
  ...structuredClone(rest),
  ...(content !== undefined && { content: contentIn(content) })
})

const toolHooks = (stage: Stage, rules: HookRules): Array<Hooks.Hook> => {
  const hooks: Array<Hooks.Hook> = []
  const { afterToolCall, beforeToolCall } = rules
  if (beforeToolCall !== undefined) {
    hooks.push(Hooks.beforeToolCall(Effect.fnUntraced(function*({ args, context, toolCall }) {
      const facts = { call: toolCall.id, tool: toolCall.name, args }
      stage.log("beforeToolCall", { ...facts, args: json(args), context: roles(context.messages) })
      const rule = beforeToolCall.find((rule) => stage.unspent(rule) && matchesCall(rule.match ?? {}, facts))
      yield* stage.apply(rule, "beforeToolCall")
      if (rule?.block) return Hooks.block(rule.reason, compact({ terminate: rule.terminate }))
      return rule?.setArgs === undefined
        ? undefined
        : Hooks.allowWith(Object.assign({}, args, structuredClone(rule.setArgs)))
    })))
  }
  if (afterToolCall !== undefined) {
    hooks.push(Hooks.afterToolCall(Effect.fnUntraced(function*({ args, isError, result, toolCall }) {
      const facts = { call: toolCall.id, tool: toolCall.name, args, isError }
      stage.log("afterToolCall", { ...facts, args: json(args), result: normResult(result) })
      const rule = afterToolCall.find((rule) => stage.unspent(rule) && matchesCall(rule.match ?? {}, facts))
      yield* stage.apply(rule, "afterToolCall")
      if (rule?.patch === undefined) return undefined
      return patchIn(rule.patch)
    })))
  }
  return hooks
}

const turnHooks = (stage: Stage, rules: HookRules): Array<Hooks.Hook> => {
  const hooks: Array<Hooks.Hook> = []
  const { finishTurn, prepareNextTurn, prepareRequest } = rules
  if (finishTurn !== undefined) {
    hooks.push(Hooks.finishTurn(Effect.fnUntraced(function*(turn) {
      const { n, rule } = numbered(stage, "finishTurn", finishTurn, turn.message.stopReason)
      stage.log("finishTurn", { n, ...turnFields(turn) })
      yield* stage.apply(rule, "finishTurn")
      return rule?.action
    })))
  }
  if (prepareNextTurn !== undefined) {
    hooks.push(Hooks.prepareNextTurn(Effect.fnUntraced(function*(turn) {
      const { n, rule } = numbered(stage, "prepareNextTurn", prepareNextTurn, turn.message.stopReason)
      stage.log("prepareNextTurn", { n, ...turnFields(turn) })
      yield* stage.apply(rule, "prepareNextTurn")
      const messages = rule?.messages && { messages: stage.messages(rule.messages) }
      return rule && { ...update(stage, rule, turn.context.messages), ...messages }
    })))
  }
  if (prepareRequest !== undefined) {
    hooks.push(Hooks.prepareRequest(Effect.fnUntraced(function*({ context, model, thinkingLevel }) {
      const { n, rule } = numbered(stage, "prepareRequest", prepareRequest)
      stage.log("prepareRequest", { n, model: model.id, thinkingLevel, context: roles(context.messages) })
      yield* stage.apply(rule, "prepareRequest")
      return update(stage, rule, context.messages)
    })))
  }
  return hooks
}

const requestHooks = (stage: Stage, rules: HookRules): Array<Hooks.Hook> => {
  const hooks: Array<Hooks.Hook> = []
  const { getApiKey, transformContext } = rules
  if (transformContext !== undefined) {
    hooks.push(Hooks.transformContext(Effect.fnUntraced(function*(messages) {
      const { n, rule } = numbered(stage, "transformContext", transformContext)
      stage.log("transformContext", { n, context: roles(messages) })
      yield* stage.apply(rule, "transformContext")
      if (rule?.keepLast === undefined) return messages
      return rule.inPlace ? messages.slice(Math.max(0, messages.length - rule.keepLast)) : keepLast(messages, rule)
    })))
  }
  if (getApiKey !== undefined) {
    hooks.push(Hooks.apiKey(Effect.fnUntraced(function*() {
      const { n, rule } = numbered(stage, "getApiKey", getApiKey)
      stage.log("getApiKey", { n })
      yield* stage.apply(rule, "getApiKey")
      return rule?.key
    })))
  }
  return hooks
}

const conversion = (stage: Stage, rules: NonNullable<HookRules["convertToLlm"]>): Layer.Layer<never> =>
  ConvertToLlm.layer(Effect.fnUntraced(function*(messages) {
    const { n, rule } = numbered(stage, "convertToLlm", rules)
    stage.log("convertToLlm", { n, context: roles(messages) })
    yield* stage.apply(rule, "convertToLlm")
    return convertMessages(messages, rule?.roles)
  }))

/** The hooks and the conversion of a scenario; a hook that is absent is not installed. */
export const scriptedHooks = (stage: Stage): Layer.Layer<never> => {
  const rules = stage.scenario.hooks ?? {}
  const hooks = [...toolHooks(stage, rules), ...turnHooks(stage, rules), ...requestHooks(stage, rules)]
  const installed: Layer.Layer<never> = hooks.length === 0
    ? Layer.empty
    : Hooks.layer(...hooks)
  return rules.convertToLlm === undefined ? installed : Layer.merge(installed, conversion(stage, rules.convertToLlm))
}
