/**
 * A check of the built library by size: a program with one agent has not grown, and what a program does not use stays out of its
 * bundle.
 */
import { bundle, effect, gzipSize } from "./bundle.ts"
import { ours } from "./roster.ts"
import { programOf } from "./size.ts"
import { bundleGuard, bundleLimit } from "./targets.ts"

const sizeOf = async (program: string, external: ReadonlyArray<RegExp>) =>
  gzipSize(await bundle(programOf(program), external))

const agent = await sizeOf(ours, [])
const withoutEffect = await sizeOf(ours, [effect])
const messages = await sizeOf("messages", [effect])

/** A namespace alone is a small part of the library. */
const shaken = messages < withoutEffect / 5

console.log(
  `a program with one agent: ${agent} bytes of at most ${bundleGuard} (aim ${bundleLimit}), of which effect-pi ${withoutEffect}`
)
console.log(
  `a program with Messages alone: ${messages} bytes of effect-pi${shaken ? "" : ", so tree-shaking does not work"}`
)
if (agent > bundleGuard || !shaken) process.exitCode = 1
