/** The rules of docs/SPEC.md, section 5, that are about aborts. */
import type { Class } from "./classes.ts"
import { type Rule, trigger } from "./rule.ts"
import { listenersOf, messageEvents, openCallIds, settledAt, within } from "./runs.ts"
import type { Behaviour, Response, Rule as HookRule, Scenario } from "./types.ts"

const behavioursOf = (scenario: Scenario, name: string): ReadonlyArray<Behaviour> =>
  (scenario.tools ?? []).filter((tool) => tool.name === name).map((tool) => [tool, tool.cases ?? []]).flat(2)

const danglingCall: Rule = ({ pi, runs }) =>
  runs.flatMap((run) => {
    const messages = messageEvents(run.events, "message_end")
    const answered = new Set(messages.filter(({ message }) => message.role === "toolResult").map((e) => e.message.call))
    return messages.filter(({ message }) => openCallIds(message).some((id) => !answered.has(id)))
      .map(({ t }) => trigger("dangling-call", t, settledAt(pi, run)))
  })

const requestAfterAbort: Rule = ({ aborts, pi }) =>
  aborts.flatMap(({ at, run }) =>
    pi.requests.filter((request) => request.aborted && within(run, request.t))
      .map(({ t }) => trigger("request-after-abort", at, t))
  )

/** A queue was read after the abort; which one is not in the trace. */
const spentQueues: Rule = ({ aborts, scenario }) => {
  const text = JSON.stringify(scenario)
  const spent = (action: string, name: Class): ReturnType<Rule> =>
    !text.includes(`"${action}"`) ? [] : aborts.flatMap(({ at, run }) =>
      messageEvents(run.events, "message_start")
        .filter(({ message, t }) => t >= at && message.role !== "assistant" && message.role !== "toolResult")
        .map(({ t }) => trigger(name, at, t))
    )
  return [...spent("steer", "steer-spent-on-aborted-turn"), ...spent("followUp", "follow-up-spent-on-aborted-turn")]
}

/** `finishTurn` of the open turn is allowed after the abort. */
const hookAfterAbort: Rule = ({ aborts, pi }) =>
  aborts.flatMap(({ at, run }) =>
    pi.hooks.filter(({ hook, t }) => t >= at && within(run, t) && hook !== "finishTurn")
      .map(({ t }) => trigger("hook-after-abort", at, t))
  )

/** A hook whose rule waits was at work at the abort. */
const hooksNotInterrupted: Rule = ({ aborts, pi, scenario }) => {
  const slow = Object.entries(scenario.hooks ?? {}).flatMap(([hook, rules]: [string, ReadonlyArray<HookRule>]) =>
    rules.flatMap(({ delay }) => delay === undefined ? [] : [{ hook, delay }])
  )
  return aborts.filter(({ at, run }) =>
    pi.hooks.some(({ hook, t }) =>
      within(run, t) && t <= at && slow.some((other) => other.hook === hook && t + other.delay >= at)
    )
  ).map(({ at }) => trigger("hooks-not-interrupted", at))
}

const reactsInItsOwnWay = ({ onAbort }: Response): boolean => onAbort !== undefined && onAbort !== "error"

/** A stream that does not simply end with the abort, a tool that does not end with it, or not within the grace. */
const dependsOnProvider: Rule = ({ aborts, pi, scenario }) =>
  aborts.flatMap(({ at, run, settled }) => {
    const answered = pi.requests.filter((request) => !request.aborted)
    const last = answered.findLastIndex(({ t }) => within(run, t) && t <= at)
    const isOpen = last >= 0 && !messageEvents(run.events, "message_end").some(({ message, t }) =>
      message.role === "assistant" && t >= answered[last]!.t && t < at
    )
    const stream = isOpen && scenario.model[last] !== undefined && reactsInItsOwnWay(scenario.model[last])
    const tool = pi.executions.some(({ end = Infinity, how, t, tool }) => {
      if (!within(run, t) || t > at || end < at) return false
      if (how === "aborted") return end > at + 1000
      return behavioursOf(scenario, tool).some(({ delay, nested, onAbort }) =>
        onAbort === "ignore" || nested !== undefined || !delay
      )
    })
    return stream || tool ? [trigger("abort-depends-on-provider", at, settled)] : []
  })

const listenersNotInterrupted: Rule = ({ aborts, pi }) =>
  aborts.filter(({ at, run }) => listenersOf(pi).some(({ done = 0, t }) => t >= run.start && t <= at && done > at))
    .map(({ at, settled }) => trigger("listeners-not-interrupted", at, settled))

const abortAwareResult: Rule = ({ aborts, pi, scenario }) =>
  aborts.filter(({ run }) =>
    pi.executions.some(({ how, t, tool }) =>
      how === "aborted" && within(run, t) &&
      behavioursOf(scenario, tool).some(({ onAbort }) =>
        typeof onAbort === "object" && (onAbort.content !== undefined || onAbort.throws !== undefined)
      )
    )
  ).map(({ at, settled }) => trigger("abort-aware-result", at, settled))

export const abortRules: ReadonlyArray<Rule> = [
  danglingCall,
  requestAfterAbort,
  spentQueues,
  hookAfterAbort,
  hooksNotInterrupted,
  dependsOnProvider,
  listenersNotInterrupted,
  abortAwareResult
]
