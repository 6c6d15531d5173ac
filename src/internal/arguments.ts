/**
 * The arguments of a tool call: what the model is shown, and how what it writes becomes what the tool gets.
 *
 * Decoding is lenient first and strict after. Arguments that fit are decoded at once. Otherwise they are repaired where
 * that loses nothing (the rules are those of `coerce`) and decoded again; the second refusal is final, and its lines say
 * for each field what was expected. The raw arguments are never changed.
 *
 * Arguments as a whole: nothing, `null` and empty text count as `{}`, the JSON text of an object as that object.
 * Keys the schema does not know: an Effect struct drops them, a JSON Schema keeps them unless `additionalProperties` is
 * false. A key `__proto__` that is kept stays a field of its own, in a copy too; it never becomes a prototype.
 * Defaults: the decoding defaults of an Effect schema apply, also for `null`; the `default` of a JSON Schema does not.
 *
 * Decoding is synchronous and needs no services. A schema that breaks this is refused as far as it shows when its fields
 * are decoded once from made-up values; what only shows later is a refusal of the call that meets it.
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import { coerce } from "./coerce.ts"
import { issueLine, maxIssues, moreIssues, received } from "./issues.ts"
import { byteLength, encode, excerpt, type Json, type JsonObject, parse, reading, show } from "./json.ts"
import { acceptedTypes, expectation, resolveRef } from "./jsonSchema.ts"
import { compile, type Schemas } from "./jsonSchemaCheck.ts"
import { jsonSchemaOf, modelCodec, objectSchema, tidy } from "./modelSchema.ts"
import { getField, isJsonObject, isRecord } from "./record.ts"

/**
 * The two sides of a tool's parameters.
 *
 * @category models
 * @since 0.1.0
 */
export interface ArgumentsCodec {
  /** JSON Schema (draft 2020-12, definitions under `$defs`) that the model is shown. */
  readonly jsonSchema: JsonObject
  /** The decoded value of a call's raw arguments, or the lines that say what is wrong with them. */
  readonly decode: (raw: unknown) => Result.Result<unknown, string>
}

// --- making a codec ---

/**
 * The codec of an Effect schema, or why a model cannot be shown this schema.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromSchema = (schema: Schema.ConstraintDecoder<unknown>): Result.Result<ArgumentsCodec, string> =>
  reading("the schema cannot be shown as JSON Schema", () => makeFromSchema(schema))

const makeFromSchema = (schema: Schema.ConstraintDecoder<unknown>): Result.Result<ArgumentsCodec, string> => {
  const codec = modelCodec(schema)
  const document = jsonSchemaOf(codec)
  const shown = objectSchema(tidy(document), false)
  if (shown === undefined) return Result.fail(notAnObject(document))
  // Providers want to see properties, even none.
  const jsonSchema = { ...shown, properties: shown["properties"] ?? {} }
  const schemas = compile(document)
  const strict = strictDecoder(codec, document)
  const needs = decodingNeeds(codec, document)
  return needs === undefined
    ? Result.succeed({ jsonSchema, decode: makeDecode(jsonSchema, schemas, document, strict) })
    : Result.fail(needs)
}

/**
 * The codec of a JSON Schema, or why it cannot be used.
 *
 * **Details**
 *
 * The model is shown a copy. It is the schema as given, but for a missing `type` at the top, or a reference there. What the
 * check does not understand is not checked (see `jsonSchemaCheck`).
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromJsonSchema = (jsonSchema: unknown): Result.Result<ArgumentsCodec, string> =>
  Result.flatMap(encode(jsonSchema), (json) => {
    if (!isJsonObject(json)) return Result.fail(`a JSON Schema for parameters is an object, not ${received(json)}`)
    const document = structuredClone(json)
    const shown = objectSchema(document, true)
    if (shown === undefined) return Result.fail(notAnObject(document))
    const schemas = compile(shown)
    const strict: Strict = {
      decode: (value) => schemas.fits(shown, value) ? Result.succeed(value) : undefined,
      explain: (value) => schemas.issues(shown, value)
    }
    return Result.succeed({ jsonSchema: shown, decode: makeDecode(shown, schemas, shown, strict) })
  })

const notAnObject = (document: JsonObject): string =>
  `parameters must describe an object, this schema describes ${expectation(document, document)}`

// --- decoding ---

/** The check after all leniency. */
interface Strict {
  /** The decoded value, nothing if the value is refused; a failure where decoding itself breaks. */
  readonly decode: (value: unknown) => Result.Result<unknown, string> | undefined
  /** What is wrong with a value that was refused. */
  readonly explain: (value: unknown) => ReadonlyArray<string>
}

const maxIssueBytes = 1024

const refused = "do not fit the parameters"

