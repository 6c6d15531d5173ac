/**
 * What the program tells the shell.
 */
import type { RunOutcome } from "../Errors.ts"

export const exitCodes = { completed: 0, failed: 1, usage: 2, limited: 3, aborted: 130 } as const

export const exitCodeOf = (outcome: RunOutcome): number => {
  switch (outcome._tag) {
    case "Completed":
      return exitCodes.completed
    case "Failed":
      return exitCodes.failed
    case "Limited":
      return exitCodes.limited
    case "Aborted":
      return exitCodes.aborted
  }
}
