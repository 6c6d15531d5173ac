/** The command line of `npm run bench`. */
import { parseArgs } from "node:util"

export interface Options {
  /** Under three minutes: fewer cases and contenders; the work stays the same. */
  readonly quick: boolean
  /** Groups of cases; all when absent. */
  readonly only: ReadonlyArray<string> | undefined
  readonly peers: boolean
  readonly rounds: number
  /** Whether a missed target is a failure. */
  readonly check: boolean
}

export class UsageError extends Error {}

export const usage = `usage: npm run bench -- [options]
  --quick          fewer cases and contenders, in under three minutes
  --only W1,W4     these groups of cases only
  --peers none     without the other libraries; "all" is the default, but with --quick
  --rounds N       how often everything is measured; default: 3, with --quick 2
  --check          fail when a target is missed`

const parse = (args: ReadonlyArray<string>) => {
  try {
    return parseArgs({
      args: [...args],
      options: {
        quick: { type: "boolean", default: false },
        only: { type: "string" },
        peers: { type: "string" },
        rounds: { type: "string" },
        check: { type: "boolean", default: false }
      }
    }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

/** Reads the options; `groups` are those that `--only` may name. */
export const readOptions = (args: ReadonlyArray<string>, groups: ReadonlySet<string>): Options => {
  const { check, only, peers, quick, rounds } = parse(args)
  const chosen = only?.split(",")
  for (const group of chosen ?? []) {
    if (!groups.has(group)) {
      throw new UsageError(`--only ${only}: there is no "${group}", but ${[...groups].join(", ")}`)
    }
  }
  if (peers !== undefined && peers !== "all" && peers !== "none") {
    throw new UsageError(`--peers ${peers}: all or none`)
  }
  if (rounds !== undefined && !/^[1-9][0-9]?$/.test(rounds)) {
    throw new UsageError(`--rounds ${rounds}: a whole number from 1 to 99`)
  }
  return {
    quick,
    only: chosen,
    peers: peers === undefined ? !quick : peers === "all",
    rounds: rounds === undefined ? quick ? 2 : 3 : Number(rounds),
    check
  }
}
