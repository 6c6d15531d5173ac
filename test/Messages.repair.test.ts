import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { inspect } from "node:util"
import { encode } from "../src/internal/json.ts"
import { normalize } from "../src/internal/requestMessages.ts"
import * as Messages from "../src/Messages.ts"
import { Transcript } from "../src/testing/index.ts"
import { unanswered } from "./utils/invariants.ts"

const call = (id: string, name = "echo"): Messages.ToolCall => ({ type: "toolCall", id, name, arguments: {} })
const calls = (...ids: ReadonlyArray<string>) => Messages.assistant(ids.map((id) => call(id)), { timestamp: 7 })
const result = (id: string, text = id) => Messages.toolResult(call(id), text)
const user = Messages.user("hi")
const done = Messages.assistant("done")

const tags = (messages: ReadonlyArray<unknown>): string =>
  Messages.check(messages).map((defect) => `${defect._tag}@${defect.index}`).join(" ")

const changes = (messages: ReadonlyArray<unknown>): string =>
  Messages.repair(messages).repairs.map((repair) => `${repair._tag}@${repair.index}`).join(" ")

const print = (messages: ReadonlyArray<Messages.AgentMessage>): string => Transcript.print(messages, { system: true })

/** Whether a value is its own JSON and well-formed; `JSON.parse` of V8 misreads some keys, so it cannot tell. */
const isPlainJson = (value: unknown): boolean => Result.getOrUndefined(encode(value)) === value

const distinct = (defects: ReadonlyArray<Messages.Defect>): ReadonlyArray<string> =>
  [...new Set(defects.map((defect) => JSON.stringify(defect)))].toSorted()

/** What holds of every repair. Gives the repaired transcript. */
const repaired = (messages: ReadonlyArray<unknown>): ReadonlyArray<Messages.AgentMessage> => {
  const before = inspect(messages, { depth: null })
  const { messages: mended, repairs } = Messages.repair(messages)
  const defects = Messages.check(messages)
  assert.strictEqual(inspect(messages, { depth: null }), before, "the input is not touched")
  assert.deepStrictEqual(Messages.check(mended), [])
  assert.strictEqual(Messages.repair(mended).messages, mended, "repairing twice changes nothing")
  assert.deepStrictEqual(Messages.repair(mended).repairs, [])
  assert.isTrue(Schema.is(Messages.Transcript)(mended))
  assert.isTrue(isPlainJson(mended))
  assert.deepStrictEqual(unanswered(mended), [])
  assert.strictEqual(normalize(mended.filter(Messages.isMessage)).splitPairs, 0)
  assert.deepStrictEqual(distinct(repairs.map((repair) => repair.defect)), distinct(defects))
  assert.strictEqual(mended === messages, repairs.length === 0)
  for (const list of [defects, repairs]) {
    assert.deepStrictEqual(list.map(({ index }) => index), list.map(({ index }) => index).toSorted((a, b) => a - b))
  }
  for (const { defect, message } of repairs) {
    assert.isTrue(message.startsWith(`${defect.message}; `) && defect.message.startsWith(`Message ${defect.index}: `))
  }
  return mended
}

interface Case {
  readonly name: string
  readonly messages: ReadonlyArray<Messages.AgentMessage>
  readonly defects: string
  readonly changes: string
  readonly repaired: string
}

