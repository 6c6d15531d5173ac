/** What is written down, and what is played back from it. */
import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Redacted, Schema } from "effect"
import { Agent, Hooks, Messages, Tools } from "../../src/index.ts"
import { Resilience } from "../../src/resilience/index.ts"
import { ofType } from "../utils/events.ts"
import { ask, type Attempt, call, failure, model, text, whole } from "./scene.ts"

/** With a file that is there at once: under a test's clock nobody waits for a disk. */
const inMemory = <A, E>(body: (file: string) => Effect.Effect<A, E, FileSystem.FileSystem>) =>
  Effect.suspend(() => {
    const files = new Map<string, string>()
    const file = "test.jsonl"
    const decoder = new TextDecoder()
    return Effect.provide(
      body(file),
      FileSystem.layerNoop({
        open: (path) =>
          Effect.sync(() => {
            files.set(path, "")
            // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else of it is used
            return {
              writeAll: (bytes: Uint8Array) =>
                Effect.sync(() => files.set(path, `${files.get(path)}${decoder.decode(bytes)}`))
            } as unknown as FileSystem.File
          }),
        readFileString: (path) => Effect.sync(() => files.get(path) ?? ""),
        writeFileString: (path, content) => Effect.sync(() => files.set(path, content))
      })
    )
  })

const inFile = <A, E>(body: (file: string) => Effect.Effect<A, E, FileSystem.FileSystem>) =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const folder = yield* fs.makeTempDirectoryScoped()
    return yield* body(`${folder}/test.jsonl`)
  }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer))

const note = Tools.make("note", {
  description: "Notes.",
  parameters: Schema.Struct({}),
  execute: () => Effect.succeed("noted")
})

const slow: Attempt = [...text("one"), 700, ...whole("").slice(2)]

const talk = (options: Agent.Options & { readonly abortAt?: number } = {}) =>
  Effect.map(ask({ tools: [note], ...options }), (told) => ({
    told,
    times: told.recorder.events.map((event, index) => [event.type, told.recorder.times[index]]),
    text: Messages.text(told.last),
    outcome: told.result.outcome._tag
  }))

const read = (file: string) => FileSystem.FileSystem.use((fs) => fs.readFileString(file))

const write = (file: string, content: string) => FileSystem.FileSystem.use((fs) => fs.writeFileString(file, content))

describe("A recording, played back", () => {
  for (
    const [name, attempts, options] of [
      ["two turns and a call", [[200, ...call("a")], [300, ...whole("fine")]], {}],
      ["a slow text", [slow], {}],
      ["a response that failed", [[...text("half"), 50, failure("RateLimited", { retryAfter: 7 })]], {}],
      ["one that broke off", [[...text("half"), 50]], {}],
      ["one with an error event", [[...text("half"), { type: "error", error: failure("Overloaded") }]], {}],
      ["one that was aborted", [[...text("half"), 5000]], { abortAt: 100 }]
    ] as const satisfies ReadonlyArray<readonly [string, ReadonlyArray<Attempt>, { readonly abortAt?: number }]>
  ) {
    it.effect(`has the same events at the same times: ${name}`, () =>
      inMemory((file) =>
        Effect.gen(function*() {
          const live = yield* Effect.provide(talk(options), model(attempts).pipe(Resilience.record(file)))
          const played = yield* Effect.provide(talk(options), Resilience.replay(file))
          assert.deepStrictEqual(played.times.map(([type]) => type), live.times.map(([type]) => type))
          const since = (times: typeof live.times) => times.map(([, time]) => Number(time) - Number(times[0]?.[1]))
          assert.deepStrictEqual(since(played.times), since(live.times))
          assert.deepStrictEqual([played.text, played.outcome], [live.text, live.outcome])
          const content = ({ told }: typeof live) =>
            told.result.messages.map((message) => JSON.stringify({ ...message, timestamp: 0 }))
          assert.deepStrictEqual(content(played), content(live))
        })
      ))
  }

  it.effect("waits for nothing without timing", () =>
    inMemory((file) =>
      Effect.gen(function*() {
        yield* Effect.provide(talk(), model([slow]).pipe(Resilience.record(file)))
        const before = yield* Effect.provide(talk(), Resilience.replay(file, { timing: false }))
        assert.strictEqual(before.told.recorder.times.at(-1), before.told.recorder.times[0])
      })
    ))

  it.effect("keeps what an attempt withdrew", () =>
    inMemory((file) =>
      Effect.gen(function*() {
        const retried = model([[...text("half"), failure()], whole("all")]).pipe(
          Resilience.retry({ times: 1 }),
          Resilience.record(file)
        )
        yield* Effect.provide(talk(), retried)
        const { text: answer, told } = yield* Effect.provide(talk(), Resilience.replay(file))
        assert.strictEqual(answer, "all")
        const updates = ofType(told.recorder.events, "message_update").map((event) => event.assistantMessageEvent)
        assert.deepInclude(updates, { type: "retract", attempt: 2, errorMessage: "it is Overloaded" })
      })
    ))

  it.effect("fails at its time when an interrupted response is not interrupted again", () =>
    inMemory((file) =>
      Effect.gen(function*() {
        yield* Effect.provide(
          talk({ abortAt: 100 }),
          model([[...text("half"), 5000]]).pipe(Resilience.record(file))
        )
        const { outcome, told } = yield* Effect.provide(talk(), Resilience.replay(file))
        assert.deepStrictEqual([outcome, told.last.stopReason], ["Failed", "error"])
        assert.include(told.last.errorMessage, "was interrupted here")
      })
    ))

  it.effect("answers equal requests in order, each once, at the same time", () =>
    inMemory((file) =>
      Effect.gen(function*() {
        const pair = Effect.all([talk(), talk()])
        yield* Effect.provide(pair, model([[100, ...whole("a")], whole("b")]).pipe(Resilience.record(file)))
        const [one, two] = yield* Effect.provide(pair, Resilience.replay(file))
        assert.deepStrictEqual([one.text, two.text], ["a", "b"])
      })
    ))
})

