/** Ratios, round by round, of what two contenders showed, or one contender in two rows. */
import type { Row } from "./rounds.ts"

/** For each round; `undefined` when one of them showed nothing. */
export const ratios = (
  above: Row | undefined,
  aboveBy: string,
  below: Row | undefined,
  belowBy: string
): ReadonlyArray<number> | undefined => {
  const numerator = above?.contenders[aboveBy]
  const denominator = below?.contenders[belowBy]
  if (numerator === undefined || denominator === undefined || "cannot" in numerator || "cannot" in denominator) {
    return undefined
  }
  return numerator.values.map((value, round) => value / denominator.values[round]!)
}

/** How many times as fast `contender` is as `other`. */
export const speed = (row: Row | undefined, contender: string, other: string): ReadonlyArray<number> | undefined =>
  ratios(row, other, row, contender)
