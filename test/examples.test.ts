/**
 * Runs every example and the demo as a user would: in a process of its own, without a terminal.
 */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, FileSystem, Path, type Scope, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import * as Server from "./utils/completionsServer.ts"

const root = new URL("..", import.meta.url)

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

const start = Effect.fnUntraced(function*(
  file: string,
  args: ReadonlyArray<string> = [],
  folder?: string,
  env?: Readonly<Record<string, string>>
) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const path = yield* Path.Path
  const program = yield* path.fromFileUrl(new URL(file, root))
  const cwd = folder ?? (yield* path.fromFileUrl(root))
  return yield* spawner.spawn(
    ChildProcess.make(process.execPath, [program, ...args], {
      cwd,
      stdin: "ignore",
      // Most of the time goes into loading modules.
      env: { NODE_COMPILE_CACHE: yield* path.fromFileUrl(new URL("node_modules/.cache/node", root)), ...env },
      extendEnv: true
    })
  )
})

const run = Effect.fnUntraced(function*(
  file: string,
  args?: ReadonlyArray<string>,
  folder?: string,
  env?: Readonly<Record<string, string>>
) {
  const process = yield* start(file, args, folder, env)
  const text = (stream: typeof process.stdout) => Stream.mkString(Stream.decodeText(stream))
  const [out, err] = yield* Effect.all([text(process.stdout), text(process.stderr)], { concurrency: 2 })
  const ended: Ended = { code: yield* process.exitCode, out, err }
  return ended
})

const demo = "examples/demo/main.ts"

const test = <E>(
  name: string,
  body: () => Effect.Effect<void, E, NodeServices.NodeServices | Scope.Scope>
): void => it.live(name, () => body().pipe(Effect.scoped, Effect.provide(NodeServices.layer)), 60_000)

describe("README", () => {
  test("its first program is the example", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const read = (file: string) =>
        Effect.flatMap(path.fromFileUrl(new URL(file, root)), (name) => fs.readFileString(name))
      const example = yield* read("examples/openai.ts")
      const program = example.slice(example.indexOf("import "))
        .replace("../src/index.ts", "effect-pi")
        .replace("../src/openai/index.ts", "effect-pi/openai")
      assert.include(yield* read("README.md"), `\`\`\`ts\n${program}\`\`\``)
    }))
})

describe("docs/custom-model.md", () => {
  test("its server is that of the tests", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const read = (file: string) =>
        Effect.flatMap(path.fromFileUrl(new URL(file, root)), (name) => fs.readFileString(name))
      const server = yield* read("test/examples/serve.ts")
      assert.include(yield* read("docs/custom-model.md"), `${server.slice(server.indexOf("/** Writes a piece"))}\`\`\``)
    }))
})

