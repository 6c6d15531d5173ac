/**
 * A check of plain JSON values against a JSON Schema (draft 2020-12, and what earlier drafts spell differently).
 *
 * Why not Effect's import of JSON Schema: it refuses a whole schema for one keyword it has no equivalent for, and its
 * decoders build a new value. A tool found at run time is checked again by the server that runs it, so here a keyword that
 * is not understood (`not`, `if`, `dependentRequired`, `contains`, `unevaluatedProperties`, `format`, a `$ref` that leads
 * out of the document …) is not checked, the rest of the schema is, and a value that fits stays the very same value.
 *
 * A schema is compiled once into closures; fields of an object are own fields, so `constructor` is never found in a
 * prototype.
 *
 * @since 0.1.0
 */
import * as JsonPointer from "effect/JsonPointer"
import * as Result from "effect/Result"
import { excerpt, formatPath, type Json, type JsonObject } from "./json.ts"
import { getField, isJsonObject, isRecord } from "./record.ts"

/**
 * The compiled schemas of one document.
 *
 * @category models
 * @since 0.1.0
 */
export interface Schemas {
  /** Whether a value fits a schema of the document. */
  readonly fits: (schema: unknown, value: unknown) => boolean
  /** What is wrong with a value, one line for each problem; after `maxIssues` of them one that counts the others. */
  readonly issues: (schema: unknown, value: unknown) => ReadonlyArray<string>
  /** What a `$ref` of the document points to, `undefined` when it leads nowhere. */
  readonly resolve: (ref: unknown) => Json | undefined
  /** What a schema asks for, in a few words: `integer`, `"a" or "b"`. */
  readonly expectation: (schema: unknown) => string
}

/** Where lines about a value are collected; without one, a check stops at the first problem. */
interface Report {
  readonly path: Array<string | number>
  readonly lines: Array<string>
  count: number
}

type Check = (value: unknown, report: Report | undefined) => boolean

/** The place of a compiled schema, so that a recursive schema can refer to itself before it is ready. */
interface Slot {
  check: Check
}

/** Gives a schema's place for use on a part of the value, and a schema's check for use on the same value. */
interface Compiler {
  readonly part: (schema: unknown) => Slot
  readonly same: (schema: unknown) => Check
  readonly expectation: (schema: unknown) => string
}

/** Lines after which a report is full. */
export const maxIssues = 10

const anything: Check = () => true

const note = (report: Report | undefined, message: string): false => {
  if (report !== undefined && report.count++ < maxIssues) report.lines.push(issueLine(report.path, message))
  return false
}

/**
 * One line of a report, as pi writes them: `  - options.depth: Expected integer, got "x"`.
 *
 * @category formatting
 * @since 0.1.0
 */
export const issueLine = (path: ReadonlyArray<PropertyKey>, message: string): string =>
  `  - ${formatPath(path) || "arguments"}: ${excerpt(message, 300)}`

/**
 * The line that stands for the problems there is no room for, if there are any.
 *
 * @category formatting
 * @since 0.1.0
 */
export const moreIssues = (count: number): ReadonlyArray<string> =>
  count > maxIssues ? [`  - … and ${count - maxIssues} more`] : []

/**
 * A few words for a value that was received. Short text, numbers and the like are quoted, the rest is named.
 *
 * @category formatting
 * @since 0.1.0
 */
export const received = (value: unknown): string => {
  switch (typeof value) {
    case "string":
      return JSON.stringify(excerpt(value, 60))
    case "number":
    case "boolean":
    case "bigint":
      return String(value)
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "an array" : "an object"
    case "undefined":
      return "nothing"
    default:
      return `a ${typeof value}`
  }
}

const child = (report: Report | undefined, key: string | number, slot: Slot, value: unknown): boolean => {
  if (report === undefined) return slot.check(value, undefined)
  report.path.push(key)
  const fits = slot.check(value, report)
  report.path.pop()
  return fits
}

/** Alternatives tried for one value before it counts as too tangled: ambiguous recursive unions grow exponentially. */
const maxAlternatives = 100_000