describe("What is not written down", () => {
  const secret = "sk-live-123456789"

  it.effect("the key, the values of headers, what the provider repeats of them, fields and patterns", () =>
    inMemory((file) =>
      Effect.gen(function*() {
        const options: Agent.Options = {
          headers: { "x-api-key": "header-secret" },
          metadata: { user_id: "lovelace" },
          systemPrompt: "Today is 2026-12-07.",
          sessionId: "s"
        }
        const redact = ["user_id", /\d{4}-\d\d-\d\d/]
        const attempts = [[
          ...text(`on 2026-12-07 you sent ${secret}`),
          failure("Authentication", { message: `no such key: ${secret} header-secret` })
        ]]
        yield* Effect.provide(talk(options), [
          model(attempts).pipe(Resilience.record(file, { redact })),
          Hooks.layer(Hooks.apiKey(() => Effect.succeed(Redacted.make(secret))))
        ])
        const content = yield* read(file)
        for (const hidden of [secret, "header-secret", "lovelace", "2026-12-07"]) assert.notInclude(content, hidden)
        assert.include(content, "x-api-key")
        const { text: answer, told } = yield* Effect.provide(
          talk({ ...options, systemPrompt: "Today is 2027-01-01.", sessionId: "t" }),
          Resilience.replay(file, { redact })
        )
        assert.strictEqual(answer, "on <redacted> you sent <redacted>")
        assert.strictEqual(told.last.errorMessage, "no such key: <redacted> <redacted>")
      })
    ))
})

describe("A secret in what was asked", () => {
  it.effect("matches when it is asked again with the same key", () =>
    inMemory((file) =>
      Effect.gen(function*() {
        const Key = Hooks.layer(Hooks.apiKey(() => Effect.succeed(Redacted.make("of-mine"))))
        const options = { systemPrompt: "My key is of-mine." }
        yield* Effect.provide(talk(options), [model([text("hello")]).pipe(Resilience.record(file)), Key])
        assert.notInclude(yield* read(file), "of-mine")
        const { text: answer } = yield* Effect.provide(talk(options), [Resilience.replay(file), Key])
        assert.strictEqual(answer, "hello")
      })
    ))
})