describe("examples", { concurrent: true }, () => {
  const expected: Readonly<Record<string, ReadonlyArray<string>>> = {
    "first-program.ts": ["It is the manifest of this package.\nCompleted, 1052 tokens"],
    "hooks.ts": ["R(a) \"user=ada password=***\"", "R(b!) \"deleting is not allowed here\""],
    "steering.ts": [
      "the steer: {\"turn\":2,\"_tag\":\"Delivered\"}",
      "R(a) \"test is migrated\"\nU \"Leave test/legacy alone\"\nA",
      "U \"Then update the changelog\"\nA",
      "A{aborted} \"I begin with\"",
      "timed out"
    ],
    "resilience.ts": [
      "The answer is\n[begins again: too many people ask]\nThe answer is 42.\nCompleted, in the transcript",
      "--- played back ---\nThe answer is\n[begins again: too many people ask]\nThe answer is 42.\nCompleted"
    ],
    "custom-model.ts": ["It is 42.\nCompleted, 59 tokens\n29 cases of the contract were checked\n"],
    "language-model.ts": ["Lisbon: 21, Oslo: 4\nCompleted, 40 tokens"],
    "mcp.ts": [
      "mcp-servers/everything has every__get-sum, every__trigger-long-running-operation\n",
      "The sum of 2 and 3 is 5.",
      "progress: { progress: 2, total: 2 }",
      "\nCompleted\n"
    ],
    "telemetry.ts": [
      "invoke_agent editor, 30 output tokens [effect_pi.follow_up]\n  chat demo-model",
      "  execute_tool research\n    invoke_agent researcher, 20 output tokens\n      chat demo-model",
      "      execute_tool search\n        read the index\n",
      "330 tokens, with the researcher 550",
      "calls of search: 1"
    ],
    "loop-alone.ts": ["events: agent_start turn_start", "tool_execution_end", "Completed, 4 messages to add"],
    "tools.ts": [
      "progress of a:",
      "R(b!) \"the moon is out of reach\"",
      "the moon: failed",
      "city: Missing key",
      "details of a:"
    ],
    "backend.ts": [
      "event: agent_start\ndata: {\"type\":\"agent_start\"}\n",
      "event: message_update",
      "the run on the server: Completed",
      "the run whose client left: Aborted"
    ]
  }
  for (const [file, texts] of Object.entries(expected)) {
    test(file, () =>
      Effect.gen(function*() {
        const { code, err, out } = yield* run(`examples/${file}`)
        for (const text of texts) assert.include(out, text)
        assert.strictEqual(err, "")
        assert.strictEqual(code, 0)
      }))
  }

  test("openai.ts, against a server on this machine", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve(
        Server.answer(
          Server.calls(Server.piece(0, "{\"path\":\"package.json\"}", { id: "a", name: "read_file" })),
          Server.finish("tool_calls"),
          Server.usage({ prompt_tokens: 100, completion_tokens: 10 })
        ),
        Server.answer(
          Server.text("It is effect-pi."),
          Server.finish("stop"),
          Server.usage({ prompt_tokens: 900, completion_tokens: 7 })
        )
      )
      const env = { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: "k", OPENAI_MODEL: "local" }
      const { code, err, out } = yield* run("examples/openai.ts", [], undefined, env)
      assert.deepStrictEqual([out, err, code], ["It is effect-pi.\nCompleted, 1017 tokens\n", "", 0])
      const [first, second] = server.asked
      assert.strictEqual(first!.headers.authorization, "Bearer k")
      assert.strictEqual(first!.body["model"], "local")
      assert.include(JSON.stringify(second!.body["messages"]), "\\\"name\\\": \\\"effect-pi\\\"")
    }))

  test("pi-ai.ts, against a server on this machine", () =>
    Effect.gen(function*() {
      const server = yield* Server.serve(
        Server.answer(
          Server.calls(
            Server.piece(0, "{\"city\":\"Lisbon\"}", { id: "a", name: "weather" }),
            Server.piece(1, "{\"city\":\"Oslo\"}", { id: "b", name: "weather" })
          ),
          Server.finish("tool_calls"),
          Server.usage({ prompt_tokens: 100, completion_tokens: 10 })
        ),
        Server.answer(
          Server.text("In both it is 21 degrees."),
          Server.finish("stop"),
          Server.usage({ prompt_tokens: 900, completion_tokens: 7 })
        )
      )
      const env = { BASE_URL: server.url, GROQ_API_KEY: "k" }
      const { code, err, out } = yield* run("examples/pi-ai.ts", ["groq", "llama-3.1-8b-instant"], undefined, env)
      assert.deepStrictEqual([out, err, code], ["In both it is 21 degrees.\nCompleted, 1017 tokens\n", "", 0])
      assert.strictEqual(server.asked[1]!.headers.authorization, "Bearer k")
      assert.include(JSON.stringify(server.asked[1]!.body["messages"]), "Oslo: 21 degrees")
    }))

  test("there is an expectation for every one", () =>
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* path.fromFileUrl(new URL("examples", root))
      const files = (yield* fs.readDirectory(folder)).filter((name) => name.endsWith(".ts"))
      assert.sameMembers(files, [...Object.keys(expected), "openai.ts", "pi-ai.ts"])
    }))
})