/**
 * Compiles the schemas of a document as they are asked for.
 *
 * @category constructors
 * @since 0.1.0
 */
export const compile = (document: JsonObject): Schemas => {
  const slots = new Map<unknown, Slot>()
  const waiting: Array<{ readonly schema: JsonObject; readonly slot: Slot }> = []
  const open = new Set<unknown>()
  const budget = { left: maxAlternatives }

  const part = (schema: unknown): Slot => {
    if (schema === false) return { check: (_, report) => note(report, "Expected nothing here") }
    if (!isJsonObject(schema)) return { check: anything }
    const known = slots.get(schema)
    if (known !== undefined) return known
    const slot: Slot = { check: anything }
    slots.set(schema, slot)
    waiting.push({ schema, slot })
    return slot
  }

  // A schema that refers to itself for the same value (`{"$ref": "#"}` at the top) asks for nothing by that.
  const same = (schema: unknown): Check => {
    if (!isJsonObject(schema)) return part(schema).check
    if (open.has(schema)) return anything
    open.add(schema)
    const check = conjunction(rules.flatMap((rule) => rule(schema, compiler) ?? []))
    open.delete(schema)
    return check
  }

  const resolve = (ref: unknown): Json | undefined => resolveRef(document, ref)
  const expectation = (schema: unknown): string => expected(schema, resolve, 0)
  const rules: ReadonlyArray<Rule> = [
    typeRule,
    enumRule,
    numberRule,
    textRule,
    arrayRule,
    objectRule,
    refRule(resolve),
    allOfRule,
    unionRule("anyOf", budget),
    unionRule("oneOf", budget)
  ]
  const compiler: Compiler = { part, same, expectation }

  const ready = (schema: unknown): Slot => {
    const slot = part(schema)
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) next.slot.check = same(next.schema)
    budget.left = maxAlternatives
    return slot
  }

  return {
    fits: (schema, value) => ready(schema).check(value, undefined),
    issues: (schema, value) => {
      const report: Report = { path: [], lines: [], count: 0 }
      ready(schema).check(value, report)
      return [...report.lines, ...moreIssues(report.count)]
    },
    resolve,
    expectation
  }
}

/** All checks in order. The first one decides alone when it fails: what is not a number has no minimum. */
const conjunction = (checks: ReadonlyArray<Check>): Check => {
  const [first, ...others] = checks
  if (first === undefined) return anything
  if (others.length === 0) return first
  return (value, report) => {
    if (!first(value, report)) return false
    let fits = true
    for (const check of others) {
      if (!check(value, report)) {
        if (report === undefined) return false
        fits = false
      }
    }
    return fits
  }
}

const resolveRef = (document: JsonObject, ref: unknown): Json | undefined => {
  const tokens = typeof ref === "string" ? JsonPointer.parseUriFragment(ref) : undefined
  let target: Json | undefined = tokens === undefined ? undefined : document
  for (const token of tokens ?? []) {
    if (isJsonObject(target)) target = Object.hasOwn(target, token) ? target[token] : undefined
    else target = isArray(target) ? target[Number(token)] : undefined
  }
  return target
}

const isArray = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

// --- what a schema asks for ---

/**
 * The JSON types a schema accepts as far as it says so: by `type`, else by the values it lists.
 *
 * @category getters
 * @since 0.1.0
 */
export const acceptedTypes = (schema: JsonObject): ReadonlyArray<string> | undefined => {
  if (typeof schema["type"] === "string") return [schema["type"]]
  if (Array.isArray(schema["type"])) return schema["type"].filter((type): type is string => typeof type === "string")
  if (Object.hasOwn(schema, "const")) return [jsonType(schema["const"])]
  return Array.isArray(schema["enum"]) ? [...new Set(schema["enum"].map(jsonType))] : undefined
}

const jsonType = (value: unknown): string => value === null ? "null" : Array.isArray(value) ? "array" : typeof value

