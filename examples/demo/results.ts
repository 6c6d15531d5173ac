/**
 * What the tools answer: JSON text, as a model would read it. The tools write it, the rules of the model decode it.
 */
import { Schema } from "effect"

/** The files at one end of a scale, the longest ones say: how many there are, and the first few. */
export type Extreme = typeof Extreme.Type
export const Extreme = Schema.Struct({
  value: Schema.Int,
  files: Schema.Int,
  paths: Schema.Array(Schema.String)
})

export type Listing = typeof Listing.Type
export const Listing = Schema.Struct({
  path: Schema.String,
  kind: Schema.Literals(["file", "folder"]),
  files: Schema.Int,
  bytes: Schema.Int,
  largest: Schema.optionalKey(Extreme),
  smallest: Schema.optionalKey(Extreme),
  /** The first ones by path. */
  listed: Schema.Array(Schema.Struct({ path: Schema.String, bytes: Schema.Int })),
  notes: Schema.Array(Schema.String)
})

export type LineCount = typeof LineCount.Type
export const LineCount = Schema.Struct({
  path: Schema.String,
  files: Schema.Int,
  /** Newline characters, as `wc -l` counts them. */
  lines: Schema.Int,
  byEnding: Schema.Array(Schema.Struct({ ending: Schema.String, files: Schema.Int, lines: Schema.Int })),
  longest: Schema.optionalKey(Extreme),
  shortest: Schema.optionalKey(Extreme),
  notes: Schema.Array(Schema.String)
})

export type FileText = typeof FileText.Type
export const FileText = Schema.Struct({
  path: Schema.String,
  bytes: Schema.Int,
  lines: Schema.Int,
  /** The beginning of the file, or all of it. */
  text: Schema.String,
  complete: Schema.Boolean
})

export type Matches = typeof Matches.Type
export const Matches = Schema.Struct({
  path: Schema.String,
  text: Schema.String,
  lines: Schema.Int,
  files: Schema.Int,
  searched: Schema.Int,
  /** The first ones by path and line. */
  listed: Schema.Array(Schema.Struct({ path: Schema.String, line: Schema.Int, text: Schema.String })),
  notes: Schema.Array(Schema.String)
})

/** The extreme among some values: the greatest for `sign` 1, the least for -1; none among nothing. */
export const extremeOf = (
  values: ReadonlyArray<{ readonly path: string; readonly value: number }>,
  sign: 1 | -1
): Extreme | undefined => {
  if (values.length === 0) return undefined
  const value = values.reduce((best, one) => sign * (one.value - best) > 0 ? one.value : best, values[0]!.value)
  const paths = values.filter((one) => one.value === value).map((one) => one.path)
  return { value, files: paths.length, paths: paths.slice(0, 5) }
}
