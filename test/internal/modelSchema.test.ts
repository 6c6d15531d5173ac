import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type { JsonObject } from "../../src/internal/json.ts"
import { jsonSchemaOf, modelCodec, objectSchema, tidy } from "../../src/internal/modelSchema.ts"

const shown = (schema: Schema.Constraint): JsonObject => tidy(jsonSchemaOf(modelCodec(schema)))
const field = (schema: Schema.Constraint): unknown => Object(shown(Schema.Struct({ f: schema }))["properties"]).f
const decodes = (schema: Schema.ConstraintDecoder<unknown>, value: unknown): boolean =>
  Exit.isSuccess(Schema.decodeUnknownExit(modelCodec(schema))(value))

describe("modelSchema", () => {
  const description = "what it is"
  const positive = Schema.Number.check(Schema.isGreaterThan(0))
  class Point extends Schema.Class<Point>("Point")({ x: Schema.Number.annotate({ description }) }, { description }) {}

  const fields: ReadonlyArray<readonly [name: string, schema: Schema.Constraint, json: unknown]> = [
    ["a number", Schema.Number, { type: "number" }],
    ["a number with a description", Schema.Number.annotate({ description }), { type: "number", description }],
    ["a number with a bound", positive, { type: "number", exclusiveMinimum: 0 }],
    ["a number with both", positive.annotate({ description }), { type: "number", exclusiveMinimum: 0, description }],
    ["a finite number", Schema.Finite, { type: "number" }],
    ["an integer", Schema.Int, { type: "integer" }],
    [
      "an integer with bounds",
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 })),
      { type: "integer", minimum: 1, maximum: 9 }
    ],
    ["an array of numbers", Schema.Array(Schema.Number), { type: "array", items: { type: "number" } }],
    ["a record of numbers", Schema.Record(Schema.String, Schema.Number), {
      type: "object",
      additionalProperties: { type: "number" }
    }],
    ["a nullable number", Schema.NullOr(Schema.Number), { anyOf: [{ type: "number" }, { type: "null" }] }],
    ["an optional number", Schema.optionalKey(Schema.Number.annotate({ description })), {
      type: "number",
      description
    }],
    [
      "a number with a default",
      Schema.Number.annotate({ description }).pipe(Schema.withDecodingDefaultKey(Effect.succeed(5))),
      { type: "number", description }
    ],
    [
      "a default with a description",
      Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(5))).annotate({ description }),
      { type: "integer", description }
    ],
    [
      "a default with a description of the key",
      Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(5))).annotateKey({ description }),
      { type: "integer", description }
    ],
    ["a date", Schema.Date.annotate({ description }), { type: "string", description }],
    ["a date with a description of the key", Schema.Date.annotateKey({ description }), { type: "string", description }],
    ["an unknown value", Schema.Unknown.annotate({ description }), { description }],
    ["a text of a number", Schema.FiniteFromString.annotate({ description }), { type: "string", description }],
    ["an empty struct", Schema.Struct({}).annotate({ description }), { type: "object", properties: {}, description }],
    ["a struct", Schema.Struct({ a: Schema.String }), {
      type: "object",
      properties: { a: { type: "string" } },
      required: ["a"]
    }],
    ["names that are keywords", Schema.Struct({ additionalProperties: Schema.Literal(true), allOf: Schema.Null }), {
      type: "object",
      properties: { additionalProperties: { type: "boolean", enum: [true] }, allOf: { type: "null" } },
      required: ["additionalProperties", "allOf"]
    }],
    ["a tuple", Schema.Tuple([Schema.Number, Schema.Struct({})]), {
      type: "array",
      prefixItems: [{ type: "number" }, { type: "object", properties: {} }],
      minItems: 2,
      maxItems: 2
    }]
  ]
  for (const [name, schema, json] of fields) {
    it(`T1: the model is shown ${name}`, () => {
      assert.deepStrictEqual(field(schema), json)
    })
  }

  it("T1: a class is shown with its description and its number", () => {
    const point = {
      type: "object",
      properties: { x: { type: "number", description } },
      required: ["x"],
      description
    }
    assert.deepStrictEqual(objectSchema(shown(Point), false), point)
    assert.deepStrictEqual(shown(Schema.Struct({ p: Point })), {
      type: "object",
      properties: { p: { $ref: "#/$defs/PointEncoded" } },
      required: ["p"],
      $defs: { PointEncoded: point }
    })
  })

  it("T1: what is shown is what is decoded: numbers are finite and keep their checks", () => {
    assert.isTrue(decodes(Schema.Number, 1.5))
    for (const value of ["NaN", "Infinity", Number.NaN]) assert.isFalse(decodes(Schema.Number, value), String(value))
    assert.isTrue(decodes(Schema.Struct({ n: positive }), { n: 1 }))
    assert.isFalse(decodes(Schema.Struct({ n: positive }), { n: 0 }))
    assert.isFalse(decodes(Schema.Int, 2 ** 53), "bounds that are not shown are still checked")
    assert.isTrue(decodes(Schema.Union([Schema.Number, Schema.Literal("NaN")]), "NaN"))
  })

  it("a recursive schema stays recursive", () => {
    interface Tree {
      readonly v: number
      readonly kids: ReadonlyArray<Tree>
    }
    const Tree = Schema.Struct({
      v: Schema.Number,
      kids: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
    })
    const json = objectSchema(shown(Tree), false)
    assert.deepStrictEqual(json, {
      type: "object",
      properties: { v: { type: "number" }, kids: { type: "array", items: { $ref: "#/$defs/Objects_" } } },
      required: ["v", "kids"],
      $defs: {
        Objects_: {
          type: "object",
          properties: { v: { type: "number" }, kids: { type: "array", items: { $ref: "#/$defs/Objects_" } } },
          required: ["v", "kids"]
        }
      }
    })
    assert.isTrue(decodes(Tree, { v: 1, kids: [{ v: 2, kids: [] }] }))
    assert.isFalse(decodes(Tree, { v: 1, kids: [{ v: "NaN", kids: [] }] }))
  })

  it.prop(
    "decodes what plain Effect encodes, as long as it is finite",
    [Schema.Struct({
      n: Schema.Finite,
      d: Schema.Date,
      o: Schema.optional(Schema.Struct({ r: Schema.Record(Schema.String, Schema.Finite) })),
      u: Schema.Union([Schema.Finite, Schema.Array(Schema.Finite), Schema.Option(Schema.Finite)])
    })],
    ([value]) => {
      const schema = Schema.Struct({
        n: Schema.Number,
        d: Schema.Date,
        o: Schema.optional(Schema.Struct({ r: Schema.Record(Schema.String, Schema.Number) })),
        u: Schema.Union([Schema.Number, Schema.Array(Schema.Number), Schema.Option(Schema.Number)])
      })
      const json = Schema.encodeSync(Schema.toCodecJson(schema))(value)
      assert.deepStrictEqual(Schema.decodeUnknownSync(modelCodec(schema))(json), value)
    }
  )

  it("objectSchema: the top level becomes an object, or there is none", () => {
    const N: JsonObject = { type: "number" }
    const A: JsonObject = { type: "object", properties: { n: { $ref: "#/$defs/N" } } }
    const table: ReadonlyArray<readonly [schema: JsonObject, open: boolean, json: JsonObject | undefined]> = [
      [{ type: "object" }, false, { type: "object" }],
      [{ $ref: "#/$defs/A", title: "t", $defs: { A, N, unused: N } }, false, { ...A, title: "t", $defs: { N } }],
      [{ $ref: "#/$defs/B", $defs: { B: { $ref: "#/$defs/A" }, A, N } }, false, { ...A, $defs: { N } }],
      [{ $ref: "#/definitions/A", definitions: { A } }, false, { ...A, definitions: { A } }],
      [{ anyOf: [A, { $ref: "#/$defs/A" }], $defs: { A } }, false, {
        anyOf: [A, { $ref: "#/$defs/A" }],
        $defs: { A },
        type: "object"
      }],
      [{ anyOf: [A, N] }, false, undefined],
      [{ allOf: [A, { required: ["n"] }] }, false, { allOf: [A, { required: ["n"] }], type: "object" }],
      [N, true, undefined],
      [{}, false, undefined],
      [{}, true, { type: "object" }],
      [{ properties: {} }, true, { properties: {}, type: "object" }],
      [{ type: ["object", "null"] }, true, { type: "object" }],
      [{ type: ["object", "null"] }, false, undefined],
      [{ enum: ["a"] }, true, undefined],
      [{ $ref: "#" }, true, undefined],
      [{ $ref: "#/nowhere" }, true, undefined]
    ]
    for (const [schema, open, json] of table) {
      assert.deepStrictEqual(objectSchema(schema, open), json, JSON.stringify(schema))
    }
  })

  it("tidy keeps annotations that say different things apart", () => {
    assert.deepStrictEqual(tidy({ type: "string", description: "a", allOf: [{ description: "b" }] }), {
      type: "string",
      description: "a",
      allOf: [{ description: "b" }]
    })
    assert.deepStrictEqual(tidy({ allOf: [{ description: "b" }, { minLength: 1 }] }), {
      description: "b",
      allOf: [{ minLength: 1 }]
    })
    const wide = { type: "number", minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }
    assert.deepStrictEqual(tidy(wide), wide)
    assert.deepStrictEqual(tidy({ ...wide, type: "integer" }), { type: "integer" })
    assert.deepStrictEqual(tidy({ enum: [{ additionalProperties: true }], default: { not: { type: "null" } } }), {
      enum: [{ additionalProperties: true }],
      default: { not: { type: "null" } }
    })
  })
})
