import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as Messages from "../../src/Messages.ts"
import { Transcript } from "../../src/testing/index.ts"

const call = (id: string, args: Messages.JsonObject = {}): Messages.ToolCall => ({
  type: "toolCall",
  id,
  name: "read",
  arguments: args
})

const tool: Messages.ToolDeclaration = { name: "read", description: "", parameters: {} }

/** Messages with roles and blocks the types do not show. */
const stored = Schema.decodeUnknownSync(Messages.AgentMessage)

const note = stored({ role: "note", text: "for people\nonly", timestamp: 0 })

const messages: ReadonlyArray<Messages.AgentMessage> = [
  Messages.system("Be brief.", { toolsAdded: [tool] }),
  Messages.user("What is in x?"),
  Messages.assistant([{ type: "text", text: "Let me look." }, call("a", { path: "x" }), call("b")]),
  Messages.toolResult(call("a"), "12\n13"),
  Messages.toolResult(call("b"), "no such file", { isError: true }),
  note,
  Messages.system("", { sections: { date: "Monday", "the place": null }, toolsRemoved: [{ name: "read" }] }),
  Messages.assistant("fine")
]

describe("Transcript", () => {
  describe("print", () => {
    it("gives the shape, without the system messages", () => {
      assert.strictEqual(Transcript.print(messages), "U A[a,b] R(a) R(b!) C(note) A")
    })

    it("shows system messages on request", () => {
      assert.strictEqual(Transcript.print(messages, { system: true }), "S U A[a,b] R(a) R(b!) C(note) S A")
    })

    it("marks responses that did not end well", () => {
      assert.strictEqual(
        Transcript.print([
          Messages.assistant([call("a")], { stopReason: "error" }),
          Messages.assistant("so f", { stopReason: "aborted" }),
          Messages.assistant("cut", { stopReason: "length" }),
          Messages.assistant("so", { stopReason: "pending" })
        ]),
        "A[a]{error} A{aborted} A A{pending}"
      )
    })

    it("quotes ids and roles that could be misread", () => {
      const ids = ["", "a,b", "a!", "call_1|fc-2.x:3", "\"]"]
      assert.strictEqual(
        Transcript.print([
          Messages.assistant(ids.map((id) => call(id))),
          Messages.toolResult(call("a!"), ""),
          stored({ role: "my note" })
        ]),
        "A[\"\",\"a,b\",\"a!\",call_1|fc-2.x:3,\"\\\"]\"] R(\"a!\") C(\"my note\")"
      )
    })

    it("is empty for no messages", () => {
      assert.strictEqual(Transcript.print([]), "")
    })
  })

  describe("show", () => {
    it("gives a line for each message", () => {
      assert.deepStrictEqual(Transcript.show(messages).split("\n"), [
        "S \"Be brief.\" +read",
        "U \"What is in x?\"",
        "A[a,b] \"Let me look.\" a: read({\"path\":\"x\"}) b: read({})",
        "R(a) \"12\\n13\"",
        "R(b!) \"no such file\"",
        "C(note) \"{\\\"role\\\":\\\"note\\\",\\\"text\\\":\\\"for people\\\\nonly\\\",\\\"timestamp\\\":0}\"",
        "S #date #\"the place\" -read",
        "A \"fine\""
      ])
    })

    it("shows every kind of block", () => {
      assert.deepStrictEqual(
        Transcript.show([
          Messages.user([{ type: "text", text: "look" }, { type: "image", data: "aGk=", mimeType: "image/png" }]),
          stored({
            ...Messages.assistant(""),
            content: [
              { type: "thinking", thinking: "hm" },
              { type: "thinking", thinking: "", thinkingSignature: "s", redacted: true },
              { type: "video", url: "x" },
              { ...call("a"), argumentsText: "{\n  \"path\": " }
            ]
          })
        ]).split("\n"),
        ["U \"look\" <image/png>", "A[a] thinking \"hm\" thinking (redacted) <video> a: read({ \"path\": )"]
      )
    })

    it("tells why a response stopped, unless it just did", () => {
      assert.deepStrictEqual(
        Transcript.show([
          Messages.assistant("so f", { stopReason: "error", errorMessage: "over\nloaded" }),
          Messages.assistant([], { stopReason: "aborted" }),
          Messages.assistant("cut", { stopReason: "length" }),
          Messages.assistant("odd", { errorMessage: "but fine" })
        ]).split("\n"),
        [
          "A{error} \"so f\" -- error \"over\\nloaded\"",
          "A{aborted} -- aborted",
          "A \"cut\" -- length",
          "A \"odd\" -- stop \"but fine\""
        ]
      )
    })

    it("cuts what is long", () => {
      const long = "x".repeat(1000)
      assert.strictEqual(
        Transcript.show([
          Messages.user(long),
          Messages.assistant([call("a", { long })]),
          Messages.assistant("", { stopReason: "error", errorMessage: long })
        ], { width: 10 }),
        `U "${"x".repeat(10)}…"\nA[a] a: read({"long":"x…)\nA{error} "" -- error "${"x".repeat(10)}…"`
      )
      assert.strictEqual(Transcript.show([Messages.user(long)]), `U "${"x".repeat(60)}…"`)
    })
  })
})
