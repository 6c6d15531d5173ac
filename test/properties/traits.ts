/**
 * What a scenario is about. Each scenario has some traits and not others, so that what it has can meet undisturbed: a
 * scenario with everything would end at the first failure.
 */
import type { Random } from "./random.ts"

const probabilities = {
  /** Aborts, interrupted prompts. */
  aborts: 0.55,
  /** Steering messages, follow-ups, notes. */
  queues: 0.65,
  /** Tools, hooks and listeners act on the agent. */
  reentrant: 0.45,
  /** Code ignores interruption, or its finalizers take long. */
  deaf: 0.35,
  /** Some things never end by themselves. */
  endless: 0.2,
  /** Code fails, dies and throws. */
  failures: 0.35,
  /** Values that are no results, answers or messages. */
  odd: 0.3,
  /** Responses that break the protocol. */
  broken: 0.3,
  /** Calls with ids that are not unique, or empty. */
  ids: 0.15,
  listeners: 0.5,
  required: 0.2,
  hooks: 0.5,
  /** What most hooks do is answer at once. */
  slowHooks: 0.5,
  conversions: 0.25,
  limits: 0.3,
  deadlines: 0.3,
  retries: 0.15,
  updates: 0.35,
  nested: 0.25,
  background: 0.2,
  sequential: 0.3,
  /** The host changes settings, tools and the transcript. */
  changes: 0.3,
  closing: 0.1,
  stored: 0.25,
  /** Fibers let others go on after few operations. */
  yields: 0.3
}

export type Trait = keyof typeof probabilities

export type Traits = { readonly [T in Trait]: boolean }

export const drawTraits = (random: Random): Traits => {
  const drawn: Partial<Record<Trait, boolean>> = {}
  for (const [trait, probability] of Object.entries(probabilities)) {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a key of the object
    drawn[trait as Trait] = random.chance(probability)
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every trait was drawn
  return drawn as Traits
}
