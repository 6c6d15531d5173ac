/**
 * The program in a pipe: answers, events, exit codes, and which model it takes.
 */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule, type Scope } from "effect"
import { isAlive } from "../mcp/ask.ts"
import * as Server from "../utils/completionsServer.ts"
import { inShell, makeFolder, programFile, run, start } from "./program.ts"

const test = <E>(name: string, body: () => Effect.Effect<void, E, NodeServices.NodeServices | Scope.Scope>): void =>
  it.live(name, () => body().pipe(Effect.scoped, Effect.provide(NodeServices.layer)), 60_000)

describe("in a pipe", { concurrent: true }, () => {
  test("the offline model answers, and is named", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const { code, err, out } = yield* run(folder, ["--print", "read", "notes.md"])
      assert.strictEqual(code, 0)
      assert.include(out, "one\ntwo\nthree")
      assert.include(err, "offline/rules (no provider in the environment)\n")
      assert.include(err, "· read notes.md\n· read: 3 lines\n")
    }))

  test("standard input is a prompt", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const { code, out } = yield* run(folder, [], { input: "list src\n" })
      assert.strictEqual(code, 0)
      assert.include(out, "src/a.ts")
    }))

  test("without anything to do it says so", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const nothing = yield* run(folder, [])
      assert.strictEqual(nothing.code, 0)
      assert.include(nothing.out, "effect-pi --help says more")
      assert.strictEqual((yield* run(folder, ["--print"])).code, 2)
    }))

  test("wrong usage and unknown models end with 2", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      assert.strictEqual((yield* run(folder, ["--nonsense"])).code, 2)
      const noTurns = yield* run(folder, ["--max-turns", "0", "hi"])
      assert.strictEqual(noTurns.code, 2)
      assert.include(noTurns.err, "--max-turns: \"0\". Expected a whole number from 1")
      const unknown = yield* run(folder, ["--model", "no-such-model", "hi"])
      assert.strictEqual(unknown.code, 2)
      assert.include(unknown.err, "No provider has a model \"no-such-model\"")
      const withoutKey = yield* run(folder, ["--model", "claude-sonnet-4-5", "hi"])
      assert.strictEqual(withoutKey.code, 2)
      assert.include(withoutKey.err, "no key in the environment for \"claude-sonnet-4-5\"")
    }))

  test("what changes something is refused, unless --yes", () =>
    Effect.gen(function*() {
      const { folder, fs, path } = yield* makeFolder
      const file = path.join(folder, "made.txt")
      const refused = yield* run(folder, ["--print", "write made.txt: hello"])
      assert.include(refused.out, "Started with --yes it would be allowed")
      assert.isFalse(yield* fs.exists(file))
      const allowed = yield* run(folder, ["--yes", "--print", "write made.txt: hello"])
      assert.strictEqual(allowed.code, 0)
      assert.strictEqual(yield* fs.readFileString(file), "hello\n")
    }))

  test("a limit ends with 3", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const { code, err } = yield* run(folder, ["--max-turns", "1", "--print", "read notes.md"])
      assert.strictEqual(code, 3)
      assert.include(err, "Stopped at the limit of turns.")
    }))

  test("--json gives every event", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const { code, out } = yield* run(folder, ["--json", "list src"])
      assert.strictEqual(code, 0)
      const types = out.trimEnd().split("\n").map((line): unknown => {
        const value: unknown = JSON.parse(line)
        return typeof value === "object" && value !== null && "type" in value ? value.type : undefined
      })
      assert.deepStrictEqual(types.slice(0, 3), ["session", "agent_start", "turn_start"])
      assert.include(types, "tool_execution_end")
      assert.strictEqual(types.at(-1), "agent_end")
      assert.include(out, "\"_tag\":\"Completed\"")
    }))

  test("a server of OPENAI_BASE_URL answers, with the model that was asked for", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const server = yield* Server.serve(
        Server.answer(
          Server.text("It is \u001B[2Jfine\u0007."),
          Server.finish("stop"),
          Server.usage({ prompt_tokens: 1200, completion_tokens: 7 })
        )
      )
      const env = { OPENAI_BASE_URL: server.url, OPENAI_MODEL: "from-env" }
      const first = yield* run(folder, ["--print", "how is it?"], { env })
      assert.strictEqual(first.out, "It is fine.\n")
      assert.include(first.err, `openai/from-env (OPENAI_BASE_URL ${server.url})`)
      assert.include(first.err, "1.2k in · 7 out")
      yield* run(folder, ["--model", "org/other", "--system", "Be kind.", "--print", "hi"], { env })
      assert.deepStrictEqual(server.asked.map(({ body }) => body["model"]), ["from-env", "org/other"])
      assert.include(JSON.stringify(server.asked[1]!.body), "Be kind.")
    }))

  test("a server that fails for a moment is asked again, and what was lost is not written", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const server = yield* Server.serve(
        Server.json(503, { error: { message: "busy" } }),
        { body: [Server.sse(Server.text("half an answer")), Server.cut] },
        Server.answer(Server.text("The whole answer."), Server.finish("stop"))
      )
      const { code, err, out } = yield* run(folder, ["--print", "hi"], { env: { OPENAI_BASE_URL: server.url } })
      assert.strictEqual(out, "The whole answer.\n")
      assert.strictEqual(code, 0)
      assert.include(err, "· the model begins again")
    }))

  test("a model of pi-ai is found by the key of its provider, and asked with it", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const item = { type: "message", id: "msg_1", role: "assistant", content: [], status: "in_progress" }
      const content = [{ type: "output_text", text: "It is pi-ai.", annotations: [] }]
      const done = { ...item, content, status: "completed" }
      const usage = { input_tokens: 1200, output_tokens: 7, total_tokens: 1207 }
      const server = yield* Server.serve({
        body: [Server.sse(
          { type: "response.created", response: { id: "resp_1", status: "in_progress", output: [] } },
          { type: "response.output_item.added", output_index: 0, item },
          { type: "response.output_text.delta", output_index: 0, content_index: 0, item_id: "msg_1", delta: "It is " },
          { type: "response.output_text.delta", output_index: 0, content_index: 0, item_id: "msg_1", delta: "pi-ai." },
          { type: "response.output_item.done", output_index: 0, item: done },
          { type: "response.completed", response: { id: "resp_1", status: "completed", output: [done], usage } }
        )]
      })
      const env = { AZURE_OPENAI_API_KEY: "azure-secret", AZURE_OPENAI_BASE_URL: server.url }
      const { code, err, out } = yield* run(folder, ["--print", "what is it?"], { env })
      assert.strictEqual(out, "It is pi-ai.\n")
      assert.strictEqual(code, 0)
      assert.match(err, /^azure\/\S+ \(pi-ai found a key for azure\)\n· 1 turn · 1\.2k in · 7 out/)
      assert.notInclude(err, "azure-secret")
      assert.strictEqual(server.asked[0]?.headers["api-key"], "azure-secret")
    }))

  test("a reader that goes ends the run, and is no failure", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const pipe = "{ \"$0\" \"$@\"; echo \"code $?\" >&2; } | head -n 1"
      const words = ["--yes", "--json", "run sleep 600"]
      const { err, out } = yield* inShell(folder, pipe, process.execPath, yield* programFile, ...words)
      assert.match(out, /^\{"type":"session".*\n$/)
      assert.strictEqual(err, "code 0\n")
    }))

  test("a folder that is gone, and a base URL with a password, are told", () =>
    Effect.gen(function*() {
      const { folder, fs, path } = yield* makeFolder
      const gone = path.join(folder, "gone")
      yield* fs.makeDirectory(gone)
      const program = [process.execPath, yield* programFile, "--print", "hi"]
      const removed = yield* inShell(gone, "rmdir \"$0\"; exec \"$@\"", gone, ...program)
      assert.include(removed.err, "The working folder cannot be used")
      assert.strictEqual(removed.code, 2)
      const env = { OPENAI_BASE_URL: "http://me:password@127.0.0.1:9/v1" }
      const { code, err } = yield* run(folder, ["--print", "hi"], { env })
      assert.strictEqual(code, 2)
      assert.include(err, "OPENAI_BASE_URL has a name or a password in it")
      assert.notInclude(err, "me:password")
    }))

  test("Ctrl-C ends with 130, and what a tool had started is gone", () =>
    Effect.gen(function*() {
      const { folder, fs, path } = yield* makeFolder
      const child = yield* start(folder, ["--yes", "--print", "run echo $$ > pid; sleep 600"])
      const pid = yield* Effect.repeat(
        Effect.orElseSucceed(fs.readFileString(path.join(folder, "pid")), () => ""),
        { until: (text) => text.endsWith("\n"), schedule: Schedule.spaced("20 millis") }
      )
      yield* Effect.sync(() => process.kill(child.pid, "SIGINT"))
      assert.strictEqual(yield* child.exitCode, 130)
      assert.isFalse(isAlive(Number(pid)))
    }))

  test("a request that fails ends with 1 and the reason", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const server = yield* Server.serve(Server.json(401, { error: { message: "Incorrect API key provided" } }))
      const { code, err, out } = yield* run(folder, ["--print", "hi"], {
        env: { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: "sk-very-secret" }
      })
      assert.strictEqual(code, 1)
      assert.strictEqual(out, "")
      assert.include(err, "Incorrect API key provided")
      assert.notInclude(err, "sk-very-secret")
    }))
})
