/**
 * What a tool may succeed with, read as a result (T4, T9): a text, content blocks, or a whole result. Text is made well
 * formed, and what is kept must encode as JSON.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Usage } from "../Messages.ts"
import type { Content, ToolResult } from "../Tools.ts"
import { encode, reading, wellFormed } from "./json.ts"
import { isRecord } from "./record.ts"

const kindOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "a list" : typeof value === "object" ? "an object" : typeof value

const isContentBlock = (block: unknown): boolean =>
  isRecord(block) && (
    block.type === "text"
      ? typeof block.text === "string"
      : block.type === "image" && typeof block.data === "string" && typeof block.mimeType === "string"
  )

const text = (value: string): Content => [{ type: "text", text: wellFormed(value) }]

const copyBlock = (block: Content[number]): Content[number] => {
  if (Object.keys(block).length === 2 && block.type === "text") return { type: "text", text: wellFormed(block.text) }
  // Signatures and fields of later versions are text, too.
  const encoded = Result.getOrThrow(encode(block))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- encoding a block that was checked gives one
  return { ...encoded as Content[number] & object }
}

/** A copy: what a tool changes after it has ended shows nowhere. */
const copyContent = (blocks: Content): Content => blocks.map(copyBlock)

const readContent = (content: unknown): Result.Result<Content, string> => {
  if (typeof content === "string") return Result.succeed(text(content))
  if (!Array.isArray(content)) return Result.fail(`content is ${kindOf(content)}`)
  const bad = content.findIndex((block) => !isContentBlock(block))
  if (bad >= 0) return Result.fail(`content[${bad}] is no text or image block`)
  // Every block was checked.
  return Result.succeed(copyContent(content as Content))
}

const isUsage = Schema.is(Usage)

const resultFields = ["content", "details", "structuredContent", "usage", "isError", "terminate"] as const

/** The fields of an output: its own ones, those of later versions too, and what its class gives a result. */
const fieldsOf = (output: Readonly<Record<string, unknown>>): ReadonlySet<string> =>
  new Set([...Object.keys(output), ...resultFields.filter((field) => field in output)])

/** A result that says nothing is one all the same; anything else without a field of a result is something else. */
const isEmptyObject = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return (prototype === Object.prototype || prototype === null) && Object.keys(value).length === 0
}

const describe = (value: object): string => {
  const keys = Object.keys(value).slice(0, 5)
  return keys.length > 0 ? `an object with ${keys.join(", ")}` : `an object of class ${value.constructor.name}`
}

/** The result, or what is wrong with the output, naming the tool. Getters and proxies in it may throw. */
export const readOutput = (tool: string, output: unknown): Result.Result<ToolResult, string> =>
  reading(`Tool "${tool}" returned a result that cannot be read`, () => readUnguarded(tool, output))

const readUnguarded = (tool: string, output: unknown): Result.Result<ToolResult, string> => {
  if (typeof output === "string") return Result.succeed({ content: text(output) })
  const wrong = (what: string) =>
    Result.fail(
      `Tool "${tool}" returned ${what}; a result is a text, a list of content blocks, or an object with content`
    )
  if (Array.isArray(output)) {
    const content = readContent(output)
    return Result.isSuccess(content)
      ? Result.succeed({ content: content.success })
      : wrong(`a list whose ${content.failure}`)
  }
  if (!isRecord(output)) return wrong(kindOf(output))
  if (!resultFields.some((field) => field in output) && !isEmptyObject(output)) return wrong(describe(output))
  // A new object: what the tool's own has besides its fields, a `toJSON` of its class say, is no part of a result.
  const result: Record<string, unknown> = {}
  for (const field of fieldsOf(output)) {
    const value = output[field]
    if (value === undefined) {
      result[field] = undefined
      continue
    }
    if (field === "content") {
      if (value === null) continue
      const content = readContent(value)
      if (Result.isFailure(content)) return wrong(`an object whose ${content.failure}`)
      result.content = content.success
      continue
    }
    const encoded = encode(value)
    if (Result.isFailure(encoded)) {
      return Result.fail(`Tool "${tool}" ran, but its result could not be serialised: ${field}: ${encoded.failure}`)
    }
    if (field === "usage" && !isUsage(encoded.success)) return wrong("an object whose usage is not a Usage")
    // A copy: what a tool changes after it has ended shows nowhere.
    result[field] = encoded.success === value ? structuredClone(encoded.success) : encoded.success
  }
  return Result.succeed(result)
}