const cases: ReadonlyArray<Case> = [
  {
    name: "B112 an open call gets an error result",
    messages: [user, calls("a"), user],
    defects: "OpenCall@1",
    changes: "Added@1",
    repaired: "U A[a] R(a!) U"
  },
  {
    name: "B112 a transcript that ends with open calls",
    messages: [user, calls("a", "b", "c"), result("b")],
    defects: "OpenCall@1 OpenCall@1",
    changes: "Added@1 Added@1",
    repaired: "U A[a,b,c] R(a!) R(b) R(c!)"
  },
  {
    name: "B112 an orphan result is left out",
    messages: [user, result("x"), done],
    defects: "OrphanResult@1",
    changes: "Dropped@1",
    repaired: "U A"
  },
  {
    name: "B112 of two results the second is left out",
    messages: [user, calls("a"), result("a", "first"), result("a", "second"), done, result("a", "third")],
    defects: "DoubledResult@3 DoubledResult@5",
    changes: "Dropped@3 Dropped@5",
    repaired: "U A[a] R(a) A"
  },
  {
    name: "B112 messages between a call and its result go behind it",
    messages: [calls("a", "b"), result("a"), user, Messages.system("s"), result("b"), done],
    defects: "LateResult@4",
    changes: "Moved@4",
    repaired: "A[a,b] R(a) R(b) U S A"
  },
  {
    name: "B112 a result before its call goes behind it",
    messages: [user, result("a"), calls("a"), done],
    defects: "EarlyResult@1",
    changes: "Moved@1",
    repaired: "U A[a] R(a) A"
  },
  {
    name: "B112 results get the order of their calls",
    messages: [calls("a", "b", "c"), result("c"), result("a"), result("b")],
    defects: "UnorderedResult@1",
    changes: "Moved@1",
    repaired: "A[a,b,c] R(a) R(b) R(c)"
  },
  {
    name: "B112 an empty assistant message is left out",
    messages: [
      user,
      Messages.assistant([]),
      Messages.assistant(""),
      Messages.assistant([{ type: "thinking", thinking: "" }, { type: "text", text: "" }])
    ],
    defects: "EmptyAssistant@1 EmptyAssistant@2 EmptyAssistant@3",
    changes: "Dropped@1 Dropped@2 Dropped@3",
    repaired: "U"
  },
  {
    name: "B112 results of interleaved calls go to their calls",
    messages: [calls("a"), calls("b"), result("a"), result("b")],
    defects: "LateResult@2",
    changes: "Moved@2",
    repaired: "A[a] R(a) A[b] R(b)"
  },
  {
    name: "B112 what is left out does not stand between a call and its result",
    messages: [calls("a"), result("x"), Messages.assistant(""), result("a")],
    defects: "OrphanResult@1 EmptyAssistant@2",
    changes: "Dropped@1 Dropped@2",
    repaired: "A[a] R(a)"
  },
  {
    name: "B61 a constant id pairs with the nearest call before it",
    messages: [calls("x"), result("x", "1"), calls("x"), user, calls("x"), user, result("x", "3"), result("x", "4")],
    defects: "OpenCall@2 LateResult@6 DoubledResult@7",
    changes: "Added@2 Moved@6 Dropped@7",
    repaired: "A[x] R(x) A[x] R(x!) U A[x] R(x) U"
  },
  {
    name: "B61 an early result answers the first call of its id, unless that has one behind it",
    messages: [result("x", "0"), calls("x"), calls("x"), result("x", "2"), result("y"), calls("y"), result("y")],
    defects: "EarlyResult@0 DoubledResult@4",
    changes: "Moved@0 Dropped@4",
    repaired: "A[x] R(x) A[x] R(x) A[y] R(y)"
  },
  {
    name: "B10 B84 results of calls that never ran are orphans, and those calls need none",
    messages: [
      { ...calls("a"), stopReason: "error" },
      result("a"),
      { ...calls("b", "c"), stopReason: "aborted" },
      result("d")
    ],
    defects: "OrphanResult@1 OrphanResult@3",
    changes: "Dropped@1 Dropped@3",
    repaired: "A[a]{error} A[b,c]{aborted}"
  },
  {
    name: "B10 a call that never ran with an id of an earlier turn does not answer for it",
    messages: [calls("x"), { ...calls("x"), stopReason: "aborted" }, result("x")],
    defects: "OpenCall@0 OrphanResult@2",
    changes: "Added@0 Dropped@2",
    repaired: "A[x] R(x!) A[x]{aborted}"
  },
  {
    name: "T8 calls of one message get ids of their own, and their results with them",
    messages: [calls("x", "", "x", "", "x_2"), result("x", "1"), result("x", "3"), result("", "2"), result("x_2", "5")],
    defects: "EmptyCallId@0 DuplicateCallId@0 EmptyCallId@0 DuplicateCallId@0 OpenCall@0 UnorderedResult@2",
    changes: "Changed@0 Changed@0 Changed@0 Changed@0 Added@0 Moved@2 Changed@2 Changed@3 Changed@4",
    repaired: "A[x,call,x_2,call_2,x_2_2] R(x) R(call) R(x_2) R(call_2!) R(x_2_2)"
  },
  {
    name: "a response that is still pending was aborted",
    messages: [user, { ...calls("a", "a"), stopReason: "pending" }, {
      ...Messages.assistant(""),
      stopReason: "pending"
    }],
    defects: "PendingAssistant@1 DuplicateCallId@1 PendingAssistant@2",
    changes: "Changed@1 Changed@1 Changed@2",
    repaired: "U A[a,a_2]{aborted} A{aborted}"
  }
]

