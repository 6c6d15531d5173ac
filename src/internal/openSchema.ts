/**
 * Schemas that keep what they do not know (I6): a transcript that a later version wrote goes through decoding and encoding
 * without losing a field, a block or a message.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as SchemaParser from "effect/SchemaParser"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { isRecord } from "./record.ts"

/** A text that may be absent. */
export const optionalString = Schema.optionalKey(Schema.String)

/** A schema whose type is its JSON. */
export interface OpenSchema<A> extends Schema.Codec<A> {
  readonly "~type.optionality": "required"
}

/** One schema for every field of `A`, optional exactly where `A` is: type and schema cannot drift apart. */
type Fields<A> = {
  readonly [K in keyof A]-?: {} extends Pick<A, K> ? Schema.optionalKey<Schema.Codec<Required<A>[K]>>
    : Schema.Codec<A[K]> & { readonly "~type.optionality": "required" }
}

/** A struct of type `A` that keeps other fields too, as long as they are JSON. */
export const openStruct = <A>(identifier: string, fields: Fields<A>): OpenSchema<A> => {
  const known: Schema.Struct.Fields = fields
  const struct = Schema.StructWithRest(Schema.Struct(known), [Schema.Record(Schema.String, Schema.Json)])
  // The type leaves the index signature of the other fields out: it would turn every misspelt field into a `Json`.
  return Schema.make<OpenSchema<A>>(struct.annotate({ identifier }).ast)
}

/**
 * A union told apart by the text in `key`. An object with a text that is not among `members` is kept as it is, although
 * `A` does not describe it.
 */
export const openUnion = <A>(
  identifier: string,
  key: "role" | "type",
  members: { readonly [tag: string]: Schema.Codec<A> }
): Schema.Codec<A> => {
  const tags = Object.keys(members)
  const otherTag = Schema.String.check(
    Schema.makeFilter((tag) => !tags.includes(tag), { expected: `a ${key} other than ${tags.join(", ")}` })
  )
  const other = Schema.StructWithRest(Schema.Struct({ [key]: otherTag }), [Schema.Record(Schema.String, Schema.Json)])
  const parseOther = SchemaParser.decodeUnknownEffect(Schema.make<Schema.Codec<A>>(other.ast))
  const parsers = new Map<unknown, typeof parseOther>(
    Object.entries(members).map(([tag, member]) => [tag, SchemaParser.decodeUnknownEffect(member)])
  )
  // Decoding with this union would try `other` too and report its failure beside the one that matters.
  const asUnion = () => Schema.make<Schema.Codec<A>>(Schema.Union([...Object.values(members), other]).ast)
  return Schema.declareConstructor<A>()(
    [],
    () => (input, _self, options) => {
      const tag = isRecord(input) ? input[key] : undefined
      return (parsers.get(tag) ?? parseOther)(input, options)
    },
    { identifier, toCodecJson: () => Schema.link<A>()(asUnion(), SchemaTransformation.passthrough()) }
  )
}