describe("A cassette that cannot be used", () => {
  const good = "{\"format\":\"effect-pi/cassette\",\"version\":1}"
  const request = "{\"n\":1,\"request\":{}}"
  for (
    const [name, lines, line, message] of [
      ["is something else", ["{}"], 1, "is no cassette of this version"],
      ["is empty", [""], 1, "is no cassette of this version"],
      ["has a broken line", [good, "{\"n\":1", request], 2, "Line 2 of the cassette"],
      ["has an event without a time", [good, request, "{\"n\":1,\"events\":[{\"type\":\"start\"}]}", ""], 3, "Line 3"],
      ["answers what was not asked", [good, "{\"n\":1,\"at\":1,\"end\":\"complete\"}", ""], 2, "belongs to request 1"],
      ["asks twice", [good, request, request, ""], 3, "which is there already"]
    ] as const
  ) {
    it.effect(name, () =>
      inMemory((file) =>
        Effect.gen(function*() {
          yield* write(file, lines.join("\n"))
          const error = yield* Effect.flip(Effect.provide(Effect.void, Resilience.replay(file)))
          assert.deepStrictEqual([error._tag, error.reason, error.file, error.line], [
            "CassetteError",
            "Invalid",
            file,
            line
          ])
          assert.include(error.message, message)
          assert.include(error.message, "Record it again.")
        })
      ))
  }

  it.effect("is not there, is a folder, or its folder is not there", () =>
    inFile((file) =>
      Effect.gen(function*() {
        const missing = yield* Effect.flip(Effect.provide(Effect.void, Resilience.replay(file)))
        assert.strictEqual(missing.message, `There is no cassette ${file}: record it with Resilience.record.`)
        const folder = yield* Effect.flip(Effect.provide(Effect.void, Resilience.replay(`${file}/..`)))
        assert.include(["NotFound", "Unreadable"], folder.reason)
        const recording = model([]).pipe(Resilience.record(`${file}/none/x.jsonl`))
        const error = yield* Effect.flip(Effect.provide(Effect.void, recording))
        assert.strictEqual(error.reason, "NotWritable")
      })
    ))

  it.effect("broke off in the middle of a line: it plays until there", () =>
    inMemory((file) =>
      Effect.gen(function*() {
        yield* Effect.provide(talk(), model([slow]).pipe(Resilience.record(file)))
        const content = yield* read(file)
        yield* write(file, content.slice(0, content.lastIndexOf("\"done\"")))
        const { outcome, text: answer } = yield* Effect.provide(talk(), Resilience.replay(file))
        assert.deepStrictEqual([outcome, answer], ["Failed", "one"])
      })
    ))
})

describe("A request that was not recorded", () => {
  const failed = (file: string, options: Agent.Options) =>
    Effect.map(Effect.provide(talk(options), Resilience.replay(file)), ({ told: { result: { outcome } } }) => {
      assert(outcome._tag === "Failed" && outcome.error._tag === "ModelError")
      const { cause } = outcome.error
      assert.instanceOf(cause, Resilience.CassetteError)
      assert.strictEqual(cause.reason, "NoMatch")
      return cause
    })

  it.effect("is told where it differs, and on which line", () =>
    inMemory((file) =>
      Effect.gen(function*() {
        yield* Effect.provide(talk({ systemPrompt: "Be brief." }), model([whole("x")]).pipe(Resilience.record(file)))
        const error = yield* failed(file, { systemPrompt: "Be long." })
        assert.strictEqual(error.line, 2)
        assert.include(error.message, "differs at messages[0]")
        assert.include(error.message, "\"Be brief.\" there, \"Be long.\" here")
        const level = yield* failed(file, { systemPrompt: "Be brief.", thinkingLevel: "high" })
        assert.include(level.message, "differs at thinkingLevel: \"off\" there, \"high\" here")
      })
    ))

  it.effect("comes after all were played", () =>
    inMemory((file) =>
      Effect.gen(function*() {
        yield* Effect.provide(talk(), model([whole("x")]).pipe(Resilience.record(file)))
        const again = Effect.andThen(talk(), talk())
        const { told: { last } } = yield* Effect.provide(again, Resilience.replay(file))
        assert.include(last.errorMessage, "All 1 responses of the cassette test.jsonl were played already.")
      })
    ))

  it.live("nothing is lost on a real disk", () =>
    inFile((file) =>
      Effect.gen(function*() {
        const prompt = Effect.flatMap(Agent.make(), (agent) => agent.prompt("go")).pipe(Effect.scoped)
        yield* Effect.provide(prompt, model([[...text("half"), failure()]]).pipe(Resilience.record(file)))
        assert.lengthOf((yield* read(file)).trimEnd().split("\n"), 6)
        const { outcome } = yield* Effect.provide(prompt, Resilience.replay(file))
        assert(outcome._tag === "Failed")
        assert.strictEqual(outcome.error.message, "it is Overloaded")
      })
    ))
})