/** Files with known numbers of lines, in a temporary folder. */
const makeFolder = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* fs.realPath(yield* fs.makeTempDirectoryScoped({ prefix: "effect-pi-" }))
  const write = (name: string, text: string) =>
    Effect.andThen(
      fs.makeDirectory(path.dirname(path.join(folder, name)), { recursive: true }),
      fs.writeFileString(path.join(folder, name), text)
    )
  const lines = (n: number) => Array.from({ length: n }, (_, index) => `line ${index}\n`).join("")
  yield* write("lib/one.ts", lines(11))
  yield* write("lib/deep/two.ts", lines(29))
  yield* write("lib/deep/unfinished.ts", `${lines(3)}no newline at the end`)
  yield* write("lib/view.tsx", lines(2))
  yield* write("lib/empty.ts", "")
  yield* write("lib/node_modules/left-out.ts", lines(1000))
  yield* write("lib/readme.md", lines(5))
  yield* write("my notes/a b.md", "needle in a note\nnothing\n")
  yield* write("my notes/data.json", "{\n  \"needle\": 1\n}\n")
  yield* fs.symlink("/etc", path.join(folder, "way-out"))
  return { folder, fs, path }
})

const ask = Effect.fnUntraced(function*(question: string) {
  const { folder } = yield* makeFolder
  const { code, err, out } = yield* run(demo, [question], folder)
  assert.strictEqual(err, "")
  assert.strictEqual(code, 0)
  assert.notInclude(out, "\u001B", "no terminal, no control sequences")
  return out
})

