/** Bundles programs as an application would be, with the Vite that the project's tests run on. */
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { build } from "vite"

const root = fileURLToPath(new URL("..", import.meta.url))

/** Effect and everything below it. */
export const effect = /^effect(\/|$)/

/** The minified code of a program, without what is `external`. Programs name the library's sources for their types; bundled is what is published. */
export const bundle = async (entry: string, external: ReadonlyArray<RegExp> = []): Promise<string> => {
  const result = await build({
    root,
    configFile: false,
    logLevel: "silent",
    resolve: { alias: [{ find: /^.*\/src\/index\.ts$/, replacement: `${root}dist/index.js` }] },
    ssr: { noExternal: true, external: [] },
    build: {
      ssr: true,
      write: false,
      minify: true,
      target: "es2022",
      rolldownOptions: {
        input: entry,
        external: [...external],
        preserveEntrySignatures: "strict",
        output: { format: "es", codeSplitting: false }
      }
    }
  })
  if (!("output" in result)) throw new Error(`${entry}: one bundle was asked for`)
  return result.output.map((file) => file.type === "chunk" ? file.code : "").join("\n")
}

/** Bytes of the minified code after gzip. */
export const gzipSize = (code: string): number => gzipSync(code, { level: 9 }).length