describe("Messages.check and Messages.repair", () => {
  for (const { changes: expected, defects, messages, name, repaired: shape } of cases) {
    it(name, () => {
      assert.strictEqual(tags(messages), defects)
      assert.strictEqual(changes(messages), expected)
      assert.strictEqual(print(repaired(messages)), shape)
    })
  }

  it("B112 all at once: every result goes to its call, and nothing that was said is lost", () => {
    const messages = [
      result("c", "early"),
      user,
      calls("a", "b"),
      Messages.user("between"),
      result("b", "late"),
      result("b", "doubled"),
      Messages.assistant(""),
      result("x", "orphan"),
      calls("c"),
      calls("d")
    ]
    const mended = repaired(messages)
    assert.strictEqual(print(mended), "U A[a,b] R(a!) R(b) U A[c] R(c) A[d] R(d!)")
    assert.deepStrictEqual(mended.map(Messages.text).filter((text) => !text.startsWith("Operation aborted")), [
      "hi",
      "",
      "late",
      "between",
      "",
      "early",
      ""
    ])
  })

  it("B61 of the same id each call keeps the result that was its own", () => {
    const messages = [calls("x"), result("x", "1"), result("x", "again"), calls("x"), user, result("x", "2")]
    assert.deepStrictEqual(repaired(messages).map(Messages.text), ["", "1", "", "2", "hi"])
  })

  it("T8 results of calls with one id pair by position", () => {
    const mended = repaired([calls("x", "x"), result("x", "1"), user, result("x", "2"), result("x", "3")])
    assert.deepStrictEqual(mended.slice(1, 3), [result("x", "1"), { ...result("x", "2"), toolCallId: "x_2" }])
  })

  it("T8 a fresh id is none that is used", () => {
    const mended = repaired([{ ...calls("x_2", "x_3", "x", "x", "x"), stopReason: "error" }])
    assert.strictEqual(print(mended), "A[x_2,x_3,x,x_4,x_5]{error}")
  })

  it("Q4 the result of an open call says that its outcome is unknown", () => {
    const open = call("a", "deploy")
    const [, answer] = repaired([Messages.assistant([open], { timestamp: 7 }), user])
    assert.deepStrictEqual<unknown>({ ...answer, content: [] }, {
      ...Messages.toolResult(open, [], { isError: true, timestamp: 7 }),
      details: {}
    })
    assert.match(Messages.text(answer!), /^Operation aborted.*outcome is unknown/)
  })

  it("defects say which call of which message is meant, and repairs what was done", () => {
    const [open] = Messages.check([user, Messages.assistant([call("a", "deploy")])])
    assert.deepStrictEqual<unknown>(open, {
      _tag: "OpenCall",
      index: 1,
      id: "a",
      name: "deploy",
      message: `Message 1: call "a" of "deploy" has no result`
    })
    const { repairs } = Messages.repair([calls("x", "x"), result("x"), result("x")])
    assert.deepStrictEqual(repairs.map(({ defect, index, message }) => ({ at: defect.index, index, message })), [
      {
        at: 0,
        index: 0,
        message: `Message 0: another call has the id of call "x" of "echo"; the call has the id "x_2"`
      },
      {
        at: 0,
        index: 2,
        message: `Message 0: another call has the id of call "x" of "echo"; its result has the id "x_2"`
      }
    ])
    const [orphan] = Messages.check([result("y".repeat(100_000))])
    assert.isBelow(orphan!.message.length, 200)
  })

  describe("what is no defect", () => {
    const valid: Record<string, ReadonlyArray<Messages.AgentMessage>> = {
      "an empty transcript": [],
      "a conversation": [Messages.system("s"), user, calls("a", "b"), result("a"), result("b"), done, user],
      "an id that comes again": [calls("x"), result("x"), calls("x"), result("x")],
      "an empty response that failed": [{ ...Messages.assistant([]), stopReason: "error" }],
      "an empty response that was aborted": [{ ...Messages.assistant(""), stopReason: "aborted" }],
      "an empty response that goes on elsewhere": [{ ...Messages.assistant([]), stopReason: "deferred" }],
      "thinking that is withheld": [
        Messages.assistant([{ type: "thinking", thinking: "", thinkingSignature: "c2VjcmV0", redacted: true }])
      ],
      "empty text beside a call": [Messages.assistant([{ type: "text", text: "" }, call("a")]), result("a")]
    }
    for (const [name, messages] of Object.entries(valid)) {
      it(`${name} comes back as it is`, () => {
        assert.strictEqual(tags(messages), "")
        assert.strictEqual(repaired(messages), messages)
      })
    }

    it("I6 roles, blocks and fields that are not known are kept as they are", () => {
      const messages: ReadonlyArray<unknown> = JSON.parse(`[
        {"role":"bashExecution","command":"ls","__proto__":{"a":1}},
        {"role":"user","content":[{"type":"video","url":"file:///a.mp4"}],"timestamp":1,"origin":{"client":"tui"}},
        {"role":"assistant","content":[{"type":"serverToolUse","id":"s","input":[1,null]}],"api":"","provider":"","model":"",
          "usage":${JSON.stringify(Messages.emptyUsage)},"stopReason":"stop","timestamp":2,"later":null}
      ]`)
      assert.strictEqual<unknown>(repaired(messages), messages)
    })

    it("I6 a message that is only moved is the same object", () => {
      const messages = [calls("a"), user, result("a")]
      const [first, second, third] = repaired(messages)
      assert.isTrue(first === messages[0] && second === messages[2] && third === messages[1])
    })
  })

  describe("what does not decode", () => {
    /** The defect of one message, what is left of it, and what the repair says of it. */
    const only = (message: unknown) => {
      const { messages, repairs } = Messages.repair([message])
      repaired([message])
      return {
        left: messages,
        paths: repairs.map(({ defect }) => defect._tag === "Undecodable" ? defect.path : defect._tag),
        says: repairs.map((repair) => repair.message)
      }
    }

    it("a message that cannot be read is left out", () => {
      const unreadable: ReadonlyArray<readonly [value: unknown, says: string]> = [
        [null, "Message 0: Expected object; the message is left out"],
        ["hi", "Message 0: Expected object; the message is left out"],
        [undefined, "Message 0: the value is undefined; the message is left out"],
        [{ content: "hi" }, "Message 0: role: Missing key; the message is left out"],
        [
          { role: "user", content: 3, timestamp: 0 },
          "Message 0: content: Expected string | array; the message is left out"
        ],
        [
          { role: "toolResult", content: [], timestamp: 0 },
          "Message 0: toolCallId: Missing key; the message is left out"
        ]
      ]
      for (const [value, says] of unreadable) {
        const read = only(value)
        assert.deepStrictEqual(read.left, [])
        assert.deepStrictEqual(read.says, [says])
        assert.strictEqual(changes([value]), "Dropped@0")
      }
    })

    it("getters that throw, cycles and endless nesting cost what holds them", () => {
      const cycle: { self?: unknown } = {}
      cycle.self = cycle
      const { left, paths } = only({ ...result("a"), role: "note", details: { cycle, ok: 1 } })
      assert.deepStrictEqual(paths, [["details", "cycle", "self", "self"]])
      assert.deepStrictEqual<unknown>(left, [{ ...result("a"), role: "note", details: { cycle: { self: {} }, ok: 1 } }])
      const throwing = Object.defineProperty({ role: "note" }, "text", {
        enumerable: true,
        get: () => {
          throw new Error("boom")
        }
      })
      assert.deepStrictEqual(Messages.repair([throwing]).messages, [])
      assert.deepStrictEqual(Messages.check([throwing]).map((defect) => defect.message), [
        "Message 0: text could not be read: boom"
      ])
    })

    it("a block that does not decode is left out, the others stay", () => {
      const fine = { type: "text", text: "fine" }
      const image = { type: "image" }
      const content = [{ type: "text" }, fine, 3, { ...image, data: 3, mimeType: 4 }, { type: "video" }, image]
      const { left, paths, says } = only({ ...user, content })
      assert.deepStrictEqual<unknown>(left, [{ ...user, content: [fine, { type: "video" }] }])
      assert.deepStrictEqual(paths, [
        ["content", 0, "text"],
        ["content", 2],
        ["content", 3, "data"],
        ["content", 5, "data"]
      ])
      assert.strictEqual(says[2], "Message 0: content[3].data: Expected string; content[3] is left out")
    })

    it("a call that does not decode takes its result with it, and an empty response", () => {
      const messages: ReadonlyArray<unknown> = [
        { ...calls("a"), content: [{ ...call("a"), arguments: "{}" }] },
        result("a"),
        { ...calls("b"), content: [call("b"), { type: "toolCall", id: "c" }] },
        result("c"),
        result("b")
      ]
      assert.strictEqual(tags(messages), "Undecodable@0 EmptyAssistant@0 OrphanResult@1 Undecodable@2 OrphanResult@3")
      assert.strictEqual(print(repaired(messages)), "A[b] R(b)")
    })

    it("an optional or unknown field that does not decode is left out alone", () => {
      const message = {
        ...Messages.assistant([{ type: "text", text: "a" }]),
        responseId: 3,
        note: { when: Number.NaN, which: new Map([[1, 2]]), kept: [1, 2n, 3] }
      }
      const { left, paths } = only({ ...message, content: [{ ...message.content[0], textSignature: null }] })
      assert.deepStrictEqual<unknown>(left, [{ ...Messages.assistant("a"), note: { kept: [1, null, 3] } }])
      assert.deepStrictEqual<unknown>(paths, [
        ["note", "when"],
        ["note", "which"],
        ["note", "kept", 1],
        ["content", 0, "textSignature"],
        ["responseId"]
      ])
      assert.strictEqual(changes([{ ...message, note: 1 }]), "Changed@0")
      assert.deepStrictEqual(repaired([calls("a"), { ...result("a"), usage: 3 }])[1], result("a"))
    })

    it("a tool declaration or section that does not decode is left out", () => {
      const tool: Messages.ToolDeclaration = { name: "t", description: "", parameters: {} }
      const { left } = only({ ...Messages.system("s"), sections: { a: 3, b: null }, toolsAdded: [{ name: "u" }, tool] })
      assert.deepStrictEqual(left, [Messages.system("s", { sections: { b: null }, toolsAdded: [tool] })])
    })

    it("usage, time, model and the like get a neutral value, so that what was said is kept", () => {
      const { left, says } = only({
        role: "assistant",
        content: [{ type: "text", text: "kept" }],
        usage: { ...Messages.emptyUsage, cost: { ...Messages.emptyUsage.cost, input: "free" } },
        stopReason: "tired",
        timestamp: "now"
      })
      assert.deepStrictEqual(left, [Messages.assistant("kept")])
      assert.include(says, "Message 0: usage.cost.input: Expected number; usage has a neutral value now")
      assert.strictEqual(says.length, 6)
      assert.include(says, "Message 0: timestamp: Expected number; timestamp has a neutral value now")
      assert.deepStrictEqual(only({ ...result("a"), role: "note", usage: {} }).paths, [])
      const { isError: _, ...unmarked } = result("a")
      assert.deepStrictEqual(repaired([calls("a"), unmarked]), [calls("a"), result("a")])
    })

    it("B74 half surrogate pairs become U+FFFD, wherever they are", () => {
      const bad = "x\uD83D"
      const messages = [
        Messages.user(bad),
        Messages.assistant([{ ...call(bad), arguments: { path: "\uD99C", [bad]: 1 } }]),
        result(bad, bad)
      ]
      assert.strictEqual(tags(messages), "IllFormedText@0 IllFormedText@1 IllFormedText@2")
      const mended = repaired(messages)
      assert.deepStrictEqual(mended[1], Messages.assistant([{ ...call("x�"), arguments: { path: "�", "x�": 1 } }]))
      assert.deepStrictEqual(mended[2], result("x�"))
      // Ids that differ only in what is replaced become one, and pair by position.
      assert.strictEqual(
        print(repaired([calls("\uD800", "\uD801"), result("\uD801"), result("\uD800")])),
        `A["�","�_2"] R("�") R("�_2")`
      )
    })

    it("what is no plain JSON is read as the JSON it stands for", () => {
      const message = { ...Messages.user("hi", { timestamp: 1 }), origin: undefined, when: new Date(0) }
      assert.strictEqual(tags([message]), "NotPlainJson@0")
      assert.deepStrictEqual<unknown>(repaired([message]), [{
        ...Messages.user("hi", { timestamp: 1 }),
        when: "1970-01-01T00:00:00.000Z"
      }])
    })
  })
})

