/** Middle and spread of a few figures. */

const sorted = (values: ReadonlyArray<number>): ReadonlyArray<number> => values.toSorted((a, b) => a - b)

export const median = (values: ReadonlyArray<number>): number => {
  const ordered = sorted(values)
  const middle = ordered.length >> 1
  return ordered.length % 2 === 1 ? ordered[middle]! : (ordered[middle - 1]! + ordered[middle]!) / 2
}

export const lowerQuartile = (values: ReadonlyArray<number>): number => sorted(values)[(values.length - 1) >> 2]!

/** A figure of several rounds. */
export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export const spread = (values: ReadonlyArray<number>): Spread => ({
  median: median(values),
  min: Math.min(...values),
  max: Math.max(...values)
})
