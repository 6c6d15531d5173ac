/**
 * The command line: what can be said to `effect-pi`, and which way it leads.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { allowAll, askFirst, refuseChanges } from "./approval.ts"
import { exitCodes } from "./exitCode.ts"
import { oneLine } from "./plainText.ts"
import { printRun, writer } from "./printMode.ts"
import { selectProvider } from "./provider.ts"
import { makeSession } from "./session.ts"
import { version } from "./version.ts"
import { Workspace } from "./workspace.ts"

const flags = {
  prompt: Argument.String("prompt").pipe(
    Argument.withDescription("What is asked first; several words are joined"),
    Argument.variadic()
  ),
  print: Flag.Boolean("print").pipe(
    Flag.withAlias("p"),
    Flag.withDescription("Answer the prompt, and what comes on standard input, and leave"),
    Flag.withDefault(false)
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("As --print, with all events as JSON, one a line"),
    Flag.withDefault(false)
  ),
  model: Flag.String("model").pipe(
    Flag.withAlias("m"),
    Flag.withDescription("ID or PROVIDER/ID; \"offline\" is the demo model"),
    Flag.optional
  ),
  system: Flag.String("system").pipe(
    Flag.withDescription("The system prompt, instead of the one of a coding agent"),
    Flag.optional
  ),
  thinking: Flag.Literals("thinking", ["off", "minimal", "low", "medium", "high"]).pipe(
    Flag.withDescription("How long the model may think"),
    Flag.withDefault("off")
  ),
  maxTurns: Flag.Int("max-turns").pipe(
    Flag.filter((turns) => turns >= 1, () => "Expected a whole number from 1"),
    Flag.withDescription("Requests to the model in one run"),
    Flag.withDefault(100)
  ),
  maxCost: Flag.Finite("max-cost").pipe(
    Flag.filter((dollars) => dollars > 0, () => "Expected an amount above 0"),
    Flag.withDescription("Dollars that one run may cost, where the price is known"),
    Flag.optional
  ),
  yes: Flag.Boolean("yes").pipe(
    Flag.withAlias("y"),
    Flag.withDescription("Do not ask before a tool changes something"),
    Flag.withDefault(false)
  )
}

/** What a program before this one in a pipe says; a terminal and /dev/null say nothing. */
const fromStdin = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  if (yield* stdio.stdinIsTerminal) return ""
  return yield* Effect.orElseSucceed(Stream.mkString(Stream.decodeText(stdio.stdin)), () => "")
})

const nothingToDo = `This is not a terminal, and nothing was asked. For example:

  effect-pi --print "list src"        answers and leaves
  effect-pi --json "list src"         the same, as events
  effect-pi                           in a terminal: a conversation

effect-pi --help says more.`

/** Runs the program in a folder and gives the exit code. */
const program = Effect.fn("effect-pi")(function*(options: Command.Command.Config.Infer<typeof flags>) {
  const stdio = yield* Stdio.Stdio
  const write = yield* writer
  const interactive = !options.print && !options.json && (yield* stdio.stdinIsTerminal) &&
    (yield* stdio.stdoutIsTerminal)
  const said = options.prompt.join(" ")
  const piped = interactive ? "" : (yield* fromStdin).trim()
  const prompt = [said, piped].filter((part) => part.trim() !== "").join("\n\n")
  if (!interactive && prompt === "") {
    if (!options.print && !options.json) {
      yield* Console.log(nothingToDo)
      return exitCodes.completed
    }
    yield* write.err("effect-pi: there is no prompt; give it as an argument or on standard input.\n")
    return exitCodes.usage
  }

  const provider = yield* selectProvider(Option.getOrUndefined(options.model))
  const sessionOptions = {
    provider,
    system: Option.getOrUndefined(options.system),
    thinking: options.thinking,
    maxTurns: options.maxTurns,
    maxCost: Option.getOrUndefined(options.maxCost)
  }
  if (!interactive) {
    const session = yield* makeSession({ ...sessionOptions, approval: options.yes ? allowAll : refuseChanges })
    return yield* printRun(session, prompt, { json: options.json })
  }
  // A conversation without a terminal never needs the screen, so it is loaded for this alone.
  const { converse } = yield* Effect.promise(() => import("./screen/converse.ts"))
  return yield* converse({
    prompt,
    makeSession: (ask) =>
      Effect.flatMap(
        options.yes ? Effect.succeed(allowAll) : askFirst(ask),
        (approval) => makeSession({ ...sessionOptions, approval })
      ),
    limits: { turns: sessionOptions.maxTurns, cost: sessionOptions.maxCost }
  })
})

/** Logs would be in the way of the answer, and of the screen. */
const quiet = Logger.layer([])

/** Interprets the arguments; the effect gives the exit code. */
export const main = Effect.fn("main")(
  function*(args: ReadonlyArray<string>) {
    const write = yield* writer
    const refused = ({ message }: { readonly message: string }) =>
      Effect.as(write.err(`effect-pi: ${oneLine(message)}\n`), exitCodes.usage)
    let code: number = exitCodes.completed
    const command = Command.make("effect-pi", flags, (options) =>
      program(options).pipe(
        Effect.scoped,
        Effect.provide(quiet),
        Effect.provide(Workspace.layer(".")),
        Effect.catchTags({
          NoModel: refused,
          InvalidPrompt: refused,
          PlatformError: ({ message }) =>
            refused({ message: `The working folder cannot be used, it may have been removed: ${message}` })
        }),
        Effect.map((exitCode) => {
          code = exitCode
        })
      )).pipe(
        Command.withDescription("A coding agent in the terminal: it reads, searches, edits and runs in this folder."),
        Command.withExamples([
          { command: "effect-pi", description: "A conversation" },
          { command: "effect-pi --print \"What does package.json say?\"", description: "One answer, for a pipe" },
          { command: "effect-pi --model anthropic/claude-sonnet-4-5", description: "With a model of pi-ai" }
        ])
      )
    return yield* Command.runWith(command, { version })(args).pipe(
      Effect.map(() => code),
      // Help that was asked for is no error; what is wrong in the command line has been said already.
      Effect.catchTag(
        "ShowHelp",
        ({ errors }) => Effect.succeed(errors.length === 0 ? exitCodes.completed : exitCodes.usage)
      )
    )
  }
)
