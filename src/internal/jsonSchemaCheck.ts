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
import { canonicalText } from "./canonical.ts"
import { issueLine, maxIssues, moreIssues, received } from "./issues.ts"
import { attempt, type Json, type JsonObject } from "./json.ts"
import { acceptedTypes, expectation, isOfType, listedValues, resolveRef } from "./jsonSchema.ts"
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
  /** Gives the checks that follow, until the next call, a new budget of work. */
  readonly start: () => void
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
  readonly document: JsonObject
  /** What schemas for one and the same value cost; a check that finds nothing left refuses the value. */
  readonly budget: { left: number }
}

const anything: Check = () => true

const note = (report: Report | undefined, message: string): false => {
  if (report !== undefined && report.count++ < maxIssues) report.lines.push(issueLine(report.path, message))
  return false
}

const child = (report: Report | undefined, key: string | number, slot: Slot, value: unknown): boolean => {
  if (report === undefined) return slot.check(value, undefined)
  report.path.push(key)
  const fits = slot.check(value, report)
  report.path.pop()
  return fits
}

/**
 * Schemas that are applied to values on behalf of other schemas (by `$ref`, `allOf`, `anyOf`, `oneOf`) in one go. Far more
 * than any arguments need; ambiguous recursive unions and schemas made to be expensive grow exponentially.
 */
const maxWork = 10_000_000

/** Schemas that are compiled on behalf of one schema; what a schema asks for beyond that is not checked. */
const maxCompiled = 10_000

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
  const budget = { left: maxWork }
  let compiled = 0

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
    if (open.has(schema) || ++compiled > maxCompiled) return anything
    open.add(schema)
    const check = conjunction(rules.flatMap((rule) => rule(schema, compiler) ?? []))
    open.delete(schema)
    return check
  }

  const compiler: Compiler = { part, same, document, budget }

  const ready = (schema: unknown): Slot => {
    const slot = part(schema)
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      compiled = 0
      next.slot.check = same(next.schema)
    }
    return slot
  }

  return {
    fits: (schema, value) => ready(schema).check(value, undefined),
    issues: (schema, value) => {
      const report: Report = { path: [], lines: [], count: 0 }
      ready(schema).check(value, report)
      return [...report.lines, ...moreIssues(report.count)]
    },
    start: () => {
      budget.left = maxWork
    }
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

// --- rules: one for each group of keywords, giving a check if the schema uses the group ---

type Rule = (schema: JsonObject, compiler: Compiler) => Check | undefined

const typeRule: Rule = (schema) => {
  const types = schema["type"] === undefined ? undefined : acceptedTypes(schema)
  if (types === undefined) return undefined
  const [only] = types
  const test = types.length === 1 && only !== undefined
    ? (value: unknown) => isOfType(value, only)
    : (value: unknown) => types.some((type) => isOfType(value, type))
  const words = expectation({}, { type: types })
  return (value, report) => test(value) || note(report, `Expected ${words}, got ${received(value)}`)
}

const enumRule: Rule = (schema, { document }) => {
  const values = listedValues(schema)
  if (values === undefined) return undefined
  const known = new Set(values.map(identity))
  return (value, report) =>
    known.has(identity(value)) || note(report, `Expected ${expectation(document, schema)}, got ${received(value)}`)
}

/** What two JSON values share exactly if they are equal; NUL keeps the texts of structures apart from other texts. */
const identity = (value: unknown): unknown =>
  typeof value === "object" && value !== null ? `\0${canonicalText(value)}` : value

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
    ? attempt(() => new RegExp(pattern, "u")) ?? attempt(() => new RegExp(pattern))
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

const objectRule: Rule = (schema, { document, part }) => {
  if (!objectKeywords.some((key) => Object.hasOwn(schema, key))) return undefined
  const requiredKeys = Array.isArray(schema["required"]) ? schema["required"] : []
  const required = new Set(requiredKeys.filter((key): key is string => typeof key === "string"))
  const described = new Map(fieldsOf(schema["properties"]))
  const properties = [...new Set([...described.keys(), ...required])].map((key) => ({
    key,
    slot: part(described.get(key)),
    missing: required.has(key) ? `Missing key, expected ${expectation(document, described.get(key))}` : undefined
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

/** The check of a schema that applies to the same value, paid for from the budget. */
const delegate = (schema: unknown, { budget, same }: Compiler): Check => {
  const check = same(schema)
  return (value, report) => --budget.left < 0 ? note(report, "Too tangled to be checked") : check(value, report)
}

const refRule: Rule = (schema, compiler) =>
  Object.hasOwn(schema, "$ref") ? delegate(resolveRef(compiler.document, schema["$ref"]), compiler) : undefined

const allOfRule: Rule = (schema, compiler) =>
  Array.isArray(schema["allOf"])
    ? conjunction([anything, ...schema["allOf"].map((member) => delegate(member, compiler))])
    : undefined

const unionRule = (keyword: "anyOf" | "oneOf"): Rule => (schema, compiler) => {
  const members = schema[keyword]
  if (!Array.isArray(members)) return undefined
  const checks = members.map((member) => delegate(member, compiler))
  const most = keyword === "oneOf" ? 1 : checks.length
  return (value, report) => {
    let fitting = 0
    for (const check of checks) {
      if (check(value, undefined)) fitting++
      if (keyword === "anyOf" && fitting > 0) return true
    }
    if (fitting > 0 && fitting <= most) return true
    if (report !== undefined) explainUnion(members, checks, value, fitting, compiler.document, report)
    return false
  }
}

/** The one member that this value can be meant for knows best what is wrong; several together can only be listed. */
const explainUnion = (
  members: ReadonlyArray<Json>,
  checks: ReadonlyArray<Check>,
  value: unknown,
  fitting: number,
  document: JsonObject,
  report: Report
): void => {
  if (fitting > 1) {
    note(report, `Expected exactly one of the alternatives to match, not ${fitting}`)
    return
  }
  const candidates = checks.filter((_, index) => isMeantFor(members[index], value, document))
  const [only] = candidates
  if (candidates.length === 1 && only !== undefined) only(value, report)
  else note(report, `Expected ${expectation(document, { anyOf: members })}, got ${received(value)}`)
}

/** Whether a value is of a type that the schema accepts and has no field that contradicts a listed value. */
const isMeantFor = (member: Json | undefined, value: unknown, document: JsonObject): boolean => {
  const schema = isJsonObject(member) && Object.hasOwn(member, "$ref") ? resolveRef(document, member["$ref"]) : member
  if (!isJsonObject(schema)) return true
  const types = acceptedTypes(schema)
  if (types !== undefined && !types.some((type) => isOfType(value, type))) return false
  return !isRecord(value) || fieldsOf(schema["properties"]).every(([key, field]) => {
    const listed = isJsonObject(field) ? listedValues(field) : undefined
    return listed === undefined || !Object.hasOwn(value, key) || listed.map(identity).includes(identity(value[key]))
  })
}

const rules: ReadonlyArray<Rule> = [
  typeRule,
  enumRule,
  numberRule,
  textRule,
  arrayRule,
  objectRule,
  refRule,
  allOfRule,
  unionRule("anyOf"),
  unionRule("oneOf")
]
