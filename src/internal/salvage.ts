/**
 * What can be read of a message that another program wrote. Of one that does not decode the smallest thing is left out
 * that keeps it from it: a field, an element, a block, or the message itself when nothing smaller will do.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import { AgentMessage } from "../Messages.ts"
import { emptyUsage } from "./content.ts"
import { encode, formatPath, type Path } from "./json.ts"
import { isRecord, setField } from "./record.ts"

/** Something that was left out, or that got a neutral value because a message cannot be without it. */
export interface Loss {
  /** What is left out; empty for the whole message. */
  readonly place: Path
  readonly filled: boolean
  /** Where the first thing lies that does not decode. */
  readonly path: Path
  readonly problem: string
}

export interface Salvage {
  /** The same object when nothing is wrong with it; nothing when it cannot be read at all. */
  readonly message: AgentMessage | undefined
  readonly losses: ReadonlyArray<Loss>
  /** How the JSON differs from what was given, losses aside: in its text, or in form (`undefined`, dates). */
  readonly rewritten: "Text" | "Form" | undefined
}

export const salvage = (value: unknown): Salvage => {
  const losses = new Map<string, Loss>()
  const encoded = encode(value)
  // Reading the parts of what cannot be encoded may run into getters that throw.
  const json: Result.Result<unknown, unknown> = Result.isSuccess(encoded)
    ? encoded
    : Result.try(() => encodeParts(value, encoded.failure, [], losses))
  const message = Result.isFailure(json) ? undefined : decodeParts(json.success, losses)
  if (Result.isFailure(json)) lose(losses, [], [], Result.isFailure(encoded) ? encoded.failure : "")
  const unchanged = message === undefined || Result.isFailure(encoded) || encoded.success === value
  return {
    message,
    losses: outermost(losses),
    rewritten: unchanged ? undefined : JSON.stringify(value) === JSON.stringify(encoded.success) ? "Form" : "Text"
  }
}

const keyOf = (path: Path): string => JSON.stringify(path)

const lose = (losses: Map<string, Loss>, place: Path, path: Path, problem: string, filled = false): void => {
  const known = losses.get(keyOf(place))
  losses.set(keyOf(place), { place, path: known?.path ?? path, problem: known?.problem ?? problem, filled })
}

/** The losses that lie in no other one, each with the first problem that was found there. */
const outermost = (losses: ReadonlyMap<string, Loss>): ReadonlyArray<Loss> => {
  const found = new Map<Loss, Loss>()
  for (const loss of losses.values()) {
    const outer = loss.place.map((_, depth) => losses.get(keyOf(loss.place.slice(0, depth)))).find(Boolean) ?? loss
    if (!found.has(outer)) found.set(outer, { ...outer, path: loss.path, problem: loss.problem })
  }
  return [...found.values()]
}

// --- what is no JSON ---

/** Messages hold blocks, blocks hold arguments: below those nothing is looked for, so that cycles end. */
const maxDepth = 4

/** The JSON of something that cannot be encoded as a whole: what cannot is left out, in a list it becomes `null`. */
const encodeParts = (value: unknown, problem: string, path: Path, losses: Map<string, Loss>): unknown => {
  if (path.length < maxDepth && Array.isArray(value)) {
    return Array.from(value, (item: unknown, index) => encodePart(item, [...path, index], losses) ?? null)
  }
  if (path.length < maxDepth && isRecord(value) && Object.getPrototypeOf(value) === Object.prototype) {
    const copy: Record<string, unknown> = {}
    for (const key of Object.keys(value)) {
      const part = encodePart(value[key], [...path, key], losses)
      if (part !== undefined) setField(copy, key, part)
    }
    return copy
  }
  lose(losses, path, path, problem)
  return undefined
}

const encodePart = (value: unknown, path: Path, losses: Map<string, Loss>): unknown => {
  const encoded = encode(value)
  return Result.isSuccess(encoded) ? encoded.success : encodeParts(value, encoded.failure, path, losses)
}

// --- what does not decode ---

/** What stands for fields a message cannot be without; as `Messages.assistant` and `Messages.toolResult` have it. */
const neutral: { readonly [key: string]: unknown } = {
  api: "",
  isError: false,
  model: "",
  provider: "",
  stopReason: "stop",
  timestamp: 0,
  usage: emptyUsage
}

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

/**
 * Leaves out in rounds what does not decode, since a field that is needed shows only when it is gone. Elements of lists go
 * last, so that every path stays true until then.
 */
const decodeParts = (json: unknown, losses: Map<string, Loss>): AgentMessage | undefined => {
  if (Schema.is(AgentMessage)(json)) return json
  const decode = SchemaParser.decodeUnknownResult(AgentMessage, { errors: "all" })
  let value = json
  for (;;) {
    const decoded = decode(value)
    if (Result.isSuccess(decoded)) return decoded.success
    const fields = new Set<string>()
    const elements = new Set<string>()
    const filled: Record<string, unknown> = {}
    for (const issue of formatIssues(decoded.failure).issues) {
      const path = (issue.path ?? []).map((segment) => typeof segment === "object" ? segment.key : segment)
      const place = holds(value, path) ? path : path.slice(0, -1)
      const [name] = path
      if (place.length === 0 && path.length === 1 && typeof name === "string" && Object.hasOwn(neutral, name)) {
        lose(losses, path, path, issue.message, true)
        filled[name] = neutral[name]
      } else {
        lose(losses, place, path, issue.message)
        if (place.length === 0) return undefined
        const places = typeof place.at(-1) === "number" ? elements : fields
        places.add(keyOf(place))
      }
    }
    const rest = without(value, fields.size > 0 ? fields : elements, [])
    value = isRecord(rest) ? { ...rest, ...filled } : rest
  }
}

/** Whether there is something at a path. */
const holds = (value: unknown, path: Path): boolean => {
  let at = value
  for (const key of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return false
    at = Reflect.get(at, key)
  }
  return true
}

/** A copy without what is at the given places. */
const without = (value: unknown, places: ReadonlySet<string>, path: Path): unknown => {
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => {
      const place = [...path, index]
      return places.has(keyOf(place)) ? [] : [without(item, places, place)]
    })
  }
  if (!isRecord(value)) return value
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const place = [...path, key]
    if (!places.has(keyOf(place))) setField(copy, key, without(value[key], places, place))
  }
  return copy
}

/** A place in a message as people read it. */
export const placeName = (path: Path): string => path.length === 0 ? "the message" : formatPath(path)
