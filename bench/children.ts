/** Starts the processes that measure. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { Size } from "./cases.ts"
import type { Answer } from "./child.ts"

/** Milliseconds a process may take. */
const timeLimit = 60_000

interface Ended {
  readonly stdout: string
  readonly stderr: string
  readonly code: number | null
  readonly late: boolean
}

/** Runs a program of this folder under the Node that runs this one. */
export const runNode = (program: string, args: ReadonlyArray<string>): Promise<Ended> =>
  new Promise((resolve, reject) => {
    const path = fileURLToPath(new URL(program, import.meta.url))
    const child = spawn(process.execPath, ["--expose-gc", path, ...args], { stdio: ["ignore", "pipe", "pipe"] })
    let stdout = ""
    let stderr = ""
    let late = false
    const timer = setTimeout(() => {
      late = true
      child.kill("SIGKILL")
    }, timeLimit)
    child.stdout.on("data", (data) => (stdout += String(data)))
    child.stderr.on("data", (data) => (stderr += String(data)))
    child.on("error", reject)
    child.on("close", (code) => {
      clearTimeout(timer)
      resolve({ stdout, stderr, code, late })
    })
  })

/** What a contender shows in some cases; that it took too long is an answer, that it failed is not. */
export const ask = async (
  contender: string,
  caseIds: ReadonlyArray<string>,
  size: Size
): Promise<Readonly<Record<string, Answer>>> => {
  const { code, late, stderr, stdout } = await runNode("child.ts", [contender, caseIds.join(","), size])
  if (late) {
    const cannot = `took more than ${timeLimit / 1000} s`
    return Object.fromEntries(caseIds.map((id) => [id, { cannot }]))
  }
  if (code !== 0) throw new Error(`${contender} failed in ${caseIds.join(", ")} (${size}):\n${stderr.slice(-2000)}`)
  return JSON.parse(stdout)
}