// -----------------------------------------------------------------------------
// Properties
// -----------------------------------------------------------------------------

const Place = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 99 }))

/** Few ids, so that many turns have the same. */
const Id = Schema.Literals(["a", "b", "c"])

const Turn = Schema.Union([
  Schema.Literals(["user", "system", "note", "text"]),
  Schema.Struct({
    ids: Schema.Array(Id).check(Schema.isMinLength(1), Schema.isMaxLength(3), Schema.isUnique()),
    stopReason: Schema.Literals(["toolUse", "toolUse", "length", "aborted", "error"])
  })
])

/** A valid transcript, in which every message says something no other one says. */
const transcript = (turns: ReadonlyArray<typeof Turn.Type>): ReadonlyArray<Messages.AgentMessage> =>
  turns.flatMap((turn, n): ReadonlyArray<Messages.AgentMessage> => {
    const text = `${n}`
    switch (turn) {
      case "user":
        return [Messages.user(text)]
      case "system":
        return [Messages.system(text)]
      case "note":
        return [JSON.parse(`{"role":"note","content":"${text}","timestamp":0}`)]
      case "text":
        return [Messages.assistant(text)]
      default: {
        const { ids, stopReason } = turn
        const message = Messages.assistant([{ type: "text", text }, ...ids.map((id) => call(id))], { stopReason })
        return stopReason === "aborted" || stopReason === "error"
          ? [message]
          : [message, ...ids.map((id) => result(id, `${text} ${id}`))]
      }
    }
  })

