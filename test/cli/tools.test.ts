/**
 * The tools: they stay in the folder, say what they left out, and leave no process behind.
 */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, FileSystem, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { plainJson, plainText, wholeText } from "../../src/cli/plainText.ts"
import { tools } from "../../src/cli/tools.ts"
import { Workspace } from "../../src/cli/workspace.ts"
import { Agent, Messages } from "../../src/index.ts"
import { ScriptedModel } from "../../src/testing/index.ts"
import { makeFolder } from "./program.ts"

const test = <E>(name: string, body: () => Effect.Effect<void, E, NodeServices.NodeServices | Scope.Scope>): void =>
  it.live(name, () => body().pipe(Effect.scoped, Effect.provide(NodeServices.layer)), 30_000)

/** Makes one call and gives its result. */
const call = Effect.fnUntraced(function*(
  folder: string,
  name: string,
  args: Messages.JsonObject,
  onUpdate: () => Effect.Effect<unknown> = () => Effect.void
) {
  const model = ScriptedModel.layer([ScriptedModel.calls([["a", name, args]]), ScriptedModel.text("done")])
  const agent = yield* Agent.make({ tools }).pipe(Effect.provide(Layer.merge(model, Workspace.layer(folder))))
  yield* agent.subscribe((event) => event.type === "tool_execution_update" ? onUpdate() : undefined)
  const run = yield* agent.prompt("go")
  const result = run.messages.find((message): message is Messages.ToolResultMessage => message.role === "toolResult")!
  return { text: Messages.text(result), isError: result.isError }
})

describe("tools", { concurrent: true }, () => {
  test("nothing outside the folder is read or written, by path or by link", () =>
    Effect.gen(function*() {
      const { around, folder, fs, path } = yield* makeFolder
      for (
        const outside of [
          "../secret.txt",
          path.join(around, "secret.txt"),
          "way-out/secret.txt",
          "src/../../secret.txt"
        ]
      ) {
        for (const [name, args] of [["read", {}], ["write", { content: "x" }], ["search", { pattern: "." }]] as const) {
          const result = yield* call(folder, name, { path: outside, ...args })
          assert.isTrue(result.isError, `${name} ${outside}`)
          assert.include(result.text, "working folder")
          assert.notInclude(result.text, "the secret")
        }
      }
      assert.isTrue((yield* call(folder, "write", { path: "way-out/new/x.txt", content: "x" })).isError)
      assert.isTrue((yield* call(folder, "write", { path: "to-nothing", content: "x" })).isError)
      assert.notInclude((yield* call(folder, "search", { pattern: "secret" })).text, "the secret")
      assert.deepStrictEqual((yield* fs.readDirectory(around)).toSorted(), ["secret.txt", "work"])
      assert.strictEqual(yield* fs.readFileString(path.join(around, "secret.txt")), "the secret\n")
    }))

  test("a long file is read in parts", () =>
    Effect.gen(function*() {
      const { folder, fs, path } = yield* makeFolder
      const lines = Array.from({ length: 5000 }, (_, index) => `line ${index + 1}`)
      yield* fs.writeFileString(path.join(folder, "long.txt"), `${lines.join("\n")}\n`)
      const first = yield* call(folder, "read", { path: "long.txt" })
      assert.isTrue(first.text.endsWith("line 2000\n[Lines 1 to 2000 of 5000; go on with offset 2001.]"))
      const last = yield* call(folder, "read", { path: "long.txt", offset: 4999 })
      assert.strictEqual(last.text, "line 4999\nline 5000")
      assert.isTrue((yield* call(folder, "read", { path: "long.txt", offset: 6000 })).isError)
    }))

  test("edit replaces what is there once, and says what else is wrong", () =>
    Effect.gen(function*() {
      const { folder, fs, path } = yield* makeFolder
      const edit = (oldText: string, newText: string) => call(folder, "edit", { path: "notes.md", oldText, newText })
      assert.include((yield* edit("four", "4")).text, "oldText is not in notes.md")
      assert.include((yield* edit("o", "0")).text, "oldText is 2 times in notes.md (lines 1, 2)")
      assert.isFalse((yield* edit("two", "2")).isError)
      assert.strictEqual(yield* fs.readFileString(path.join(folder, "notes.md")), "one\n2\nthree\n")
    }))

  test("search takes texts and expressions, and leaves node_modules out", () =>
    Effect.gen(function*() {
      const { folder, fs, path } = yield* makeFolder
      yield* fs.makeDirectory(path.join(folder, "node_modules"))
      yield* fs.writeFileString(path.join(folder, "node_modules", "b.ts"), "export const b = 2\n")
      assert.strictEqual((yield* call(folder, "search", { pattern: "^export" })).text, "src/a.ts:1: export const a = 1")
      assert.include((yield* call(folder, "search", { pattern: "^export", literal: true })).text, "No line in")
      assert.isTrue((yield* call(folder, "search", { pattern: "(" })).isError)
    }))

  test("what is no plain file is not opened, and a loop of links is told", () =>
    Effect.gen(function*() {
      const { folder, fs, path } = yield* makeFolder
      yield* fs.symlink("round", path.join(folder, "round"))
      yield* fs.writeFile(path.join(folder, "binary"), Uint8Array.of(97, 0, 98))
      // Whoever opened the pipe would wait for somebody who writes.
      assert.isFalse((yield* call(folder, "run", { command: "mkfifo pipe" })).isError)
      for (const name of ["read", "search", "write", "edit", "list"]) {
        const args = { path: "pipe", pattern: "a", content: "a", oldText: "a", newText: "b" }
        const result = yield* call(folder, name, args)
        assert.isTrue(result.isError, name)
        assert.match(result.text, /pipe .*(?:not a file|neither a file nor a folder|not a folder)/)
      }
      assert.include((yield* call(folder, "list", {})).text, "pipe (not a file)")
      assert.strictEqual((yield* call(folder, "search", { pattern: "[ab]" })).text, "src/a.ts:1: export const a = 1")
      for (const name of ["read", "list", "search"]) {
        assert.isTrue((yield* call(folder, name, { path: "round", pattern: "a" })).isError, name)
      }
      assert.include((yield* call(folder, "read", { path: "binary" })).text, "not a text file")
    }))

  test("of a long line, the search shows the piece that matches", () =>
    Effect.gen(function*() {
      const { folder, fs, path } = yield* makeFolder
      yield* fs.writeFileString(path.join(folder, "long.txt"), `${"-".repeat(100_000)}needle${"-".repeat(100_000)}\n`)
      const { text } = yield* call(folder, "search", { pattern: "needle" })
      assert.match(text, /^long\.txt:1: …-{75}needle-{219}…$/)
    }))

  test("run: output, exit code, the end of a long output, the time limit", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      assert.strictEqual(
        (yield* call(folder, "run", { command: "cat notes.md; pwd" })).text,
        `one\ntwo\nthree\n${folder}`
      )
      const failed = yield* call(folder, "run", { command: "echo bad >&2; exit 3" })
      assert.deepStrictEqual(failed, { text: "bad\n[Exit code 3.]", isError: true })
      const long = yield* call(folder, "run", { command: "seq 100000" })
      assert.match(long.text, /^\[The last 2000 lines of \d+ characters\.\]\n98001\n/)
      const slow = yield* call(folder, "run", { command: "echo begun; sleep 100", timeout: 1 })
      assert.deepStrictEqual(slow, { text: "begun\n[Stopped after 1 second.]", isError: true })
    }))

  test("an abort kills the command and what it started", () =>
    Effect.gen(function*() {
      const { folder } = yield* makeFolder
      const command = "sleep 1000 & echo $!; wait"
      const model = ScriptedModel.layer([ScriptedModel.calls([["a", "run", { command }]])])
      const agent = yield* Agent.make({ tools, gracePeriod: "5 seconds" }).pipe(
        Effect.provide(Layer.merge(model, Workspace.layer(folder)))
      )
      const pid = yield* Deferred.make<number>()
      yield* agent.subscribe((event) => {
        if (event.type !== "tool_execution_update") return
        const [block] = event.partialResult.content ?? []
        return block?.type === "text" ? Deferred.succeed(pid, Number(block.text)) : undefined
      })
      const run = yield* Effect.forkChild(agent.prompt("go"))
      const child = yield* Deferred.await(pid)
      yield* agent.abort
      assert.strictEqual((yield* Fiber.join(run)).outcome._tag, "Aborted")
      const fs = yield* FileSystem.FileSystem
      // Gone, or a zombie that nobody has buried yet.
      const state = yield* Effect.orElseSucceed(fs.readFileString(`/proc/${child}/stat`), () => "gone")
      assert.match(state, /^gone$|\) Z /)
    }))
})

