/**
 * From an Effect schema to the JSON Schema a model is shown, and to the codec that decodes what the model writes.
 *
 * Both come from `Schema.toCodecJson`, so that they describe the same JSON. Four things of it are changed here:
 *
 * - **Numbers are finite.** Effect lets `Schema.Number` be written as a number or as one of the texts `Infinity`, `-Infinity`
 *   and `NaN`, and then loses its description and its bounds in the JSON Schema. JSON has no such numbers, so a
 *   `Schema.Number` is treated as `Schema.Finite`, when it is shown and when it is decoded.
 * - **Descriptions stay.** What a model is shown is the encoded side of a schema, so Effect shows no description that was
 *   written on the decoded side: of a `Schema.Date`, a field with a default, a class. Here the encoded side gets it, if it
 *   has none of its own.
 * - **Noise is left out** of what is shown: `additionalProperties: true` is the default, and the bounds of the safe integers
 *   say nothing to a model. Decoding still checks the bounds.
 * - **The top level is an object**, as providers demand: references there are resolved, an empty struct becomes an object
 *   without properties.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type { Json, JsonObject } from "./json.ts"
import { resolveRef } from "./jsonSchema.ts"
import { isJsonObject } from "./record.ts"

// --- the codec ---

/**
 * The codec between a schema's JSON and its values, with finite numbers and with descriptions on the side of the JSON. Throws what Effect throws for a schema that
 * has no JSON form.
 *
 * @category constructors
 * @since 0.1.0
 */
export const modelCodec = <S extends Schema.Constraint>(schema: S): Schema.toCodecJson<S> => {
  const codec = Schema.toCodecJson(schema)
  const ast = jsonSideMapping()(codec.ast)
  return ast === codec.ast ? codec : Schema.make<Schema.toCodecJson<S>>(ast, { schema })
}

/** Copies of a node keep its class, as Effect's own do. */
const copy = <A extends SchemaAST.AST>(ast: A, changes: { readonly [K in keyof A]?: A[K] }): A => {
  const bare: A = Object.create(Object.getPrototypeOf(ast))
  return Object.assign(bare, ast, changes)
}

/** A mapping of the JSON side of an AST, which shares what it does not change and follows recursive schemas lazily. */
const jsonSideMapping = (): (ast: SchemaAST.AST) => SchemaAST.AST => {
  const known = new Map<SchemaAST.AST, SchemaAST.AST>()
  const map = (ast: SchemaAST.AST): SchemaAST.AST => {
    const before = known.get(ast)
    if (before !== undefined) return before
    const after = mapNode(ast, map)
    known.set(ast, after)
    return after
  }
  return map
}

const mapNode = (ast: SchemaAST.AST, map: (ast: SchemaAST.AST) => SchemaAST.AST): SchemaAST.AST => {
  if (ast.encoding !== undefined) return mapEncoding(ast, ast.encoding, map)
  switch (ast._tag) {
    case "Objects": {
      const properties = mapAll(ast.propertySignatures, (property) => {
        const type = map(property.type)
        return type === property.type ? property : new SchemaAST.PropertySignature(property.name, type)
      })
      const indexes = mapAll(ast.indexSignatures, (index) => {
        const type = map(index.type)
        return type === index.type ? index : new SchemaAST.IndexSignature(index.parameter, type)
      })
      const same = properties === ast.propertySignatures && indexes === ast.indexSignatures
      return same ? ast : copy(ast, { propertySignatures: properties, indexSignatures: indexes })
    }
    case "Arrays": {
      const elements = mapAll(ast.elements, map)
      const rest = mapAll(ast.rest, map)
      return elements === ast.elements && rest === ast.rest ? ast : copy(ast, { elements, rest })
    }
    case "Union": {
      const types = mapAll(ast.types, map)
      return types === ast.types ? ast : copy(ast, { types })
    }
    case "Suspend":
      return new SchemaAST.Suspend(() => map(ast.thunk()), ast.annotations, undefined, undefined, ast.context)
    default:
      return ast
  }
}

