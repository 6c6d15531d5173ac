/** The rules of docs/SPEC.md, section 5, that are about messages, tools, arguments and results. */
import { isDeepStrictEqual } from "node:util"
import { type Rule, trigger } from "./rule.ts"
import { callIds, listenersOf, settledAt, within } from "./runs.ts"
import type { Trace, TraceEvent } from "./trace.ts"
import type { Declaration, JsonObject, Message, Scenario } from "./types.ts"
import { declarationIn } from "./values.mjs"

const hookTimes = (trace: Trace, hook: string, n?: number): ReadonlyArray<number> =>
  trace.hooks.filter((entry) => entry.hook === hook && (n === undefined || entry.n === n)).map(({ t }) => t)

type Started = Extract<TraceEvent, { readonly type: "tool_execution_start" }>

const startsOf = (events: ReadonlyArray<TraceEvent>): Array<Started> =>
  events.filter((event): event is Started => event.type === "tool_execution_start")

/** When something that edits what it was given did so for the first time. */
const editTimes = ({ hooks, listeners, model, tools }: Scenario, pi: Trace): ReadonlyArray<number> => {
  const editors = new Set(
    listeners?.filter(({ rules }) => rules.some((rule) => "mutate" in rule)).map(({ name }) => name)
  )
  const inPlace = new Set(tools?.filter((tool) => tool.prepareArguments?.inPlace).map(({ name }) => name))
  const usesLive = (rules: NonNullable<typeof hooks>["prepareRequest"]) =>
    rules?.some((rule) => rule.context?.messages === "live")
  return [
    ...(hooks?.transformContext?.some((rule) => rule.inPlace) ? hookTimes(pi, "transformContext") : []),
    ...(usesLive(hooks?.prepareRequest) ? hookTimes(pi, "prepareRequest") : []),
    ...(usesLive(hooks?.prepareNextTurn) ? hookTimes(pi, "prepareNextTurn") : []),
    ...listenersOf(pi).filter(({ listener }) => editors.has(listener)).map(({ t }) => t),
    ...pi.requests.filter((request) => !request.aborted)
      .filter((_, index) => model[index]?.sharedPartial || model[index]?.frozen).map(({ t }) => t),
    ...startsOf(pi.events).filter(({ tool }) => inPlace.has(tool)).map(({ t }) => t)
  ]
}

const sharedMutation: Rule = ({ pi, scenario }) => [
  ...editTimes(scenario, pi).map((t) => trigger("shared-mutation", t, Infinity)),
  ...[...pi.actions, ...(pi.inner ?? [])].filter((a) => a.do === "loopContinue" && a.outcome === "resolved")
    .map(({ t }) => trigger("shared-mutation", t!))
]

const doubleStart: Rule = ({ pi, scenario }) =>
  pi.requests.filter((request) => !request.aborted)
    .filter((_, index) => (scenario.model[index]?.events ?? []).filter(({ type }) => type === "start").length > 1)
    .map(({ t }) => trigger("double-start", t, Infinity))

const duplicateCallIds: Rule = ({ runs }) =>
  runs.flatMap((run) =>
    run.events.filter((event) => {
      const ids = "message" in event ? callIds(event.message) : []
      return new Set(ids).size < ids.length || ids.includes("")
    }).map(({ t }) => trigger("duplicate-call-ids", t, run.end))
  )

const duplicateToolNames: Rule = ({ scenario: { agent, hooks, timeline, tools } }) => {
  const names = new Map(tools?.map((tool) => [tool.key ?? tool.name, tool.name]))
  const doubled = (keys: ReadonlyArray<string> = []) => new Set(keys.map((key) => names.get(key))).size < keys.length
  const replaced = [...(hooks?.prepareNextTurn ?? []), ...(hooks?.prepareRequest ?? [])].map((rule) =>
    rule.context?.tools
  )
  const times = [agent.tools, ...replaced].some(doubled) ?
    [0] :
    timeline.filter((action) =>
      action.do === "setTools" ? doubled(action.tools) : "context" in action && doubled(action.context.tools)
    ).map(({ at }) => at)
  return times.map((t) => trigger("duplicate-tool-names", t, Infinity))
}