it.effect("a search that would never end is ended by its time limit, and gives what it found before", () =>
  Effect.gen(function*() {
    const { folder, fs, path } = yield* makeFolder
    // So many that progress is reported when only the hostile one is left.
    for (let file = 100; file < 200; file++) yield* fs.writeFileString(path.join(folder, "src", `${file}.txt`), "aaa\n")
    yield* fs.writeFileString(path.join(folder, "src", "hostile.txt"), `${"a".repeat(32)}!\n`)
    const stuck = yield* Deferred.make<void>()
    const args = { pattern: "^(a+)+$", path: "src", ending: ".txt" }
    const search = yield* Effect.forkChild(call(folder, "search", args, () => Deferred.succeed(stuck, undefined)))
    yield* Deferred.await(stuck)
    // The thread goes on in real time.
    const aWhile = Effect.promise(() => new Promise(setImmediate))
    for (let second = 0; search.pollUnsafe() === undefined; second++) {
      if (second > 0) yield* TestClock.adjust("1 second")
      for (let turn = 0; turn < 50; turn++) yield* aWhile
    }
    const { isError, text } = yield* Fiber.join(search)
    assert.isTrue(isError)
    assert.match(text, /^(?:src\/1\d\d\.txt:1: aaa\n){100}\[Stopped after 20 seconds, in src\/hostile\.txt: make .*\]$/)
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)))

it("what is not seen is named where people decide, and escaped in JSON", () => {
  const hidden = "a\u001B]0;b\u0007\tc\u202E\u{E0041}\n\u009Bd"
  assert.strictEqual(wholeText(hidden), "a⟨U+001B⟩]0;b⟨U+0007⟩  c⟨U+202E⟩⟨U+E0041⟩\n⟨U+009B⟩d")
  const json = plainJson({ hidden })
  assert.strictEqual(json, String.raw`{"hidden":"a\u001b]0;b\u0007\tc\u202e\udb40\udc41\n\u009bd"}`)
  assert.deepStrictEqual(JSON.parse(json), { hidden })
})

it("control characters do not reach the screen", () => {
  assert.strictEqual(
    plainText("a\u001B[31mred\u001B[0m \u001B]0;title\u0007b\u009B2Jc\rd\te\u202Ef\u0000\u001B]8;;x\u001B\\link"),
    "ared bc\nd  eflink"
  )
})