describe("demo", { concurrent: true }, () => {
  test("counts lines and finds the longest file", () =>
    Effect.gen(function*() {
      const out = yield* ask("How many lines of TypeScript are in lib, and which file is longest?")
      assert.include(
        out,
        "lib has 45 lines of TypeScript in 5 files (.ts: 43 lines in 4 files; .tsx: 2 lines in 1 file)."
      )
      assert.include(out, "The longest is lib/deep/two.ts with 29 lines.")
      assert.include(out, "Left out: lib/node_modules.")
      assert.include(out, "as wc -l does")
      assert.match(out, /turn 1 {2}request [^]*list_files[^]*count_lines[^]*turn 2 {2}request/, "the timeline")
    }))

  test("a nested folder, and a folder beside it", () =>
    Effect.gen(function*() {
      const out = yield* ask("How many lines of TypeScript are in ./lib/deep and \"my notes\"?")
      assert.include(out, "lib/deep has 32 lines of TypeScript in 2 files.")
      assert.include(out, "There are no TypeScript files in my notes")
    }))

  test("the working folder, in other words and for another language", () =>
    Effect.gen(function*() {
      const out = yield* ask("which is the longest Markdown file in .")
      assert.include(
        out,
        "The working folder has 7 lines of Markdown in 2 files. The longest is lib/readme.md with 5 lines."
      )
    }))

  test("the number of files, and the largest", () =>
    Effect.gen(function*() {
      const out = yield* ask("How many files are in 'my notes', and which one is the biggest file?")
      assert.include(out, "my notes has 5 lines in 2 files.")
      assert.include(out, "The largest is my notes/a b.md with 25 bytes.")
    }))

  test("reads a file", () =>
    Effect.gen(function*() {
      assert.include(
        yield* ask("What does \"my notes/data.json\" say?"),
        "my notes/data.json (3 lines, 18 bytes) says:\n{\n  \"needle\": 1\n}"
      )
    }))

  test("searches", () =>
    Effect.gen(function*() {
      const out = yield* ask("Find needle in .")
      assert.include(out, "2 lines in 2 files of the working folder contain \"needle\":")
      assert.include(out, "my notes/a b.md:1: needle in a note")
      assert.include(out, "my notes/data.json:2: \"needle\": 1")
    }))

  test("says what does not exist, and what is meant perhaps", () =>
    Effect.gen(function*() {
      const out = yield* ask("How many lines of TypeScript are in nope and deep?")
      assert.include(out, "\nThere is no nope in the working folder. It holds lib, my notes, way-out.")
      assert.include(out, "\nThere is no deep in the working folder. Did you mean lib/deep?")
    }))

  test("stays in the working folder", () =>
    Effect.gen(function*() {
      const out = yield* ask("How many files are in .. and way-out?")
      assert.include(out, "\n.. is outside the working folder")
      assert.include(out, "\nway-out is outside the working folder")
    }))

  test("says what it cannot do", () =>
    Effect.gen(function*() {
      assert.include(yield* ask("What is the meaning of life?"), "I do not understand that. I am a set of rules")
    }))

  test("wrong usage ends with 2", () =>
    Effect.gen(function*() {
      const option = yield* run(demo, ["--nonsense"])
      assert.strictEqual(option.code, 2)
      assert.include(option.err, "Unknown option --nonsense.")
      const folder = yield* run(demo, ["--folder", "no/such/folder", "list ."])
      assert.strictEqual(folder.code, 2)
      assert.include(folder.err, "There is no folder no/such/folder.")
    }))

  test("the tour", () =>
    Effect.gen(function*() {
      const { code, err, out } = yield* run(demo)
      assert.strictEqual(err, "")
      assert.strictEqual(code, 0)
      for (
        const step of [
          "\n1. A question",
          "\n2. A steer",
          "\n3. A follow-up",
          "\n4. An abort",
          "\n5. A limit",
          "\n6. A deadline"
        ]
      ) {
        assert.include(out, step)
      }
      const limit = out.slice(out.indexOf("\n5. A limit"), out.indexOf("\n6. A deadline"))
      const deadline = out.slice(out.indexOf("\n6. A deadline"))
      assert.match(out, /> How many lines of JSON [^]*> And how many lines [^]*> Which is the largest /)
      const [calls] = /A\[([^\]]+)\](?![^]*A\[)/.exec(out)!.slice(1)
      const results = out.matchAll(/^R\((\w+)!?\)/gm)
      assert.deepStrictEqual(
        Array.from(results, (result) => result[1]),
        calls!.split(","),
        "every call is answered, in order"
      )
      assert.include(out, "The outcome is Aborted.")

      assert.match(limit, /failed {3}list_files\(docs\), \d+ ms: Tool call was not executed: the limit of tool calls/)
      assert.match(
        limit,
        /\nI may call no more tools\. This is what I know:\nsrc has \d+ files, \d+ bytes\.\nI could not look at docs: /
      )
      assert.include(limit, "\nThe outcome is Limited, the limit is toolCalls.\n")

      assert.match(deadline, /done {5}list_files\(docs\), \d+ ms: \d+ files?\n/)
      const late = /failed {3}list_files\(test\), (\d+) ms: Tool "list_files" timed out after 500 ms\n/
      assert.match(deadline, late)
      const [, waited] = late.exec(deadline)!
      assert.isAtLeast(Number(waited), 490, "answered at its deadline")
      assert.match(
        deadline,
        /\ndocs has \d+ files?, \d+ bytes\.\nI could not look at test: Tool "list_files" timed out/
      )
      assert.include(deadline, "\nThe outcome is Completed.\n")
    }))

  test("Ctrl-C while a tool works", () =>
    Effect.gen(function*() {
      const { folder, fs, path } = yield* makeFolder
      // Takes minutes to count and no space on most disks.
      yield* fs.writeFileString(path.join(folder, "huge.ts"), "")
      yield* fs.truncate(path.join(folder, "huge.ts"), 2 ** 36)

      const child = yield* start(demo, ["How many lines of TypeScript are in .?"], folder)
      const working = yield* Deferred.make<void>()
      let out = ""
      const reading = yield* Effect.forkScoped(
        Stream.runForEach(Stream.decodeText(child.stdout), (text) => {
          out += text
          return out.includes("working  count_lines") ? Deferred.succeed(working, undefined) : Effect.void
        })
      )
      yield* Deferred.await(working)
      yield* Effect.sync(() => process.kill(child.pid, "SIGINT"))
      assert.strictEqual(yield* child.exitCode, 130)
      yield* Fiber.join(reading)
      assert.include(out, "\naborted; what was kept:\n")
      assert.match(out, /A\[call_1,call_2\][^\n]*\nR\(call_1!?\)[^\n]*\nR\(call_2!\) "Operation aborted"/)
    }))
})
