/**
 * What a request says of how much the model should think.
 */
import type { Json, ThinkingLevel } from "../../Messages.ts"
import type { Model, StreamRequest } from "../../StreamFn.ts"
import { isRecord } from "../record.ts"
import type { Settings } from "./settings.ts"

const levels: ReadonlyArray<ThinkingLevel> = ["off", "minimal", "low", "medium", "high", "xhigh", "max"]

/** What the model's `thinkingLevelMap` makes of a level: a word of the provider, `null` when the model has no such level. */
const mapped = (model: Model, level: ThinkingLevel): unknown =>
  isRecord(model["thinkingLevelMap"]) ? model["thinkingLevelMap"][level] : undefined

/** Few models know the last two levels, so they have to be named by the model. */
const isSupported = (model: Model, level: ThinkingLevel): boolean => {
  const word = mapped(model, level)
  return word !== null && (word !== undefined || (level !== "xhigh" && level !== "max"))
}

/** The level itself, or the next one the model has: upwards first, as pi does. */
const nearest = (model: Model, level: ThinkingLevel): ThinkingLevel => {
  const at = levels.indexOf(level)
  const upwards = levels.slice(at).find((other) => isSupported(model, other))
  return upwards ?? levels.slice(0, Math.max(at, 0)).findLast((other) => isSupported(model, other)) ?? "off"
}

/** The fields of the body, by name. */
export const thinkingFields = (request: StreamRequest, settings: Settings): ReadonlyArray<readonly [string, Json]> => {
  const { model, thinkingLevel } = request
  if (model.reasoning === false) return []
  const level = thinkingLevel === "off" ? "off" : nearest(model, thinkingLevel)
  const word = mapped(model, level)
  const effort = typeof word === "string" ? word : level === "off" ? undefined : level
  const budget = level === "off" ? undefined : request.thinkingBudgets?.[thinkingLevel]
  const fields: Array<readonly [string, Json]> = []
  if (settings.openRouter) {
    // The two exclude each other there.
    if (budget !== undefined && settings.budgetField === undefined) fields.push(["reasoning", { max_tokens: budget }])
    else if (effort !== undefined) fields.push(["reasoning", { effort }])
  } else if (effort !== undefined && settings.effort) {
    fields.push(["reasoning_effort", effort])
  }
  if (budget !== undefined && settings.budgetField !== undefined) fields.push([settings.budgetField, budget])
  return fields
}