/**
 * Whether a value is of a JSON type. Types that JSON Schema does not have accept everything.
 *
 * @category guards
 * @since 0.1.0
 */
export const isOfType = (value: unknown, type: string): boolean => {
  switch (type) {
    case "string":
    case "boolean":
      return typeof value === type
    case "number":
      return Number.isFinite(value)
    case "integer":
      return Number.isInteger(value)
    case "null":
      return value === null
    case "array":
      return Array.isArray(value)
    case "object":
      return isRecord(value)
    default:
      return true
  }
}

const quoted = (value: unknown): string => excerpt(JSON.stringify(value), 60)

const alternatives = (words: ReadonlyArray<string>): string => {
  const distinct = [...new Set(words)]
  return distinct.length > 8
    ? `${distinct.slice(0, 8).join(", ")} or ${distinct.length - 8} more`
    : distinct.join(" or ")
}

const expected = (schema: unknown, resolve: (ref: unknown) => unknown, depth: number): string => {
  if (schema === false) return "nothing"
  if (!isJsonObject(schema) || depth > 3) return "a value"
  if (Object.hasOwn(schema, "const")) return quoted(schema["const"])
  if (Array.isArray(schema["enum"])) return alternatives(schema["enum"].map(quoted))
  const types = acceptedTypes(schema)
  if (types !== undefined) return alternatives(types)
  const members = schema["anyOf"] ?? schema["oneOf"]
  if (Array.isArray(members)) return alternatives(members.map((member) => expected(member, resolve, depth + 1)))
  return Object.hasOwn(schema, "$ref") ? expected(resolve(schema["$ref"]), resolve, depth + 1) : "a value"
}

// --- rules: one for each group of keywords, giving a check if the schema uses the group ---

type Rule = (schema: JsonObject, compiler: Compiler) => Check | undefined

const typeRule: Rule = (schema) => {
  const types = schema["type"] === undefined ? undefined : acceptedTypes(schema)
  if (types === undefined) return undefined
  const [only] = types
  const test = types.length === 1 && only !== undefined
    ? (value: unknown) => isOfType(value, only)
    : (value: unknown) => types.some((type) => isOfType(value, type))
  const words = alternatives(types)
  return (value, report) => test(value) || note(report, `Expected ${words}, got ${received(value)}`)
}

const enumRule: Rule = (schema, { expectation }) => {
  const values = Object.hasOwn(schema, "const") ? [schema["const"]] : schema["enum"]
  if (!Array.isArray(values)) return undefined
  const known = new Set(values.map(identity))
  return (value, report) =>
    known.has(identity(value)) || note(report, `Expected ${expectation(schema)}, got ${received(value)}`)
}

/** What two JSON values share exactly if they are equal; NUL keeps the texts of structures apart from other texts. */
const identity = (value: unknown): unknown =>
  typeof value === "object" && value !== null ? `\0${canonical(value)}` : value

const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (!isRecord(value)) return value === undefined ? "undefined" : JSON.stringify(value)
  const fields = Object.keys(value).toSorted().map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
  return `{${fields.join(",")}}`
}

type Bound = readonly [limit: number, test: (value: number, limit: number) => boolean, words: string]

const boundsOf = (
  schema: JsonObject,
  keywords: ReadonlyArray<readonly [keyword: string, test: Bound[1], words: string]>
): ReadonlyArray<Bound> =>
  keywords.flatMap(([keyword, test, words]) => {
    const limit = schema[keyword]
    return typeof limit === "number" ? [[limit, test, words] satisfies Bound] : []
  })

const within = (bounds: ReadonlyArray<Bound>, size: number, unit: string, report: Report | undefined): boolean => {
  for (const [limit, test, words] of bounds) {
    if (!test(size, limit)) return note(report, `Expected ${words} ${limit}${unit}, got ${size}`)
  }
  return true
}

const atLeast: Bound[1] = (value, limit) => value >= limit
const atMost: Bound[1] = (value, limit) => value <= limit