const mapAll = <A>(items: ReadonlyArray<A>, map: (item: A) => A): ReadonlyArray<A> => {
  const mapped = items.map(map)
  return mapped.some((item, index) => item !== items[index]) ? mapped : items
}

const mapEncoding = (
  ast: SchemaAST.AST,
  encoding: SchemaAST.Encoding,
  map: (ast: SchemaAST.AST) => SchemaAST.AST
): SchemaAST.AST => {
  const last = encoding[encoding.length - 1] ?? encoding[0]
  if (SchemaAST.isNumber(ast) && encoding.length === 1 && last.transformation === numberToJson) {
    const finite = Schema.isFinite()
    return copy<SchemaAST.AST>(ast, { encoding: undefined, checks: [finite, ...ast.checks ?? []] })
  }
  const to = describe(map(last.to), keyDescription(ast) ?? SchemaAST.resolveDescription(ast))
  if (to === last.to) return ast
  const [first, ...others] = [...encoding.slice(0, -1), new SchemaAST.Link(to, last.transformation)]
  return first === undefined ? ast : copy<SchemaAST.AST>(ast, { encoding: [first, ...others] })
}

/** The JSON side of a node with a description, unless it has one. */
const describe = (ast: SchemaAST.AST, description: string | undefined): SchemaAST.AST => {
  if (description === undefined) return ast
  if (ast.encoding === undefined) {
    return SchemaAST.resolveDescription(ast) === undefined
      ? Schema.make<Schema.Top>(ast).annotate({ description }).ast
      : ast
  }
  return mapEncoding(ast, ast.encoding, (to) => describe(to, description))
}

/** The description of the field that a node is the type of. */
const keyDescription = (ast: SchemaAST.AST): string | undefined => {
  const description = ast.context?.annotations?.description
  return typeof description === "string" ? description : undefined
}

/** How Effect writes a number that need not be finite: as a number, or as the name of one of the others. */
const numberToJson = Schema.toCodecJson(Schema.Number).ast.encoding?.[0].transformation

// --- the JSON Schema ---

/**
 * The JSON Schema of a codec as one document, with the definitions under `$defs`. Throws like {@link modelCodec}.
 *
 * @category converting
 * @since 0.1.0
 */
export const jsonSchemaOf = (codec: Schema.Constraint): JsonObject => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(codec)
  const document = Object.keys(definitions).length === 0 ? schema : { ...schema, $defs: definitions }
  return isJsonObject(document) ? document : {}
}

/** Keywords whose value is a schema, a list of schemas, or schemas under names. */
const schemaKeywords = new Set(["additionalProperties", "items", "not", "propertyNames", "contains"])
const listKeywords = new Set(["allOf", "anyOf", "oneOf", "prefixItems"])
const namedKeywords = new Set(["properties", "patternProperties", "$defs", "definitions"])

/**
 * The document without what says nothing to a model.
 *
 * @category converting
 * @since 0.1.0
 */
export const tidy = (schema: JsonObject): JsonObject => {
  const out: Record<string, Json> = {}
  for (const [key, value] of Object.entries(hoistAnnotations(replaceEmptyStruct(schema)))) {
    if (key === "additionalProperties" && value === true || isSafeIntegerBound(schema, key)) continue
    out[key] = schemaKeywords.has(key)
      ? tidyPart(value)
      : listKeywords.has(key) && Array.isArray(value)
      ? value.map(tidyPart)
      : namedKeywords.has(key) && isJsonObject(value)
      ? Object.fromEntries(Object.entries(value).map(([name, part]) => [name, tidyPart(part)]))
      : value
  }
  return out
}

const tidyPart = (schema: Json): Json => isJsonObject(schema) ? tidy(schema) : schema

