/**
 * Ids of tool calls as servers take them: letters, digits, `_` and `-`, at most 40 of them, each used once in a request.
 */
import { freshId, type UsedIds } from "../freshIds.ts"

const maxLength = 40

const unsafe = /[^a-zA-Z0-9_-]/g

/** Gives ids out in the order of the conversation, so that a longer request repeats those of the shorter one. */
export class CallIds {
  readonly #used: UsedIds = new Map()

  next(id: string): string {
    return freshId(this.#used, id.replaceAll(unsafe, "_").slice(0, maxLength), withNumber)
  }
}

const withNumber = (base: string, n: number): string => `${base.slice(0, maxLength - 1 - `${n}`.length)}_${n}`
