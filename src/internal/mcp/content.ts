/**
 * Results of MCP tools as results of tools: text and images as they are, and a readable text for what a model cannot be
 * shown.
 */
import * as Result from "effect/Result"
import type { ImageContent, Json, TextContent } from "../../Messages.ts"
import { result, type ToolResult } from "../../Tools.ts"
import { encode } from "../json.ts"
import { getField, isList, isRecord } from "../record.ts"

type Block = TextContent | ImageContent

const text = (value: string): Block => ({ type: "text", text: value })

const stringOf = (record: { readonly [key: string]: unknown }, field: string): string | undefined => {
  const value = getField(record, field)
  return typeof value === "string" && value !== "" ? value : undefined
}

/** How many bytes a base64 text stands for. */
const sizeOf = (base64: string): number => Math.floor(base64.replace(/=+$/, "").length * 3 / 4)

/** `[audio: audio/wav, 1200 bytes]`. */
const bracketed = (kind: string, ...facts: ReadonlyArray<string | undefined>): string =>
  `[${kind}: ${facts.filter((fact) => fact !== undefined).join(", ")}]`

const resourceBlock = (resource: { readonly [key: string]: unknown }): Block => {
  const uri = stringOf(resource, "uri") ?? "without a URI"
  const mimeType = stringOf(resource, "mimeType")
  const blob = stringOf(resource, "blob")
  if (blob === undefined) {
    return text(`${bracketed("resource", uri, mimeType)}\n${stringOf(resource, "text") ?? ""}`.trimEnd())
  }
  return mimeType !== undefined && mimeType.startsWith("image/")
    ? { type: "image", data: blob, mimeType }
    : text(bracketed("resource", uri, mimeType, `${sizeOf(blob)} bytes that cannot be shown`))
}

const readBlock = (block: unknown): Block => {
  if (!isRecord(block)) return text(jsonOf(block))
  const data = stringOf(block, "data")
  const mimeType = stringOf(block, "mimeType")
  switch (getField(block, "type")) {
    case "text":
      if (typeof block["text"] === "string") return text(block["text"])
      break
    case "image":
      if (data !== undefined && mimeType !== undefined) return { type: "image", data, mimeType }
      break
    case "audio":
      if (data !== undefined) return text(bracketed("audio", mimeType, `${sizeOf(data)} bytes that cannot be heard`))
      break
    case "resource":
      if (isRecord(block["resource"])) return resourceBlock(block["resource"])
      break
    case "resource_link": {
      const [uri, name] = [stringOf(block, "uri"), stringOf(block, "title") ?? stringOf(block, "name")]
      if (uri !== undefined) {
        return text(bracketed("link to a resource", name, uri, mimeType, stringOf(block, "description")))
      }
    }
  }
  return text(jsonOf(block))
}

const jsonOf = (value: unknown): string => JSON.stringify(value) ?? "null"

/** What JSON can hold of a field; results come from JSON, so that is all of it. */
const jsonField = (answer: { readonly [key: string]: unknown }, field: string): Json | undefined => {
  const value = getField(answer, field)
  return value === undefined ? undefined : Result.getOrUndefined(encode(value))
}

/** The answer to `tools/call`, as a result that says where it came from; nothing if it is no such answer. */
export const readResult = (
  server: string,
  tool: string,
  answer: { readonly [key: string]: unknown }
): ToolResult | undefined => {
  const structuredContent = jsonField(answer, "structuredContent")
  const meta = jsonField(answer, "_meta")
  const given = getField(answer, "content")
  if (given === undefined ? structuredContent === undefined : !isList(given)) return undefined
  const blocks = isList(given) ? given.map(readBlock) : []
  const content = blocks.length === 0 && structuredContent !== undefined ? [text(jsonOf(structuredContent))] : blocks
  return result({
    content,
    details: {
      server,
      tool,
      ...(structuredContent !== undefined && { structuredContent }),
      ...(meta !== undefined && { _meta: meta })
    },
    ...(structuredContent !== undefined && { structuredContent }),
    ...(getField(answer, "isError") === true && { isError: true })
  })
}
