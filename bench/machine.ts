/** The machine the figures come from. */
import { arch, availableParallelism, cpus, platform, release, totalmem } from "node:os"

export interface Machine {
  readonly cpu: string
  readonly cores: number
  /** GiB. */
  readonly memory: number
  readonly os: string
  readonly node: string
}

export const machine = (): Machine => ({
  cpu: cpus()[0]?.model.trim() ?? "unknown",
  cores: availableParallelism(),
  memory: Math.round(totalmem() / 2 ** 30),
  os: `${platform()} ${release()} ${arch()}`,
  node: process.version
})
