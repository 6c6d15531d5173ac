/**
 * Ids of tool calls as servers take them: letters, digits, `_` and `-`, at most 40 of them, each used once in a request.
 */
const maxLength = 40

const unsafe = /[^a-zA-Z0-9_-]/g

/** Gives ids out in the order of the conversation, so that a longer request repeats those of the shorter one. */
export class CallIds {
  /** The ids that were given out, each with the number that is tried first when it is asked for again. */
  readonly #used = new Map<string, number>()

  next(id: string): string {
    const base = id.replaceAll(unsafe, "_").slice(0, maxLength) || "call"
    let n = this.#used.get(base)
    if (n === undefined) {
      this.#used.set(base, 2)
      return base
    }
    let fresh = withNumber(base, n)
    while (this.#used.has(fresh)) fresh = withNumber(base, ++n)
    this.#used.set(base, n + 1)
    this.#used.set(fresh, 2)
    return fresh
  }
}

const withNumber = (base: string, n: number): string => `${base.slice(0, maxLength - 1 - `${n}`.length)}_${n}`