const Edit = Schema.Union([
  Schema.Struct({ edit: Schema.Literal("drop"), at: Place }),
  Schema.Struct({ edit: Schema.Literals(["move", "repeat"]), at: Place, to: Place })
])

const edited = (
  messages: ReadonlyArray<Messages.AgentMessage>,
  edits: ReadonlyArray<typeof Edit.Type>
): ReadonlyArray<Messages.AgentMessage> => {
  const list = messages.slice()
  for (const edit of edits) {
    if (list.length === 0) break
    const at = edit.at % list.length
    const [message] = edit.edit === "repeat" ? [structuredClone(list[at]!)] : list.splice(at, 1)
    if (edit.edit !== "drop") list.splice(edit.to % (list.length + 1), 0, message!)
  }
  return list
}

const said = (messages: ReadonlyArray<Messages.AgentMessage>): ReadonlyArray<string> =>
  messages.filter((message) => message.role !== "toolResult").map(Messages.text)

const Turns = Schema.Array(Turn).check(Schema.isMaxLength(8))
const Edits = Schema.Array(Edit).check(Schema.isMaxLength(6))

describe("Messages.repair, for every transcript", () => {
  it.prop("a valid one comes back as it is", [Turns], ([turns]) => {
    const messages = transcript(turns)
    assert.strictEqual(tags(messages), "")
    assert.strictEqual(repaired(messages), messages)
  })

  it.prop(
    "I1 one whose messages were lost, moved and repeated becomes valid, and nothing said is lost",
    [Turns, Edits],
    ([
      turns,
      edits
    ]) => {
      const messages = edited(transcript(turns), edits)
      const mended = repaired(messages)
      assert.deepStrictEqual(said(mended), said(messages), "whatever is no result keeps its order")
      assert.strictEqual(mended === messages, unanswered(messages).length === 0)
      const { repairs } = Messages.repair(messages)
      const dropped = new Set(repairs.filter(({ _tag }) => _tag === "Dropped").map(({ index }) => index))
      const added = mended.filter((message) => !messages.includes(message))
      assert.isTrue(messages.every((message, index) => mended.includes(message) !== dropped.has(index)))
      assert.strictEqual(new Set(mended).size, mended.length)
      assert.strictEqual(added.length, repairs.filter(({ _tag }) => _tag === "Added").length)
      assert.isTrue(added.every((message) => Messages.text(message).startsWith("Operation aborted")))
      assert.isFalse(repairs.some(({ _tag }) => _tag === "Changed"))
    },
    { arbitrary: { runs: 500 } }
  )

  it.prop("B61 a result right behind its call stays the result of that call", [Turns, Edits], ([turns, edits]) => {
    const messages = edited(transcript(turns), edits)
    const mended = repaired(messages)
    for (const [index, message] of messages.entries()) {
      const caller = messages[index - 1]
      if (message.role !== "toolResult" || caller?.role !== "assistant" || caller.stopReason === "aborted") continue
      if (caller.stopReason === "error" || Messages.toolCalls(caller).every(({ id }) => id !== message.toolCallId)) {
        continue
      }
      const before = mended.slice(0, mended.indexOf(message))
      assert.strictEqual(before.findLast(({ role }) => role !== "toolResult"), caller)
    }
  }, { arbitrary: { runs: 200 } })

  it.prop("I6 any messages become valid", [Messages.Transcript, Edits], ([messages, edits]) => {
    repaired(edited(messages, edits))
  }, { arbitrary: { runs: 60 } })

  it.prop("I6 any values become valid, and messages among them stay", [Schema.Array(Schema.Json)], ([values]) => {
    const mended = repaired([...values, user])
    assert.strictEqual(mended.at(-1), user)
  })

  const Odd = Schema.Literals(["remove", "null", "number", "text", "surrogate", "NaN", "undefined", "list"])
  const odd: Record<Exclude<typeof Odd.Type, "remove">, unknown> = {
    null: null,
    number: 3,
    text: "",
    surrogate: "\uD800",
    NaN: Number.NaN,
    undefined,
    list: [{}]
  }

  /** The value with another one at some field in it, at most `depth` levels down. */
  const spoiled = (value: unknown, at: number, kind: typeof Odd.Type, depth: number): unknown => {
    if (typeof value !== "object" || value === null || Object.keys(value).length === 0) return value
    const keys = Object.keys(value)
    const key = keys[at % keys.length]!
    const inner = depth === 0 ? undefined : spoiled(Reflect.get(value, key), at, kind, depth - 1)
    const copy: object = Array.isArray(value) ? value.slice() : { ...value }
    if (inner === undefined && kind === "remove") Reflect.deleteProperty(copy, key)
    else Reflect.set(copy, key, inner ?? (kind === "remove" ? null : odd[kind]))
    return copy
  }

  it.prop(
    "I6 messages in which any field is spoiled become valid",
    [Turns, Schema.Array(Schema.Struct({ at: Place, key: Place, kind: Odd, depth: Schema.Literals([0, 1, 2, 3]) }))],
    ([turns, spoils]) => {
      const messages: Array<unknown> = [...transcript([...turns, "user"])]
      for (const { at, depth, key, kind } of spoils) {
        const place = at % messages.length
        messages[place] = spoiled(messages[place], key, kind, depth)
      }
      repaired(messages)
    },
    { arbitrary: { runs: 300 } }
  )

  it("ten thousand messages", () => {
    const turns = Array.from(
      { length: 2500 },
      () => [user, calls("x", "y"), result("y"), user, result("x"), result("z")]
    )
    const mended = repaired(turns.flat())
    assert.strictEqual(mended.length, 12_500)
  })
})
