/**
 * What tests import as `@effect/vitest` (`vitest.config.ts` sees to that): the same, and every `it.effect` fails when it leaves a
 * fiber, a sleep of the test clock or an unhandled rejection behind (I5). Property tests try the same values every time; other
 * values, and more of them, with `PROPERTY_SEED=2 PROPERTY_RUNS=10000`.
 */
import { it as base } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import { leavesNothing } from "./leaks.ts"

export * from "@effect/vitest"

Arbitrary.configureGlobal({
  check: { seed: process.env["PROPERTY_SEED"] ?? "1", runs: Number(process.env["PROPERTY_RUNS"] ?? 100) }
})

export const it: typeof base = new Proxy(base, {
  get: (target, key, receiver) => key === "effect" ? effect : Reflect.get(target, key, receiver)
})

const effect: typeof base.effect = new Proxy(base.effect, {
  apply: (target, self, [name, body, timeout]: Parameters<typeof base.effect>) =>
    Reflect.apply(target, self, [name, (...args: Parameters<typeof body>) => leavesNothing(body(...args)), timeout])
})