/** Division of decimal fractions is not exact: 0.3 is a multiple of 0.1. */
const isMultiple: Bound[1] = (value, unit) => {
  const times = value / unit
  return Math.abs(times - Math.round(times)) <= 1e-9 * Math.max(1, Math.abs(times))
}

const numberRule: Rule = (schema) => {
  const bounds = boundsOf(schema, [
    ["minimum", atLeast, "at least"],
    ["maximum", atMost, "at most"],
    ["exclusiveMinimum", (value, limit) => value > limit, "more than"],
    ["exclusiveMaximum", (value, limit) => value < limit, "less than"],
    ["multipleOf", isMultiple, "a multiple of"]
  ])
  if (bounds.length === 0) return undefined
  return (value, report) => typeof value !== "number" || within(bounds, value, "", report)
}

const sizeBounds = (schema: JsonObject, unit: string): ReadonlyArray<Bound> =>
  boundsOf(schema, [[`min${unit}`, atLeast, "at least"], [`max${unit}`, atMost, "at most"]])

const codePoints = (text: string): number => {
  let count = 0
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) count++
  return count
}

/** The expression of a pattern; one that is none here is not understood. */
const toRegExp = (pattern: unknown): RegExp | undefined =>
  typeof pattern === "string"
    ? Result.getOrUndefined(
      Result.orElse(Result.try(() => new RegExp(pattern, "u")), () => Result.try(() => new RegExp(pattern)))
    )
    : undefined

const textRule: Rule = (schema) => {
  const bounds = sizeBounds(schema, "Length")
  const pattern = toRegExp(schema["pattern"])
  if (bounds.length === 0 && pattern === undefined) return undefined
  return (value, report) => {
    if (typeof value !== "string") return true
    if (bounds.length > 0 && !within(bounds, codePoints(value), " characters", report)) return false
    return pattern === undefined || pattern.test(value) ||
      note(report, `Expected text that matches ${pattern.source}, got ${received(value)}`)
  }
}

const arrayRule: Rule = (schema, { part }) => {
  const bounds = sizeBounds(schema, "Items")
  // Before draft 2020-12 the first items were described by an array in `items`, the others by `additionalItems`.
  const legacy = Array.isArray(schema["items"]) ? schema["items"] : undefined
  const prefix = (legacy ?? (Array.isArray(schema["prefixItems"]) ? schema["prefixItems"] : [])).map(part)
  const rest = part(legacy === undefined ? schema["items"] : schema["additionalItems"])
  const unique = schema["uniqueItems"] === true
  const used = ["items", "prefixItems", "minItems", "maxItems", "uniqueItems"].some((key) => Object.hasOwn(schema, key))
  if (!used) return undefined
  return (value, report) => {
    if (!Array.isArray(value)) return true
    let fits = within(bounds, value.length, " items", report)
    if (unique && new Set(value.map(identity)).size < value.length) fits = note(report, "Expected items that differ")
    for (let index = 0; index < value.length; index++) {
      if (!fits && report === undefined) return false
      fits = child(report, index, prefix[index] ?? rest, value[index]) && fits
    }
    return fits
  }
}

const objectKeywords = [
  "properties",
  "required",
  "additionalProperties",
  "patternProperties",
  "propertyNames",
  "minProperties",
  "maxProperties"
]

const fieldsOf = (value: Json | undefined): ReadonlyArray<readonly [key: string, schema: Json]> =>
  isJsonObject(value) ? Object.entries(value) : []

