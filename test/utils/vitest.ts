/**
 * What tests import as `@effect/vitest` (`vitest.config.ts` sees to that): the same, and every `it.effect` fails when it leaves a
 * fiber, a sleep of the test clock or an unhandled rejection behind (I5).
 */
import { it as base } from "@effect/vitest"
import { leavesNothing } from "./leaks.ts"

export * from "@effect/vitest"

export const it: typeof base = new Proxy(base, {
  get: (target, key, receiver) => key === "effect" ? effect : Reflect.get(target, key, receiver)
})

const effect: typeof base.effect = new Proxy(base.effect, {
  apply: (target, self, [name, body, timeout]: Parameters<typeof base.effect>) =>
    Reflect.apply(target, self, [name, (...args: Parameters<typeof body>) => leavesNothing(body(...args)), timeout])
})
