import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const testing = fileURLToPath(new URL("test/utils/vitest.ts", import.meta.url))

export default defineConfig({
  plugins: [
    {
      // Every test is watched for what it leaves behind; see there.
      name: "leaks",
      enforce: "pre",
      resolveId: (id, importer) => id === "@effect/vitest" && importer !== testing ? testing : undefined
    }
  ],
  test: {
    testTimeout: 30_000,
    include: ["test/**/*.test.ts"],
    benchmark: { include: ["bench/**/*.bench.ts"] },
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      // The tests of the terminal program run it in processes of its own, where its coverage is not seen.
      exclude: ["src/cli/**"],
      reporter: ["text", "json-summary"],
      thresholds: { lines: 95, branches: 90 }
    }
  }
})
