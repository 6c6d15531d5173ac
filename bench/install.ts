/** Which contenders' packages are there. Those of other libraries are kept out of the library's own installation. */
import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { type Entry, roster } from "./roster.ts"

const folder = fileURLToPath(new URL(".", import.meta.url))

const isInstalled = (): boolean => existsSync(new URL("node_modules/.package-lock.json", import.meta.url))

/** The contenders that can be measured now. */
export const available = (): ReadonlyArray<Entry> => roster.filter(({ atRoot }) => atRoot || isInstalled())

/** Installs what `bench/package.json` pins, unless it is there. */
export const install = (): void => {
  if (isInstalled()) return
  console.log("Installing the other libraries: npm ci in bench/")
  const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder, stdio: "inherit" })
  if (status !== 0) throw new Error("npm ci failed in bench/")
}