const undeclaredTools: Rule = ({ pi, runs, scenario }) =>
  (scenario.hooks?.prepareRequest ?? [])
    .filter(({ context }) =>
      context?.tools !== undefined || context?.messages !== undefined ||
      (context?.keepLast !== undefined && !context.keepSystem)
    )
    .flatMap(({ n }) => hookTimes(pi, "prepareRequest", n))
    .map((t) => trigger("undeclared-tools", t, runs.find((run) => within(run, t))?.end))

const declarationsOf = (messages: ReadonlyArray<Message>): ReadonlyArray<Declaration> =>
  messages.flatMap((message) => typeof message === "string" ? [] : message.toolsAdded ?? [])
    .filter((declaration) => typeof declaration !== "string")

const keyOrder: Rule = ({ scenario: { agent, timeline, tools = [] } }) => {
  const stored = [
    ...declarationsOf(agent.messages ?? []),
    ...timeline.flatMap((action) => action.do === "setMessages" ? declarationsOf(action.messages) : [])
  ].map(declarationIn)
  const reordered = tools.map(declarationIn).some((tool) =>
    stored.some((other) => isDeepStrictEqual(tool, other) && JSON.stringify(tool) !== JSON.stringify(other))
  )
  return reordered ? [trigger("key-order", 0, Infinity)] : []
}

/** Whether pi's conversion of the value to the schema loses something: section 6 of docs/SPEC.md does not do it. */
const isLossy = (value: unknown, schema: unknown): boolean => {
  if (value === null) return true
  if (typeof schema !== "object" || schema === null) return false
  const text = typeof value === "string" ? value : undefined
  switch ("type" in schema ? schema.type : undefined) {
    case "number":
      return typeof value === "boolean" || text?.trim() === ""
    case "integer":
      return typeof value === "boolean" || (text !== undefined && !/^-?\d+$/.test(text))
    case "boolean":
      return typeof value === "number" || (text !== undefined && text !== "true" && text !== "false")
    case "string":
      return typeof value === "object"
    case "array":
      return !Array.isArray(value)
    case "object":
      return typeof value !== "object"
    default:
      // Unions and the like.
      return true
  }
}

const propertiesOf = (parameters: JsonObject | undefined): ReadonlyMap<string, unknown> => {
  const properties = parameters?.["properties"]
  return new Map(typeof properties === "object" && properties !== null ? Object.entries(properties) : [])
}

/** A call that a lossy conversion helps ran in one of the traces only, or with other arguments. */
const lenientValidation: Rule = ({ ours, pi, runs, scenario }) => {
  const argumentsIn = (trace: Trace, call: string) =>
    trace.executions.filter((execution) => execution.call === call).map(({ args }) => args)
  const isHelped = ({ args, tool }: Started) =>
    (scenario.tools ?? []).filter(({ name }) => name === tool).some(({ parameters }) => {
      const properties = propertiesOf(parameters)
      return Object.entries(args).some(([key, value]) => properties.has(key) && isLossy(value, properties.get(key)))
    })
  return runs.flatMap((run) =>
    startsOf(run.events)
      .filter((event) =>
        isHelped(event) && !isDeepStrictEqual(argumentsIn(pi, event.call), argumentsIn(ours, event.call))
      )
      .map(({ t }) => trigger("lenient-validation", t, settledAt(pi, run)))
  )
}

const resultFlagMismatch: Rule = ({ pi }) =>
  pi.anomalies.filter(({ kind }) => kind === "result-flag-mismatch").map(({ t }) => trigger("result-flag-mismatch", t!))

const nullPatch: Rule = ({ pi, runs, scenario }) =>
  (scenario.hooks?.afterToolCall ?? []).some(({ patch = {} }) => Object.values(patch).some((value) => value === null))
    ? hookTimes(pi, "afterToolCall").map((t) => trigger("null-patch", t, runs.find((run) => within(run, t))?.end))
    : []

export const dataRules: ReadonlyArray<Rule> = [
  sharedMutation,
  doubleStart,
  duplicateCallIds,
  duplicateToolNames,
  undeclaredTools,
  keyOrder,
  lenientValidation,
  resultFlagMismatch,
  nullPatch
]