/** Effect's JSON Schema for `Schema.Struct({})` is everything but null, as that is what it accepts. */
const replaceEmptyStruct = (schema: JsonObject): JsonObject => {
  const { not, ...others } = schema
  return isJsonObject(not) && not["type"] === "null" && schema["type"] === undefined
    ? { type: "object", properties: {}, ...others }
    : schema
}

const annotations = new Set(["title", "description", "default", "examples"])

/** Effect writes a field's description into `allOf`; one that stands alone there belongs to the schema itself. */
const hoistAnnotations = (schema: JsonObject): JsonObject => {
  const { allOf, ...others } = schema
  if (!Array.isArray(allOf)) return schema
  const fits = (key: string, value: Json): boolean =>
    annotations.has(key) && (!Object.hasOwn(others, key) || others[key] === value)
  const isNote = (member: Json): boolean =>
    isJsonObject(member) && Object.entries(member).every(([key, value]) => fits(key, value))
  const rest = allOf.filter((member) => !isNote(member))
  const notes: JsonObject = Object.assign({}, ...allOf.filter(isNote))
  return rest.length === 0 ? { ...others, ...notes } : { ...others, ...notes, allOf: rest }
}

const isSafeIntegerBound = (schema: JsonObject, key: string): boolean =>
  schema["type"] === "integer" &&
  (key === "minimum" && schema[key] === Number.MIN_SAFE_INTEGER ||
    key === "maximum" && schema[key] === Number.MAX_SAFE_INTEGER)

/**
 * The document with an object schema at the top, `undefined` if it does not describe an object. `open` says whether a
 * schema that names no type is taken for one of objects.
 *
 * @category converting
 * @since 0.1.0
 */
export const objectSchema = (document: JsonObject, open: boolean): JsonObject | undefined => {
  const top = inlineRef(document)
  if (!describesObject(document, top, open, 0)) return undefined
  return top["type"] === "object" ? top : { ...top, type: "object" }
}

/** Resolves a reference at the top; the definition goes if nothing else refers to it. */
const inlineRef = (document: JsonObject): JsonObject => {
  let top = document
  for (let hops = 0; hops < 10 && Object.hasOwn(top, "$ref"); hops++) {
    const target = resolveRef(document, top["$ref"])
    if (!isJsonObject(target)) break
    const { $ref: _, ...others } = top
    top = { ...target, ...others }
  }
  return top === document ? document : withoutUnusedDefinitions(top)
}

const withoutUnusedDefinitions = (document: JsonObject): JsonObject => {
  const { $defs: definitions, ...schema } = document
  if (!isJsonObject(definitions)) return document
  const used = new Map<string, Json>()
  const collect = (text: string): void => {
    for (const [name, definition] of Object.entries(definitions)) {
      // Names that a reference has to escape are kept without looking.
      const pointer = `"#/$defs/${name}`
      const referred = !/^[\w-]+$/.test(name) || text.includes(`${pointer}"`) || text.includes(`${pointer}/`)
      if (used.has(name) || !referred) continue
      used.set(name, definition)
      collect(JSON.stringify(definition))
    }
  }
  collect(JSON.stringify(schema))
  return used.size === 0 ? schema : { ...schema, $defs: Object.fromEntries(used) }
}

const describesObject = (document: JsonObject, schema: Json | undefined, open: boolean, depth: number): boolean => {
  if (!isJsonObject(schema) || depth > 10) return false
  const describes = (part: Json | undefined): boolean => describesObject(document, part, open, depth + 1)
  const { $ref: ref, allOf, anyOf, oneOf, type } = schema
  if (type !== undefined) return type === "object" || open && Array.isArray(type) && type.includes("object")
  if (ref !== undefined) return describes(resolveRef(document, ref))
  const members = anyOf ?? oneOf
  if (Array.isArray(members)) return members.every(describes)
  if (Array.isArray(allOf)) return open ? allOf.every(describes) : allOf.some(describes)
  return open && !Object.hasOwn(schema, "enum") && !Object.hasOwn(schema, "const")
}