const objectRule: Rule = (schema, { expectation, part }) => {
  if (!objectKeywords.some((key) => Object.hasOwn(schema, key))) return undefined
  const requiredKeys = Array.isArray(schema["required"]) ? schema["required"] : []
  const required = new Set(requiredKeys.filter((key): key is string => typeof key === "string"))
  const described = new Map(fieldsOf(schema["properties"]))
  const properties = [...new Set([...described.keys(), ...required])].map((key) => ({
    key,
    slot: part(described.get(key)),
    missing: required.has(key) ? `Missing key, expected ${expectation(described.get(key))}` : undefined
  }))
  const checkOthers = otherKeys(schema, described, part)
  const bounds = sizeBounds(schema, "Properties")
  return (value, report) => {
    if (!isRecord(value)) return true
    let fits = true
    for (const { key, missing, slot } of properties) {
      // A field that is `undefined` does not exist in JSON.
      const field = getField(value, key)
      if (field === undefined) fits = missing === undefined ? fits : child(report, key, absent(missing), field)
      else fits = child(report, key, slot, field) && fits
      if (!fits && report === undefined) return false
    }
    if (checkOthers !== undefined) fits = checkOthers(value, report) && fits
    return bounds.length > 0 ? within(bounds, Object.keys(value).length, " fields", report) && fits : fits
  }
}

const absent = (message: string): Slot => ({ check: (_, report) => note(report, message) })

/** The check of keys that are not listed, if the schema says anything about those. */
const otherKeys = (
  schema: JsonObject,
  described: ReadonlyMap<string, Json>,
  part: Compiler["part"]
): Check | undefined => {
  const patterns = fieldsOf(schema["patternProperties"]).flatMap(([pattern, field]) => {
    const expression = toRegExp(pattern)
    return expression === undefined ? [] : [{ expression, slot: part(field) }]
  })
  const others = schema["additionalProperties"]
  const names = schema["propertyNames"]
  const rest = others === false ? absent("Unexpected key") : part(others)
  const name = part(names)
  if (patterns.length === 0 && !isJsonObject(others) && others !== false && names === undefined) return undefined
  return (value, report) => {
    if (!isRecord(value)) return true
    let fits = true
    for (const key of Object.keys(value)) {
      const field = value[key]
      if (field === undefined) continue
      const matching = patterns.filter(({ expression }) => expression.test(key))
      for (const { slot } of matching) fits = child(report, key, slot, field) && fits
      if (matching.length === 0 && !described.has(key)) fits = child(report, key, rest, field) && fits
      if (names !== undefined) fits = child(report, key, name, key) && fits
      if (!fits && report === undefined) return false
    }
    return fits
  }
}

const refRule = (resolve: Schemas["resolve"]): Rule => (schema, { same }) =>
  Object.hasOwn(schema, "$ref") ? same(resolve(schema["$ref"])) : undefined

const allOfRule: Rule = (schema, { same }) =>
  Array.isArray(schema["allOf"]) ? conjunction([anything, ...schema["allOf"].map(same)]) : undefined

const unionRule = (keyword: "anyOf" | "oneOf", budget: { left: number }): Rule => (schema, compiler) => {
  const members = schema[keyword]
  if (!Array.isArray(members)) return undefined
  const checks = members.map(compiler.same)
  const most = keyword === "oneOf" ? 1 : checks.length
  return (value, report) => {
    let fitting = 0
    for (const check of checks) {
      if (--budget.left < 0) return note(report, "Too many alternatives to check")
      if (check(value, undefined)) fitting++
      if (keyword === "anyOf" && fitting > 0) return true
    }
    if (fitting > 0 && fitting <= most) return true
    if (report !== undefined) explainUnion(members, checks, value, fitting, compiler, report)
    return false
  }
}

/** The one member that takes values of this type knows best what is wrong; several together can only be listed. */
const explainUnion = (
  members: ReadonlyArray<Json>,
  checks: ReadonlyArray<Check>,
  value: unknown,
  fitting: number,
  { expectation }: Compiler,
  report: Report
): void => {
  if (fitting > 1) {
    note(report, `Expected exactly one of the alternatives to match, not ${fitting}`)
    return
  }
  const candidates = checks.filter((_, index) => {
    const member = members[index]
    const types = isJsonObject(member) ? acceptedTypes(member) : undefined
    return types === undefined || types.some((type) => isOfType(value, type))
  })
  const [only] = candidates
  if (candidates.length === 1 && only !== undefined) only(value, report)
  else note(report, `Expected ${alternatives(members.map(expectation))}, got ${received(value)}`)
}