const makeDecode = (
  jsonSchema: JsonObject,
  schemas: Schemas,
  document: JsonObject,
  strict: Strict
): ArgumentsCodec["decode"] => {
  const decodeObject = (value: unknown): Result.Result<unknown, string> => {
    schemas.start()
    const fitting = strict.decode(value)
    if (fitting !== undefined) return fitting
    const repaired = coerce(schemas, document, value)
    const decoded = repaired === value ? undefined : strict.decode(repaired)
    if (decoded !== undefined) return decoded
    const lines = strict.explain(repaired)
    return Result.fail(lines.length === 0 ? issueLine([], refused) : excerpt(lines.join("\n"), maxIssueBytes))
  }
  const decode = (raw: unknown): Result.Result<unknown, string> =>
    isRecord(raw) ? decodeObject(raw) : Result.flatMap(wholeObject(jsonSchema, raw), decodeObject)
  return (raw) => {
    const decoded = Result.try(() => decode(raw))
    // Only a getter, a proxy or an endless nesting throws here.
    return Result.isSuccess(decoded)
      ? decoded.success
      : Result.fail(issueLine([], `cannot be read: ${show(decoded.failure)}`))
  }
}

/** The object that stands for arguments which are none as they came. */
const wholeObject = (jsonSchema: JsonObject, raw: unknown): Result.Result<unknown, string> => {
  if (raw === undefined || raw === null || typeof raw === "string" && raw.trim() === "") return Result.succeed({})
  const parsed = typeof raw === "string" ? Result.flatMap(parse(raw), encode) : undefined
  if (parsed !== undefined && Result.isSuccess(parsed) && isRecord(parsed.success)) return parsed
  const properties = jsonSchema["properties"]
  const keys = isRecord(properties) ? Object.keys(properties) : []
  const wanted = keys.length === 0 ? "an object" : `an object with the keys ${keys.slice(0, 20).join(", ")}`
  return Result.fail(issueLine([], `Expected ${wanted}, got ${received(raw)}`))
}

// --- Effect schemas ---

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

const strictDecoder = (
  codec: Schema.ConstraintDecoder<unknown>,
  document: JsonObject
): Strict => {
  const run = SchemaParser.decodeUnknownExit(codec)
  const prepare = preparation(codec, document)
  return {
    decode: (value) => {
      const exit = run(prepare(value))
      if (Exit.isSuccess(exit)) return Result.succeed(exit.value)
      return Cause.hasDies(exit.cause) ? Result.fail(issueLine([], brokenDecoding(exit.cause))) : undefined
    },
    explain: (value) => {
      const exit = run(prepare(value), { errors: "all" })
      const issue = Exit.isFailure(exit) ? Result.getOrUndefined(Cause.findError(exit.cause)) : undefined
      return issue === undefined ? [] : issueLines(formatIssue(issue).issues, document, value)
    }
  }
}

/** What has to be done to a value because of how Effect decodes objects; for nearly every schema nothing. */
const preparation = (
  codec: Schema.ConstraintDecoder<unknown>,
  document: JsonObject
): (value: unknown) => unknown => {
  const { ast } = codec
  // A struct without fields gives its input back, with every key.
  if (SchemaAST.isObjects(ast) && ast.propertySignatures.length + ast.indexSignatures.length === 0) return () => ({})
  // Structs read inherited fields too: one called `constructor` would always be there.
  return namesInherited(document) ? withoutPrototypes : (value) => value
}

const namesInherited = (schema: Json): boolean => {
  if (Array.isArray(schema)) return schema.some(namesInherited)
  if (!isJsonObject(schema)) return false
  const named = isRecord(schema["properties"]) ? Object.keys(schema["properties"]) : []
  return named.some((key) => key in Object.prototype) || Object.values(schema).some(namesInherited)
}

const withoutPrototypes = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutPrototypes)
  if (!isRecord(value)) return value
  const bare: Record<string, unknown> = Object.create(null)
  for (const key of Object.keys(value)) bare[key] = withoutPrototypes(value[key])
  return bare
}

const brokenDecoding = (cause: Cause.Cause<unknown>): string => {
  const defect = Cause.squash(cause)
  return Cause.isAsyncFiberError(defect)
    ? "cannot be decoded: the parameters' schema decodes asynchronously"
    : `cannot be decoded: ${show(defect)}`
}

/** Effect's words, with what was expected where a key is missing and what came where something else was expected. */
const issueLines = (
  issues: ReadonlyArray<StandardSchemaV1.Issue>,
  document: JsonObject,
  value: unknown
): ReadonlyArray<string> => {
  const lines = issues.slice(0, maxIssues).map((issue) => {
    const { message } = issue
    const path = (issue.path ?? []).map((part) => typeof part === "object" ? part.key : part)
    if (message === "Missing key") {
      return issueLine(path, `Missing key, expected ${expectation(document, schemaAt(document, path))}`)
    }
    return issueLine(
      path,
      message.startsWith("Expected ") ? `${message}, got ${received(valueAt(value, path))}` : message
    )
  })
  return [...lines, ...moreIssues(issues.length)]
}

