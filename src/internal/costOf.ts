/**
 * What tokens cost, by the prices of a model, in dollars per million tokens.
 */
import type { Usage } from "../Messages.ts"
import type { Model } from "../StreamFn.ts"

const perToken = (price: number | undefined): number => (price ?? 0) / 1_000_000

// As pi multiplies and divides, to the last digit.
export const costOf = (
  prices: Model["cost"],
  tokens: Pick<Usage, "input" | "output" | "cacheRead" | "cacheWrite">
): Usage["cost"] => {
  const input = perToken(prices?.input) * tokens.input
  const output = perToken(prices?.output) * tokens.output
  const cacheRead = perToken(prices?.cacheRead) * tokens.cacheRead
  const cacheWrite = ((prices?.cacheWrite ?? 0) * tokens.cacheWrite) / 1_000_000
  return { input, output, cacheRead, cacheWrite, total: input + output + cacheRead + cacheWrite }
}
