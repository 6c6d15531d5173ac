/**
 * Kinds of files, by the endings of their names.
 */

export interface Kind {
  /** Empty for files of any kind. */
  readonly name: string
  readonly endings: ReadonlyArray<string>
}

export const anyKind: Kind = { name: "", endings: [] }

const languages: ReadonlyArray<Kind & { readonly code?: boolean; readonly alias?: ReadonlyArray<string> }> = [
  { name: "TypeScript", endings: [".ts", ".tsx", ".mts", ".cts"], alias: ["ts"], code: true },
  { name: "JavaScript", endings: [".js", ".jsx", ".mjs", ".cjs"], alias: ["js"], code: true },
  { name: "JSON", endings: [".json"] },
  { name: "Markdown", endings: [".md", ".markdown"], alias: ["md"] },
  { name: "HTML", endings: [".html", ".htm"] },
  { name: "CSS", endings: [".css"] },
  { name: "YAML", endings: [".yaml", ".yml"], alias: ["yml"] },
  { name: "TOML", endings: [".toml"] },
  { name: "XML", endings: [".xml"] },
  { name: "CSV", endings: [".csv"] },
  { name: "SQL", endings: [".sql"], code: true },
  { name: "Python", endings: [".py"], alias: ["py"], code: true },
  { name: "Rust", endings: [".rs"], alias: ["rs"], code: true },
  { name: "Go", endings: [".go"], alias: ["golang"], code: true },
  { name: "Java", endings: [".java"], code: true },
  { name: "Kotlin", endings: [".kt", ".kts"], code: true },
  { name: "Swift", endings: [".swift"], code: true },
  { name: "Scala", endings: [".scala"], code: true },
  { name: "C", endings: [".c", ".h"], code: true },
  { name: "C++", endings: [".cpp", ".cc", ".cxx", ".hpp"], alias: ["cpp"], code: true },
  { name: "C#", endings: [".cs"], code: true },
  { name: "Ruby", endings: [".rb"], alias: ["rb"], code: true },
  { name: "PHP", endings: [".php"], code: true },
  { name: "Lua", endings: [".lua"], code: true },
  { name: "Zig", endings: [".zig"], code: true },
  { name: "Haskell", endings: [".hs"], code: true },
  { name: "Elixir", endings: [".ex", ".exs"], code: true },
  { name: "Vue", endings: [".vue"], code: true },
  { name: "Svelte", endings: [".svelte"], code: true },
  { name: "Shell", endings: [".sh", ".bash"], alias: ["bash"], code: true },
  { name: "text", endings: [".txt"], alias: ["txt"] }
]

const byWord = new Map(
  languages.flatMap(({ alias = [], endings, name }) =>
    [name.toLowerCase(), ...alias].map((word): [string, Kind] => [word, { name, endings }])
  )
)

const code: Kind = {
  name: "code",
  endings: languages.flatMap((language) => language.code === true ? language.endings : [])
}

/** Words that are names of languages and of much else: only `go files` and `lines of C` mean the language. */
const ambiguous = new Set(["c", "go", "java", "swift", "shell", "text", "vue", "rust", "zig"])

/** The kind a word stands for, if any: a language, `code`, or an ending such as `.snap` or `*.snap`. */
export const kindOfWord = (word: string): Kind | undefined => {
  const ending = /^\*?((?:\.[\w+-]+)+)$/.exec(word)?.[1]
  if (ending !== undefined) return { name: ending, endings: [ending] }
  const lower = word.toLowerCase()
  return lower === "code" ? code : byWord.get(lower)
}

export const isAmbiguous = (word: string): boolean => ambiguous.has(word)

/** Whether a word is the name of a language as the language spells it: `JSON`, but not `json`. */
export const isProperName = (word: string): boolean => byWord.get(word.toLowerCase())?.name === word
