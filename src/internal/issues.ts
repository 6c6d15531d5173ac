/**
 * The lines that tell a model what is wrong with its arguments: bounded, well formed, written as pi writes them.
 *
 * @since 0.1.0
 */
import { excerpt, formatPath, type Path } from "./json.ts"

/**
 * Lines after which the problems are only counted.
 *
 * @category constants
 * @since 0.1.0
 */
export const maxIssues = 10

/**
 * One line of a report, as pi writes them: `  - options.depth: Expected integer, got "x"`.
 *
 * @category formatting
 * @since 0.1.0
 */
export const issueLine = (path: Path, message: string): string =>
  `  - ${formatPath(path) || "arguments"}: ${excerpt(message, 300)}`

/**
 * The line that stands for the problems there is no room for, if there are any.
 *
 * @category formatting
 * @since 0.1.0
 */
export const moreIssues = (count: number): ReadonlyArray<string> =>
  count > maxIssues ? [`  - … and ${count - maxIssues} more`] : []

/**
 * A few words for a value that was received. Short text, numbers and the like are quoted, the rest is named.
 *
 * @category formatting
 * @since 0.1.0
 */
export const received = (value: unknown): string => {
  switch (typeof value) {
    case "string":
      return JSON.stringify(excerpt(value, 60))
    case "number":
    case "boolean":
    case "bigint":
      return String(value)
    case "object":
      return value === null ? "null" : Array.isArray(value) ? "an array" : "an object"
    case "undefined":
      return "nothing"
    default:
      return `a ${typeof value}`
  }
}
