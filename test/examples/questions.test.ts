/**
 * What the rules of the demo make of a question.
 */
import { assert, it } from "@effect/vitest"
import { Question, readQuestion } from "../../examples/demo/questions.ts"

const outline = (text: string): string => {
  const names = (kinds: ReadonlyArray<{ readonly name: string }>) => kinds.map((kind) => kind.name || "any").join("+")
  return Question.$match(readQuestion(text), {
    Measure: ({ kinds, paths, wanted }) => {
      const numbers = Object.entries(wanted).flatMap(([name, is]) => is ? [name] : []).join("+")
      return `measure ${numbers || "files"} of ${names(kinds)} in ${paths.join("|")}`
    },
    List: ({ kinds, paths }) => `list ${names(kinds)} in ${paths.join("|")}`,
    Look: ({ path }) => `look at ${path}`,
    Search: ({ kind, paths, text }) => `search <${text}> of ${names([kind])} in ${paths.join("|")}`,
    Other: ({ unknownKind }) => `other${unknownKind === undefined ? "" : `: ${unknownKind}`}`
  })
}

const table: ReadonlyArray<readonly [question: string, meaning: string]> = [
  ["How many lines of TypeScript are in src, and which file is longest?", "measure lines+longest of TypeScript in src"],
  ["How many lines of TypeScript are in src? Which file is longest?", "measure lines+longest of TypeScript in src"],
  ["how many lines of ts are under ./src/internal/", "measure lines of TypeScript in ./src/internal/"],
  ["How many lines of TypeScript are in .", "measure lines of TypeScript in ."],
  ["How many lines of TypeScript are in src.", "measure lines of TypeScript in src"],
  ["How many lines of JSON are in \"my folder/with spaces\"?", "measure lines of JSON in my folder/with spaces"],
  [
    "How many lines of TypeScript are in 'a b', and which file is longest?",
    "measure lines+longest of TypeScript in a b"
  ],
  ["How many lines of TypeScript are in a and b?", "measure lines of TypeScript in a|b"],
  ["How many lines of TypeScript are in src, test and \"my docs\"?", "measure lines of TypeScript in src|test|my docs"],
  ["How many lines of TypeScript and Markdown are in this repository?", "measure lines of TypeScript+Markdown in ."],
  ["How many lines of TypeScript are in project?", "measure lines of TypeScript in project"],
  ["How many lines of TypeScript are in the current folder?", "measure lines of TypeScript in ."],
  ["How many lines of TypeScript are in the lib folder?", "measure lines of TypeScript in lib"],
  ["How many lines of JSON are in json?", "measure lines of JSON in json"],
  ["How many lines in TypeScript?", "measure lines of TypeScript in ."],
  ["How many lines of TypeScript does src have?", "measure lines of TypeScript in src"],
  ["In src, how many lines of TypeScript are there?", "measure lines of TypeScript in src"],
  ["How many lines of Go are in cmd?", "measure lines of Go in cmd"],
  ["How many lines does README.md have?", "measure lines of any in README.md"],
  ["How many lines in total?", "measure lines of any in ."],
  ["How many files are in src?", "measure files of any in src"],
  ["How many .snap files are in test", "measure files of .snap in test"],
  ["How many *.ts files are in lines?", "measure files of .ts in lines"],
  ["which file is longest?", "measure longest of any in ."],
  ["Which TypeScript file in src has the most lines?", "measure lines+longest of TypeScript in src"],
  ["Find the largest file in docs", "measure largest of any in docs"],
  ["How big is docs?", "measure files of any in docs"],
  ["list the files in src", "list any in src"],
  ["List all TypeScript files in the src folder", "list TypeScript in src"],
  ["ls", "list any in ."],
  ["find all markdown files in docs", "list Markdown in docs"],
  ["What is in docs?", "look at docs"],
  ["What does package.json say?", "look at package.json"],
  ["Read \"a b.txt\"", "look at a b.txt"],
  ["find Layer in src", "search <Layer> of any in src"],
  ["find \"hello world\" in \"my docs\"", "search <hello world> of any in my docs"],
  ["search for \"how many lines\" in src", "search <how many lines> of any in src"],
  ["search src for Layer", "search <Layer> of any in src"],
  ["grep export in TypeScript files in src", "search <export> of TypeScript in src"],
  ["Which files mention AgentBusy in src/internal?", "search <AgentBusy> of any in src/internal"],
  ["Where is makeHost defined?", "search <makeHost> of any in ."],
  ["How often does Effect.gen occur in src?", "search <Effect.gen> of any in src"],
  ["How many lines of Cobol are in src?", "other: Cobol"],
  ["How many functions are in src?", "other"],
  ["What is the capital of France?", "other"],
  ["hello", "other"]
]

it.each(table)("%s", (question, meaning) => assert.strictEqual(outline(question), meaning))
