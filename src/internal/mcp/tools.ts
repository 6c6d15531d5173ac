/**
 * The tools of a server as tools of an agent.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { Json, JsonObject } from "../../Messages.ts"
import { type Annotations, type CallContext, dynamic, result, type Tool, type ToolResult } from "../../Tools.ts"
import { encode } from "../json.ts"
import * as log from "../log.ts"
import { isJsonObject, isRecord } from "../record.ts"
import type { Progress } from "./connection.ts"
import { readResult } from "./content.ts"
import type { McpError } from "./error.ts"
import type { Failures } from "./failures.ts"
import type { Settings } from "./options.ts"
import type { Listed, Server } from "./server.ts"
import { toolNames } from "./toolNames.ts"

const textOf = (value: unknown): string | undefined => typeof value === "string" && value !== "" ? value : undefined

const hints = {
  readOnly: "readOnlyHint",
  destructive: "destructiveHint",
  idempotent: "idempotentHint",
  openWorld: "openWorldHint"
} as const

const annotationsOf = (given: unknown): Annotations => {
  const annotations = isRecord(given) ? given : {}
  return Object.fromEntries(
    Object.entries(hints).flatMap(([name, hint]) => {
      const value = annotations[hint]
      return typeof value === "boolean" ? [[name, value]] : []
    })
  )
}

const titleOf = (listed: Listed): string | undefined =>
  textOf(listed["title"]) ?? (isRecord(listed["annotations"]) ? textOf(listed["annotations"]["title"]) : undefined)

const jsonObject = (value: unknown): JsonObject => {
  const json: Json | undefined = Result.getOrUndefined(encode(value))
  return isJsonObject(json) ? json : {}
}

/** Why a tool cannot be used, or nothing. */
const problemOf = (listed: Listed, seen: ReadonlySet<string>): string | undefined => {
  const { execution, name } = listed
  if (textOf(name) === undefined) return "it has no name"
  if (seen.has(String(name))) return "another one has the same name"
  return isRecord(execution) && execution["taskSupport"] === "required"
    ? "it runs as a task only, which is not supported"
    : undefined
}

/** The tools of a list, in its order; those that cannot be used are left out, with a warning that names them. */
export const makeTools = Effect.fnUntraced(function*(
  settings: Settings,
  failures: Failures,
  listed: ReadonlyArray<Listed>,
  call: Server["call"]
) {
  const usable = new Map<string, Listed>()
  const leftOut = (name: unknown, problem: string) =>
    log.warn(failures.scrub(`Tool "${String(name)}" of MCP server "${settings.name}" is left out: ${problem}.`))
  for (const each of listed) {
    const name = textOf(each["name"])
    if (name !== undefined && !settings.include(name)) continue
    const problem = problemOf(each, new Set(usable.keys()))
    if (problem !== undefined) yield* leftOut(each["name"], problem)
    else usable.set(String(each["name"]), each)
  }
  const names = toolNames(settings.name, [...usable.keys()])
  const tools: Array<Tool> = []
  for (const [name, each] of usable) {
    const tool = makeTool(settings, failures, names.get(name) ?? name, name, each, call)
    if (Result.isFailure(tool.parameters)) {
      yield* leftOut(name, `its parameters cannot be shown to a model: ${tool.parameters.failure}`)
    } else {
      tools.push(tool)
    }
  }
  const result: ReadonlyArray<Tool> = tools
  return result
})

const makeTool = (
  settings: Settings,
  failures: Failures,
  shown: string,
  name: string,
  listed: Listed,
  call: Server["call"]
): Tool =>
  dynamic(shown, {
    description: textOf(listed["description"]) ?? titleOf(listed) ?? name,
    label: titleOf(listed) ?? name,
    parameters: jsonObject(listed["inputSchema"]),
    annotations: annotationsOf(listed["annotations"]),
    executionMode: settings.executionMode,
    timeout: settings.callTimeout,
    execute: (args, context) => execute(settings, failures, name, jsonObject(args), context, call)
  })

/**
 * One call. What may have happened is a result and no failure, so that no schedule does it twice; what did not happen is
 * a failure, which may be tried again.
 */
const execute = Effect.fnUntraced(function*(
  settings: Settings,
  failures: Failures,
  name: string,
  args: JsonObject,
  context: CallContext,
  call: Server["call"]
): Effect.fn.Return<ToolResult, McpError> {
  const progress = yield* Queue.unbounded<Progress, Cause.Done>()
  const answering = Effect.ensuring(
    call(name, args, (each) => void Queue.offerUnsafe(progress, each)),
    Queue.end(progress)
  )
  const telling = Stream.runForEach(Stream.fromQueue(progress), (each) => context.update(progressResult(each)))
  const answer = yield* Effect.all([answering, telling], { concurrency: 2 }).pipe(
    Effect.map(([read]) => read),
    Effect.catch((failure) =>
      failure._tag === "Unknown"
        ? Effect.succeed({
          isError: true,
          content: [{
            type: "text",
            text:
              `${failure.error.message}\nThe outcome of this call of "${name}" is unknown: it may have been done, in part or wholly. Find out before you call it again.`
          }]
        })
        : Effect.fail(failure.error)
    )
  )
  const read = readResult(settings.name, name, answer)
  return read ?? (yield* Effect.fail(
    failures.make("Protocol", `answered the call of "${name}" with what is no result of a tool.`)
  ))
})

const progressResult = (progress: Progress): ToolResult => {
  const count = progress.total === undefined ? `${progress.progress}` : `${progress.progress} of ${progress.total}`
  return result({ text: progress.message ?? count, details: progress })
}
