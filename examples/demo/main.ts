/**
 * Answers a question about the files of the working folder, offline; without a question it gives a short tour.
 *
 *     npm run tour -- "How many lines of TypeScript are in src, and which file is longest?"
 *
 * Exit codes: 0 answered, 1 failed, 2 wrong usage, 130 aborted (Ctrl-C).
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Layer, Path, Runtime, Schema, Stdio } from "effect"
import { Transcript } from "../../src/testing/index.ts"
import { makeAgent } from "./agent.ts"
import { makeDisplay } from "./display.ts"
import { RuleBasedModel } from "./model.ts"
import { tour } from "./tour.ts"
import { Workspace } from "./workspace.ts"

const usage = `Usage: npm run tour -- [--folder FOLDER] [QUESTION]

Answers QUESTION about the files in FOLDER (default: where it is started); without a question: a short tour.
The model is a set of rules, not a language model; nothing is written, nothing is sent.`

class BadUsage extends Schema.TaggedError<BadUsage>()("BadUsage", { message: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 2
  override readonly [Runtime.errorReported] = false
}

class Failed extends Schema.TaggedError<Failed>()("Failed", { message: Schema.String }) {
  override readonly [Runtime.errorExitCode] = 1
  override readonly [Runtime.errorReported] = false
}

interface Arguments {
  readonly help: boolean
  readonly folder: string | undefined
  readonly question: string | undefined
}

const readArguments = Effect.fnUntraced(function*(args: ReadonlyArray<string>): Effect.fn.Return<Arguments, BadUsage> {
  const words: Array<string> = []
  let folder: string | undefined
  let help = false
  for (let index = 0; index < args.length; index++) {
    const word = args[index]!
    if (word === "--folder") {
      folder = args[++index]
      if (folder === undefined) return yield* new BadUsage({ message: "--folder needs a folder." })
    } else if (word === "--help" || word === "-h") help = true
    else if (word.startsWith("-")) return yield* new BadUsage({ message: `Unknown option ${word}.` })
    else words.push(word)
  }
  const question = words.join(" ")
  if (words.length > 0 && question.trim() === "") return yield* new BadUsage({ message: "The question is empty." })
  return { help, folder, question: words.length === 0 ? undefined : question }
})

/** One question: its answer as it comes, then when what happened. */
const ask = Effect.fn("ask")(
  function*(question: string) {
    const display = yield* makeDisplay
    const agent = yield* makeAgent()
    yield* agent.subscribe(display.listener)
    // Ctrl-C interrupts this fiber, and with it the prompt: that aborts the run and waits until it is settled.
    const run = yield* agent.prompt(question).pipe(
      Effect.onInterrupt(Effect.fnUntraced(function*() {
        yield* display.say("\naborted; what was kept:\n")
        yield* display.say(Transcript.show(yield* agent.messages, { width: 110 }))
        yield* display.timeline
      }))
    )
    yield* display.timeline
    yield* run.orFail
  },
  Effect.scoped,
  Effect.catchTags({
    RunFailed: ({ message }) => new Failed({ message }),
    RunLimited: ({ message }) => new Failed({ message }),
    RunAborted: () => Effect.interrupt
  })
)

const services = (folder: string) => Layer.merge(RuleBasedModel, Workspace.layer(folder))

const main = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { folder = ".", help, question } = yield* readArguments(yield* stdio.args)
  if (help) return yield* Console.log(usage)
  if (question === undefined) {
    const repository = yield* path.fromFileUrl(new URL("../..", import.meta.url))
    return yield* Effect.provide(tour, services(repository))
  }
  const info = yield* Effect.option(fs.stat(folder))
  if (info._tag === "None" || info.value.type !== "Directory") {
    return yield* new BadUsage({ message: `There is no folder ${folder}.` })
  }
  yield* Effect.provide(ask(question), services(folder))
}).pipe(
  Effect.tapError((error) => Console.error(error._tag === "BadUsage" ? `${error.message}\n\n${usage}` : error.message))
)

// `npm run tour | head`: a reader that has gone is no failure.
process.stdout.on("error", () => {})

main.pipe(Effect.provide(NodeServices.layer), NodeRuntime.runMain)
