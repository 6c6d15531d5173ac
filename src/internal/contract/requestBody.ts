/**
 * Whether the body of a request to the chat completions API is one that servers take. They refuse different things; what
 * any of the common ones refuses counts.
 */
import * as Result from "effect/Result"
import { isRecord } from "../record.ts"

type Fields = { readonly [key: string]: unknown }

/** What is wrong with a body, in words; nothing when nothing is. */
export const requestDefects = (body: unknown): ReadonlyArray<string> => {
  if (!isRecord(body)) return ["the body is no JSON object"]
  const { messages, model, stream } = body
  return [
    ...(isText(model) ? [] : ["`model` is no text"]),
    ...(stream === true ? [] : ["`stream` is not true"]),
    ...(isFull(messages) ? messageDefects(messages) : ["`messages` is empty or no list"]),
    ...toolDefects(body),
    ...textDefects(body, "the body")
  ]
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""

const isFull = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value) && value.length > 0

/** OpenAI takes no longer ones, and others no other characters. */
const safeId = /^[a-zA-Z0-9_-]{1,40}$/

const safeName = /^[a-zA-Z0-9_-]{1,64}$/

const parsed = (text: unknown): unknown =>
  typeof text === "string" ? Result.getOrUndefined(Result.try((): unknown => JSON.parse(text))) : undefined

const messageDefects = (messages: ReadonlyArray<unknown>): ReadonlyArray<string> => {
  const defects: Array<string> = []
  /** The calls that have no result yet. */
  let open = new Set<string>()
  for (const [index, message] of messages.entries()) {
    const where = `\`messages[${index}]\``
    if (!isRecord(message)) {
      defects.push(`${where} is no object`)
      continue
    }
    const { role } = message
    if (role === "tool") {
      const id = message["tool_call_id"]
      if (typeof id !== "string" || !open.delete(id)) {
        defects.push(`${where} is the result of ${JSON.stringify(id)}, which no call right before it has for its id`)
      }
    } else {
      for (const id of open) defects.push(`${where} stands where the result of ${JSON.stringify(id)} is missing`)
      open = new Set()
    }
    if (role === "assistant") open = new Set(callDefects(message, where, defects))
    else if (role !== "tool" && role !== "system" && role !== "developer" && role !== "user") {
      defects.push(`${where} has the role ${JSON.stringify(role)}`)
    }
    contentDefects(message, where, defects)
  }
  for (const id of open) defects.push(`the result of ${JSON.stringify(id)} is missing at the end`)
  return defects
}

/** The ids of the calls. */
const callDefects = (message: Fields, where: string, defects: Array<string>): ReadonlyArray<string> => {
  const calls = message["tool_calls"]
  if (calls === undefined || calls === null) return []
  if (!isFull(calls)) {
    defects.push(`${where} has an empty list of calls`)
    return []
  }
  const ids: Array<string> = []
  for (const call of calls) {
    const { function: called, id } = isRecord(call) ? call : {}
    const details = isRecord(called) ? called : {}
    if (typeof id !== "string" || !safeId.test(id)) {
      defects.push(`${where} calls with the unsafe id ${JSON.stringify(id)}`)
    } else if (ids.includes(id)) defects.push(`${where} has two calls with the id ${id}`)
    else ids.push(id)
    if (typeof details["name"] !== "string" || !safeName.test(details["name"])) {
      defects.push(`${where} calls the unsafe name ${JSON.stringify(details["name"])}`)
    }
    const args = parsed(details["arguments"])
    if (isRecord(args)) defects.push(...textDefects(args, `the arguments of ${where}`))
    else defects.push(`${where} calls with arguments that are no JSON object: ${JSON.stringify(details["arguments"])}`)
  }
  return ids
}

const contentDefects = (message: Fields, where: string, defects: Array<string>): void => {
  const { content, role } = message
  if (isText(content)) return
  if (isFull(content)) {
    for (const part of content) if (!isPart(part)) defects.push(`${where} has an empty or unknown part`)
    return
  }
  if (role !== "assistant" || !isFull(message["tool_calls"]) || Array.isArray(content)) {
    defects.push(`${where} is empty`)
  }
}

const isPart = (part: unknown): boolean => {
  if (!isRecord(part)) return false
  if (part["type"] === "text" || part["type"] === "refusal") return isText(part[part["type"]])
  const image = part["image_url"]
  return part["type"] === "image_url" && isRecord(image) && typeof image["url"] === "string" &&
    /^(https?:|data:image\/[\w.+-]+;base64,)./.test(image["url"])
}

const toolDefects = (body: Fields): ReadonlyArray<string> => {
  const { tool_choice: choice, tools } = body
  if (tools === undefined) return choice === undefined ? [] : ["`tool_choice` stands without `tools`"]
  if (!isFull(tools)) return ["`tools` is empty or no list"]
  const defects: Array<string> = []
  const names = new Set<unknown>()
  for (const [index, tool] of tools.entries()) {
    const { name, parameters } = isRecord(tool) && isRecord(tool["function"]) ? tool["function"] : {}
    const where = `\`tools[${index}]\``
    if (typeof name !== "string" || !safeName.test(name)) {
      defects.push(`${where} has the unsafe name ${JSON.stringify(name)}`)
    }
    if (names.has(name)) defects.push(`${where} has a name that another tool has`)
    if (!isRecord(parameters) || parameters["type"] !== "object") {
      defects.push(`${where} has parameters that are no object`)
    }
    names.add(name)
  }
  return defects
}

/** Texts that are not well-formed Unicode, which many servers refuse as broken JSON. */
const textDefects = (value: unknown, where: string): ReadonlyArray<string> => {
  if (typeof value === "string") return value.isWellFormed() ? [] : [`${where} has half a character in it`]
  if (Array.isArray(value)) return value.flatMap((each, index) => textDefects(each, `${where}[${index}]`))
  if (!isRecord(value)) return []
  return Object.entries(value).flatMap(([key, each]) =>
    textDefects(key, `a key of ${where}`).concat(textDefects(each, `${where}.${key}`))
  )
}