const valueAt = (value: unknown, path: ReadonlyArray<PropertyKey>): unknown =>
  path.reduce<unknown>(
    (part, key) => Array.isArray(part) ? part[Number(key)] : isRecord(part) ? getField(part, String(key)) : undefined,
    value
  )

/** The schema of a field that can be reached through properties and items alone, else nothing. */
const schemaAt = (document: JsonObject, path: ReadonlyArray<PropertyKey>): unknown =>
  path.reduce<unknown>((part, key) => {
    const schema = isRecord(part) && Object.hasOwn(part, "$ref") ? resolveRef(document, part["$ref"]) : part
    if (!isRecord(schema)) return undefined
    const { items, properties } = schema
    return typeof key === "number" ? items : isRecord(properties) ? getField(properties, String(key)) : undefined
  }, document)

// --- schemas that need more than a value ---

/** What decoding needs beside the value, found by decoding made-up arguments; nothing if it is not found to need any. */
const decodingNeeds = (
  codec: Schema.ConstraintDecoder<unknown>,
  document: JsonObject
): string | undefined => {
  if (!transforms(codec.ast, new Set())) return undefined
  const exit = SchemaParser.decodeUnknownExit(codec, { errors: "all" })(sample(document, document, 0))
  const defects = Exit.isSuccess(exit)
    ? []
    : exit.cause.reasons.flatMap((reason) => Cause.isDieReason(reason) ? [reason.defect] : [])
  for (const defect of defects) {
    if (Cause.isAsyncFiberError(defect)) return "decoding the parameters must be synchronous, this schema's is not"
    const message = show(defect)
    if (message.startsWith("Service not found")) return `decoding the parameters must need no services: ${message}`
  }
  return undefined
}

/** Whether anything but the plain structure takes part in decoding. */
const transforms = (ast: SchemaAST.AST, seen: Set<SchemaAST.AST>): boolean => {
  if (seen.has(ast)) return false
  seen.add(ast)
  if (ast.encoding !== undefined) return true
  const visit = (part: SchemaAST.AST): boolean => transforms(part, seen)
  switch (ast._tag) {
    case "Objects":
      return ast.propertySignatures.some((property) => visit(property.type)) ||
        ast.indexSignatures.some((index) => visit(index.type))
    case "Arrays":
      return ast.elements.some(visit) || ast.rest.some(visit)
    case "Union":
      return ast.types.some(visit)
    case "Suspend":
      return visit(ast.thunk())
    default:
      return false
  }
}

/** A value that a schema is likely to accept, with every key there is, so that no default has to be computed. */
const sample = (document: JsonObject, schema: unknown, depth: number): unknown => {
  if (!isJsonObject(schema) || depth > 10) return null
  const { anyOf, enum: values, items, oneOf, prefixItems, properties } = schema
  const part = (schema: unknown): unknown => sample(document, schema, depth + 1)
  if (Object.hasOwn(schema, "$ref")) return part(resolveRef(document, schema["$ref"]))
  if (Array.isArray(values)) return values[0]
  const members = anyOf ?? oneOf
  if (Array.isArray(members)) return part(members[0])
  switch (acceptedTypes(schema)?.[0]) {
    case "object":
      return Object.fromEntries(
        Object.entries(isRecord(properties) ? properties : {}).map(([key, field]) => [key, part(field)])
      )
    case "array":
      return [...Array.isArray(prefixItems) ? prefixItems : [], ...isRecord(items) ? [items] : []].map(part)
    case "string":
      return typeof schema["minLength"] === "number" ? "0".repeat(Math.min(schema["minLength"], 100)) : "0"
    case "number":
    case "integer":
      return schema["minimum"] ?? schema["maximum"] ?? 0
    case "boolean":
      return false
    default:
      return null
  }
}

// --- the error result ---

const maxMessageBytes = 2048

/**
 * The text of the error result for arguments that were refused (T1): at most 2 KB, well formed, however large the
 * arguments are.
 *
 * @category formatting
 * @since 0.1.0
 */
export const validationMessage = (toolName: string, issues: string, raw: unknown): string => {
  const head = `Validation failed for tool "${excerpt(toolName, 200)}":\n${excerpt(issues, maxIssueBytes)}`
  const shown = `${head}\n\nReceived arguments:\n`
  return shown + show(raw, maxMessageBytes - byteLength(shown))
}
