/** Random choices that a seed decides. */

/** A source of random choices; two with the same seed make the same. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = (seed * 0x9e3779b1) | 0
    // Neighbouring seeds go different ways from the first choice.
    for (let i = 0; i < 4; i++) this.next()
  }

  /** From 0, below 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** Both bounds included. */
  int(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1))
  }

  pick<const A>(choices: ReadonlyArray<A>): A {
    return choices[this.int(0, choices.length - 1)]!
  }

  /** A choice by weights. */
  weighted<const A>(choices: ReadonlyArray<readonly [weight: number, choice: A]>): A {
    let left = this.next() * choices.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, choice] of choices) {
      left -= weight
      if (left < 0) return choice
    }
    return choices[0]![1]
  }

  /** So many values, between the bounds. */
  many<A>(from: number, to: number, make: (index: number) => A): ReadonlyArray<A> {
    return Array.from({ length: this.int(from, to) }, (_, index) => make(index))
  }

  /** The value, or nothing. */
  maybe<A>(probability: number, make: () => A): A | undefined {
    return this.chance(probability) ? make() : undefined
  }
}

/** An object without the fields that are undefined. */
export const compact = <A extends object>(fields: A): { [K in keyof A]: Exclude<A[K], undefined> } =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- absent where it was undefined
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof A]: Exclude<A[K], undefined>
  }

/** A value with fields its type does not know, as a later version may store them. */
export const extended = <A extends object>(value: A, fields: object): A => ({ ...value, ...fields })
