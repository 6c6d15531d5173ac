/**
 * The tools a run can execute, checked and ready to be looked up, with the services they ask for.
 */
import type * as Context from "effect/Context"
import * as Result from "effect/Result"
import { AgentConfigError } from "../Errors.ts"
import type { JsonObject, ToolDeclaration } from "../Messages.ts"
import { type Any, type ExecutionMode, TypeId } from "../Tools.ts"
import { checkOneOf, checkSchedule } from "./checks.ts"
import { withoutAmbient } from "./currentRun.ts"
import { encode, wellFormed } from "./json.ts"
import { isRecord } from "./record.ts"

interface Catalog {
  readonly tools: ReadonlyArray<Any>
  readonly byName: ReadonlyMap<string, Any>
  readonly declarations: ReadonlyArray<ToolDeclaration>
}

export interface ToolSet extends Catalog {
  readonly services: Context.Context<never>
}

export const executionModes: ReadonlyArray<ExecutionMode> = ["parallel", "sequential"]

const isTool = (tool: unknown): boolean => isRecord(tool) && TypeId in tool

const problemOf = (tool: Any, byName: ReadonlyMap<string, Any>): AgentConfigError | undefined => {
  const problem = (reason: AgentConfigError["reason"], message: string) => new AgentConfigError({ reason, message })
  if (!isTool(tool)) return problem("InvalidTool", "A tool is not one; make it with Tools.make or Tools.dynamic.")
  if (typeof tool.name !== "string" || tool.name === "") {
    return problem("InvalidTool", "A tool has no name; give it one.")
  }
  if (!tool.name.isWellFormed()) {
    return problem(
      "InvalidTool",
      `The name of tool "${wellFormed(tool.name)}" is no well-formed text; give it another.`
    )
  }
  if (byName.has(tool.name)) {
    return problem(
      "DuplicateTool",
      `Two tools are named "${tool.name}"; a model could not tell them apart. Rename one of them.`
    )
  }
  if (Result.isFailure(tool.parameters)) {
    return problem(
      "InvalidToolParameters",
      `The parameters of tool "${tool.name}" cannot be shown to a model: ${tool.parameters.failure}`
    )
  }
  if (Result.isFailure(tool.timeout)) return problem("InvalidTimeout", tool.timeout.failure)
  const option = Result.flatMap(
    checkSchedule(`The retry of tool "${tool.name}"`, tool.retry),
    () => checkOneOf(`The executionMode of tool "${tool.name}"`, tool.executionMode, executionModes)
  )
  return Result.isFailure(option) ? option.failure : undefined
}

/** The schema with its descriptions well formed; it was made of JSON, so that is all encoding can change. */
const mendSchema = (schema: JsonObject): JsonObject => {
  const encoded = encode(schema)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
  return Result.isSuccess(encoded) ? encoded.success as JsonObject : schema
}

const check = (tools: ReadonlyArray<Any>): Result.Result<Catalog, AgentConfigError> => {
  const byName = new Map<string, Any>()
  const declarations: Array<ToolDeclaration> = []
  for (const tool of tools) {
    const problem = problemOf(tool, byName)
    if (problem !== undefined) return Result.fail(problem)
    byName.set(tool.name, tool)
    declarations.push({
      name: tool.name,
      description: wellFormed(tool.description),
      parameters: mendSchema(Result.getOrThrow(tool.parameters).jsonSchema)
    })
  }
  return Result.succeed({ tools: tools.slice(), byName, declarations })
}

// Agents that are made with the same list share one catalog.
const catalogs = new WeakMap<ReadonlyArray<Any>, Catalog>()

const catalogOf = (tools: ReadonlyArray<Any>): Result.Result<Catalog, AgentConfigError> => {
  if (!Array.isArray(tools)) {
    return Result.fail(
      new AgentConfigError({ reason: "InvalidTool", message: "The tools are no list; give an array." })
    )
  }
  const known = catalogs.get(tools)
  if (known !== undefined && known.tools.length === tools.length && known.tools.every((tool, i) => tool === tools[i])) {
    return Result.succeed(known)
  }
  return Result.map(check(tools), (catalog) => {
    catalogs.set(tools, catalog)
    return catalog
  })
}

export const makeToolSet = (
  tools: ReadonlyArray<Any>,
  services: Context.Context<never>
): Result.Result<ToolSet, AgentConfigError> =>
  Result.map(catalogOf(tools), (catalog) => ({ ...catalog, services: withoutAmbient(services) }))
