/**
 * Calls, results and numbers in a few words.
 */
import type { RunOutcome } from "../Errors.ts"
import type { JsonObject, Usage } from "../Messages.ts"
import type { RunResult } from "../RunResult.ts"
import type { ToolResult } from "../Tools.ts"
import { plural } from "./cap.ts"
import { oneLine, plainText, wholeLine, wholeText } from "./plainText.ts"

const textArgument = (args: JsonObject, name: string): string => {
  const value = args[name]
  return typeof value === "string" ? value : ""
}

/** What a call is about, on one line. Nothing of it is hidden: people allow calls by this. */
export const callLine = (name: string, args: JsonObject): string => {
  switch (name) {
    case "run":
      return wholeLine(textArgument(args, "command"))
    case "search":
      return wholeLine(`${textArgument(args, "pattern")} in ${textArgument(args, "path") || "."}`)
    case "list":
      return wholeLine(textArgument(args, "path") || ".")
    case "read":
    case "write":
    case "edit":
      return wholeLine(textArgument(args, "path"))
    default:
      return wholeLine(JSON.stringify(args))
  }
}

/** What a call would change, line by line, for the one who is to allow it. */
export const changeLines = (name: string, args: JsonObject): ReadonlyArray<string> => {
  const lines = (text: string, mark: string) =>
    wholeText(text.replaceAll("\r\n", "\n")).replace(/\n$/, "").split("\n").map((line) => mark + line)
  switch (name) {
    case "write":
      return lines(textArgument(args, "content"), "+ ")
    case "edit":
      return [...lines(textArgument(args, "oldText"), "- "), ...lines(textArgument(args, "newText"), "+ ")]
    case "run": {
      const command = wholeText(textArgument(args, "command")).split("\n")
      return command.length === 1 ? [] : command
    }
    default:
      return []
  }
}

/** The text of a result. */
export const resultText = (result: ToolResult): string =>
  plainText((result.content ?? []).map((block) => block.type === "text" ? block.text : "[image]").join("\n"))

/** What a tool of this program says of its result, for people. */
export const summaryOf = ({ details }: ToolResult): string | undefined =>
  typeof details === "object" && details !== null && "summary" in details && typeof details.summary === "string"
    ? oneLine(details.summary)
    : undefined

/** 950, 1.2k, 34k, 1.2M */
export const count = (n: number): string =>
  n < 1000
    ? String(n)
    : n < 9950
    ? `${(n / 1000).toFixed(1)}k`
    : n < 999_500
    ? `${Math.round(n / 1000)}k`
    : `${(n / 1e6).toFixed(1)}M`

/** 0.3s, 12s, 3m05s */
export const duration = (millis: number): string => {
  if (millis < 9950) return `${(millis / 1000).toFixed(1)}s`
  const seconds = Math.round(millis / 1000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, "0")}s`
}

/** Tokens in (of them from a cache) and out, and what they cost where that is known. */
export const usageLine = (usage: Usage): string => {
  const input = usage.input + usage.cacheRead + usage.cacheWrite
  const cached = usage.cacheRead > 0 ? ` (${count(usage.cacheRead)} cached)` : ""
  const cost = usage.cost.total > 0 ? ` · $${usage.cost.total.toFixed(usage.cost.total < 0.1 ? 4 : 2)}` : ""
  return `${count(input)} in${cached} · ${count(usage.output)} out${cost}`
}

/** Why a run did not complete, and how to go on. */
export const outcomeText = (outcome: RunOutcome): string | undefined => {
  switch (outcome._tag) {
    case "Completed":
      return outcome.stopReason === "length" ? "The answer was cut off at the model's maximal length." : undefined
    case "Aborted":
      return "Aborted."
    case "Limited":
      return `Stopped at the limit of ${outcome.limit}.`
    case "Failed": {
      const { error } = outcome
      return plainText(error.message)
    }
  }
}

/** One line on a whole run. */
export const runLine = ({ messages, usage }: RunResult): string => {
  const turns = messages.filter((message) => message.role === "assistant").length
  return `${plural(turns, "turn")} · ${usageLine(usage)}`
}
