import * as Pi from "@earendil-works/pi-ai"
import { assert, describe, it } from "@effect/vitest"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { Replay } from "../src/internal/replay.ts"
import * as Messages from "../src/Messages.ts"

const decode = Schema.decodeUnknownSync(Messages.Transcript)
const encode = Schema.encodeSync(Messages.Transcript)

/** The error text of a transcript that must not decode. */
const refusal = (transcript: unknown): string => {
  const exit = Schema.decodeUnknownExit(Messages.Transcript)(transcript)
  assert.isTrue(Exit.isFailure(exit), "should not decode")
  return String(exit)
}

const tool = (name: string, parameters: Messages.JsonObject = {}): Messages.ToolDeclaration => ({
  name,
  description: `The tool ${name}`,
  parameters
})

const call = (id: string, name = "echo"): Messages.ToolCall => ({ type: "toolCall", id, name, arguments: {} })

// A session of pi 1.0.3 (bash tool, Anthropic), with what later versions may add: unknown fields of messages, blocks, usage
// and declarations, an unknown block, an unknown role, and a key that must not become a prototype.
const stored = `[
  {"role":"system","content":"You are pi.","sections":{"cwd":"<cwd>/tmp</cwd>","date":null},"toolsAdded":[
    {"name":"bash","description":"Run a command","parameters":{"type":"object","required":["command"],
      "properties":{"command":{"type":"string"}}},"constrainedSampling":false,"deferLoading":true}],
    "toolsRemoved":[{"name":"sh","why":"renamed"}],"timestamp":1764500000000,"revision":3},
  {"role":"user","content":[{"type":"text","text":"List it","cache":{"ttl":"1h"}},
    {"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png","detail":"low"},
    {"type":"video","url":"file:///a.mp4"}],"timestamp":1764500000001,"origin":{"client":"tui"}},
  {"role":"assistant","content":[
    {"type":"thinking","thinking":"Let me look.","thinkingSignature":"EqQB","effort":0.5},
    {"type":"thinking","thinking":"","thinkingSignature":"c2VjcmV0","redacted":true},
    {"type":"text","text":"I look.","textSignature":"{\\"v\\":1,\\"id\\":\\"msg_1\\"}"},
    {"type":"toolCall","id":"toolu_1","name":"bash","arguments":{"command":"ls","__proto__":{"polluted":true}},
      "thoughtSignature":"sig","namespace":"shell","caller":{"type":"direct"}},
    {"type":"serverToolUse","id":"srv_1","input":[1,null]}],
    "api":"anthropic-messages","provider":"anthropic","model":"claude-opus-4-5","responseModel":"claude-opus-4-5-20251101",
    "responseId":"msg_01","providerThinkingLevel":"high","thinkingLevel":"high",
    "diagnostics":[{"type":"retry","timestamp":1,"error":{"message":"529","code":529}}],
    "usage":{"input":3,"output":41,"cacheRead":0,"cacheWrite":1200,"cacheWrite1h":1200,"reasoning":12,"totalTokens":1244,
      "cost":{"input":0.000015,"output":0.001025,"cacheRead":0,"cacheWrite":0.012,"total":0.01304,"currency":"USD"},
      "serviceTier":"standard"},
    "stopReason":"toolUse","rawStopReason":"tool_use","endTurn":false,"timestamp":1764500000002,"__proto__":{"polluted":true}},
  {"role":"toolResult","toolCallId":"toolu_1","toolName":"bash","content":[{"type":"text","text":"a\\nb"}],
    "details":{"exitCode":0,"truncation":null,"__proto__":1},"nestedCalls":{"calls":[],"complete":true},"isError":false,
    "timestamp":1764500000003,"durationMs":7},
  {"role":"assistant","content":[],"api":"openai-responses","provider":"openai","model":"gpt-5.2",
    "usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,
      "cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},
    "stopReason":"deferred","deferred":{"provider":"openai","modelId":"gpt-5.2","api":"openai-responses","id":"resp_1"},
    "errorMessage":"","timestamp":1764500000004},
  {"role":"bashExecution","command":"git status","output":"clean","exitCode":0,"timestamp":1764500000005,"__proto__":[]}
]`

describe("Messages", () => {
  describe("schemas", () => {
    it("I6 a stored pi transcript decodes and encodes without losing anything", () => {
      const json: unknown = JSON.parse(stored)
      const messages = decode(json)
      assert.deepStrictEqual<unknown>(messages, json)
      assert.deepStrictEqual<unknown>(encode(messages), json)
      assert.deepStrictEqual<unknown>(JSON.parse(JSON.stringify(encode(messages))), json)
    })

    it("I6 a key named __proto__ stays a key", () => {
      const messages = decode(JSON.parse(stored))
      const visit = (value: unknown): number => {
        if (typeof value !== "object" || value === null) return 0
        const expected = Array.isArray(value) ? Array.prototype : Object.prototype
        assert.strictEqual(Object.getPrototypeOf(value), expected)
        assert.isFalse("polluted" in value && !Object.hasOwn(value, "polluted"))
        const own = Object.hasOwn(value, "__proto__") ? 1 : 0
        return Object.entries(value).reduce((sum, [, child]) => sum + visit(child), own)
      }
      assert.strictEqual(visit(messages), 4)
    })

    it.prop("I6 whatever a transcript holds survives JSON", [Messages.Transcript], ([transcript]) => {
      const json: unknown = JSON.parse(JSON.stringify(encode(transcript)))
      const messages = decode(json)
      assert.deepStrictEqual<unknown>(messages, json)
      assert.deepStrictEqual<unknown>(encode(messages), json)
    }, { arbitrary: { runs: 60 } })

    it("I6 the JSON codec and JSON text read the same", () => {
      const json: unknown = JSON.parse(stored)
      const codec = Schema.toCodecJson(Messages.Transcript)
      assert.deepStrictEqual<unknown>(Schema.decodeUnknownSync(codec)(json), json)
      assert.deepStrictEqual<unknown>(Schema.encodeSync(codec)(decode(json)), json)
      assert.deepStrictEqual<unknown>(
        Schema.decodeUnknownSync(Schema.fromJsonString(Messages.Transcript))(stored),
        json
      )
    })

    it("absent optional fields stay absent", () => {
      const message = { role: "user", content: "hi", timestamp: 1 }
      assert.deepStrictEqual(Object.keys(decode([message])[0] ?? {}), ["role", "content", "timestamp"])
    })

    it("unknown values of a known field are refused, in known blocks and messages only", () => {
      assert.include(refusal([{ ...Messages.assistant("a"), stopReason: "tired" }]), `at [0]["stopReason"]`)
      assert.deepStrictEqual<unknown>(decode([{ role: "note", stopReason: "tired" }]), [{
        role: "note",
        stopReason: "tired"
      }])
      assert.include(refusal([{ ...Messages.user("a"), note: Number.NaN }]), `at [0]["note"]`)
      assert.include(refusal([{ role: "note", when: new Date(0) }]), `at [0]["when"]`)
      assert.include(String(Schema.decodeUnknownExit(Messages.Message)({ role: "note" })), "Failure")
    })

    it("an error names the message and the field, and nothing else", () => {
      const transcript = (message: unknown) => [Messages.user("fine"), message]
      const cases: ReadonlyArray<readonly [message: unknown, error: string]> = [
        [{ role: "user", content: 3, timestamp: 0 }, `Expected string | array\n  at [1]["content"]`],
        [{ role: "user", content: "hi" }, `Missing key\n  at [1]["timestamp"]`],
        [
          Messages.user([{ type: "text", text: "a" }, JSON.parse(`{"type":"text"}`)]),
          `Missing key
  at [1]["content"][1]["text"]`
        ],
        [
          { ...Messages.assistant([call("1")]), content: [{ ...call("1"), arguments: "{" }] },
          `Expected object
  at [1]["content"][0]["arguments"]`
        ],
        [
          { ...Messages.assistant("a"), usage: { ...Messages.emptyUsage, cost: { total: 1 } } },
          `Missing key
  at [1]["usage"]["cost"]["input"]`
        ],
        [
          Messages.system("", { sections: JSON.parse(`{"a":1}`) }),
          `Expected string | null
  at [1]["sections"]["a"]`
        ],
        [{ content: "hi" }, `Missing key\n  at [1]["role"]`],
        [{ role: 7 }, `Expected string\n  at [1]["role"]`],
        ["hi", `Expected object\n  at [1]`],
        [null, `Expected object\n  at [1]`]
      ]
      for (const [message, error] of cases) {
        const exit = Schema.decodeUnknownExit(Messages.Transcript)(transcript(message))
        assert.throws(() => decode(transcript(message)), error)
        assert.isTrue(Exit.isFailure(exit))
      }
      assert.throws(() => decode({}), "Expected array")
    })

    it("has a JSON Schema that names its parts", () => {
      const document = Schema.toJsonSchemaDocument(Messages.Transcript)
      for (const name of ["UserMessage", "AssistantMessage", "ToolCall", "Usage", "ToolDeclaration"]) {
        assert.property(document.definitions, name)
      }
    })

    it("argumentsText is kept beside empty arguments", () => {
      const malformed = { ...call("1"), argumentsText: `{"path": "a` }
      assert.deepStrictEqual(Messages.toolCalls(decode([Messages.assistant([malformed])])[0]!), [malformed])
    })
  })

  describe("usage", () => {
    it("adds every number; a part only one side tells is taken from there", () => {
      const usage: Messages.Usage = {
        input: 1,
        output: 2,
        cacheRead: 3,
        cacheWrite: 4,
        cacheWrite1h: 5,
        totalTokens: 10,
        cost: { input: 0.5, output: 0.25, cacheRead: 0.125, cacheWrite: 1, total: 1.875 }
      }
      assert.deepStrictEqual(Messages.addUsage(Messages.emptyUsage, usage), usage)
      assert.deepStrictEqual(Messages.addUsage(usage, Messages.emptyUsage), usage)
      assert.deepStrictEqual(Messages.addUsage({ ...usage, reasoning: 0 }, usage), {
        input: 2,
        output: 4,
        cacheRead: 6,
        cacheWrite: 8,
        cacheWrite1h: 10,
        reasoning: 0,
        totalTokens: 20,
        cost: { input: 1, output: 0.5, cacheRead: 0.25, cacheWrite: 2, total: 3.75 }
      })
    })

    it("emptyUsage cannot be changed by one of the messages that share it", () => {
      assert.isTrue(Object.isFrozen(Messages.emptyUsage) && Object.isFrozen(Messages.emptyUsage.cost))
    })
  })

  describe("constructors", () => {
    it("make messages without a time", () => {
      assert.deepStrictEqual(Messages.user("hi"), { role: "user", content: "hi", timestamp: 0 })
      assert.deepStrictEqual(Messages.user("hi", { timestamp: 7 }), { role: "user", content: "hi", timestamp: 7 })
      assert.deepStrictEqual(Messages.system("a", { toolsRemoved: [{ name: "x" }] }), {
        role: "system",
        content: "a",
        toolsRemoved: [{ name: "x" }],
        timestamp: 0
      })
      assert.deepStrictEqual(Messages.toolResult(call("1"), "done", { details: { a: 1 } }), {
        role: "toolResult",
        toolCallId: "1",
        toolName: "echo",
        content: [{ type: "text", text: "done" }],
        details: { a: 1 },
        isError: false,
        timestamp: 0
      })
    })

    it("assistant tells its stop reason from the content unless it is given", () => {
      assert.strictEqual(Messages.assistant("hi").stopReason, "stop")
      assert.deepStrictEqual(Messages.assistant("hi").content, [{ type: "text", text: "hi" }])
      assert.strictEqual(Messages.assistant([call("1")]).stopReason, "toolUse")
      assert.strictEqual(Messages.assistant([call("1")], { stopReason: "length" }).stopReason, "length")
      assert.strictEqual(Messages.assistant("hi", { model: "m" }).model, "m")
    })

    it("what they make decodes", () => {
      const messages = [
        Messages.system("a"),
        Messages.user([{ type: "image", data: "", mimeType: "image/png" }]),
        Messages.assistant([{ type: "thinking", thinking: "t" }, call("1")]),
        Messages.toolResult(call("1"), [])
      ]
      assert.deepStrictEqual<unknown>(decode(messages), messages)
    })

    it("S1 initialSystem carries prompt and tools, and is nothing when there are none", () => {
      const echo = tool("echo")
      assert.isUndefined(Messages.initialSystem(undefined, []))
      assert.isUndefined(Messages.initialSystem(""))
      assert.deepStrictEqual(Messages.initialSystem("Hi"), { role: "system", content: "Hi", timestamp: 0 })
      const executable = { ...echo, execute: () => "x" }
      assert.deepStrictEqual(Messages.initialSystem(undefined, [executable]), {
        role: "system",
        content: "",
        toolsAdded: [echo],
        timestamp: 0
      })
    })
  })

  describe("reading", () => {
    it("text joins the text blocks", () => {
      assert.strictEqual(Messages.text(Messages.user("hi")), "hi")
      assert.strictEqual(
        Messages.text(Messages.assistant([
          { type: "text", text: "a" },
          { type: "thinking", thinking: "no" },
          call("1"),
          { type: "text", text: "b" }
        ])),
        "a\nb"
      )
      assert.strictEqual(Messages.text(Messages.toolResult(call("1"), [])), "")
      assert.deepStrictEqual(
        decode([{ role: "x", content: [1, { type: "text" }] }, { role: "y" }]).map(Messages.text),
        [
          "",
          ""
        ]
      )
    })

    it("toolCalls are those of assistant messages, in order", () => {
      const message = Messages.assistant([call("1"), { type: "text", text: "" }, call("2")])
      assert.deepStrictEqual(Messages.toolCalls(message).map((call) => call.id), ["1", "2"])
      assert.deepStrictEqual(Messages.toolCalls(Messages.user("hi")), [])
    })

    it("isMessage tells the model's messages from the host's", () => {
      assert.deepStrictEqual(decode(JSON.parse(stored)).map(Messages.isMessage), [true, true, true, true, true, false])
    })
  })

  describe("keepLast", () => {
    const S1 = Messages.system("one")
    const S2 = Messages.system("two")
    const U1 = Messages.user("1")
    const A1 = Messages.assistant([call("a"), call("b")])
    const Ra = Messages.toolResult(call("a"), "a")
    const Rb = Messages.toolResult(call("b"), "b")
    const U2 = Messages.user("2")
    const transcript = [S1, U1, A1, Ra, S2, Rb, U2]

    const keeps = (n: number, expected: ReadonlyArray<Messages.AgentMessage>, messages = transcript) =>
      assert.deepStrictEqual(Messages.keepLast(messages, n), expected)

    it("keeps every system message in place and the last n others", () => {
      keeps(0, [S1, S2])
      keeps(-1, [S1, S2])
      keeps(1, [S1, S2, U2])
      keeps(4, [S1, A1, Ra, S2, Rb, U2])
      keeps(5, transcript)
      assert.strictEqual(Messages.keepLast(transcript, 6), transcript)
      keeps(3, [], [])
    })

    it("leaves out a result whose call was cut away", () => {
      keeps(2, [S1, S2, U2])
      keeps(3, [S1, S2, U2])
    })

    it("an id that is used again belongs to the call before it", () => {
      const again = Messages.assistant([call("a")])
      const result = Messages.toolResult(call("a"), "again")
      keeps(2, [again, result], [A1, Ra, Rb, again, result])
      keeps(4, [again, result], [A1, Ra, Rb, again, result])
    })

    it("leaves a result that never had a call to whoever repairs the transcript", () => {
      keeps(2, [Rb, U2], [U1, Rb, U2])
      keeps(2, [Rb, A1], [U1, Rb, A1])
    })
  })

  describe("replay", () => {
    const echo = tool("echo")
    const read = tool("read", { type: "object", properties: { path: { type: "string" }, limit: { type: "number" } } })

    it("S1 prompt and tools are those of the system messages, applied in order", () => {
      const messages = [
        Messages.system([{ type: "text", text: "Be" }, { type: "text", text: "brief." }], {
          sections: { date: "Monday", place: "here", gone: "x" },
          toolsAdded: [echo, read],
          timestamp: 5
        }),
        Messages.user("not a prompt"),
        Messages.system("", { sections: { date: "Tuesday", gone: null } }),
        Messages.system("Now in verse.", { toolsRemoved: [{ name: "echo" }, { name: "nobody" }], timestamp: 9 })
      ]
      assert.deepStrictEqual(Messages.systemMessage(messages), {
        role: "system",
        content: "Be\nbrief.\n\nNow in verse.",
        sections: { date: "Tuesday", place: "here" },
        toolsAdded: [read],
        timestamp: 5
      })
      assert.strictEqual(Messages.systemPrompt(messages), "Be\nbrief.\n\nNow in verse.\n\nTuesday\n\nhere")
      assert.deepStrictEqual(Messages.declaredTools(messages), [read])
      assert.isUndefined(Messages.systemMessage([Messages.user("hi")]))
      assert.strictEqual(Messages.systemPrompt([]), "")
      assert.deepStrictEqual(Messages.declaredTools([]), [])
    })

    it("S3 in one message removals come before additions", () => {
      const changed = { ...echo, description: "changed" }
      assert.deepStrictEqual(
        Messages.declaredTools([
          Messages.system("", { toolsAdded: [echo, read] }),
          Messages.system("", { toolsRemoved: [{ name: "echo" }], toolsAdded: [changed] })
        ]),
        [read, changed]
      )
      assert.deepStrictEqual(
        Messages.declaredTools([
          Messages.system("", { toolsAdded: [echo, read] }),
          Messages.system("", { toolsAdded: [changed] })
        ]),
        [changed, read]
      )
    })

    // Names, sections and texts from small sets, so that removals and replacements meet what was there before.
    const Change = Schema.Struct({
      content: Schema.Literals(["", "a", "b"]),
      sections: Schema.optionalKey(
        Schema.Record(Schema.Literals(["s", "t", "7"]), Schema.NullOr(Schema.Literals(["", "x", "y"])))
      ),
      toolsRemoved: Schema.optionalKey(Schema.Array(Schema.Struct({ name: Schema.Literals(["p", "q", "r"]) }))),
      toolsAdded: Schema.optionalKey(Schema.Array(Schema.Struct({
        name: Schema.Literals(["p", "q", "r"]),
        description: Schema.Literals(["old", "new"]),
        parameters: Schema.Struct({ type: Schema.Literal("object") })
      }))),
      timestamp: Schema.Literals([0, 1, 2])
    })
    const Changes = Schema.Array(Schema.Union([Change, Schema.Literal("user")]))

    it.prop("S1 replay gives what pi's gives, and a Replay fed one by one gives the same", [Changes], ([changes]) => {
      const replay = new Replay()
      const messages: Array<Messages.Message> = []
      for (const change of changes) {
        const message: Messages.Message = change === "user" ? Messages.user("hi") : { role: "system", ...change }
        const before = { version: replay.version, tools: replay.declaredTools() }
        messages.push(message)
        replay.add(message)
        const piMessages: Array<Pi.Message> = JSON.parse(JSON.stringify(messages))
        const expected = Pi.getCurrentSystemMessage(piMessages)
        assert.deepStrictEqual<unknown>(Messages.systemMessage(messages), expected)
        assert.deepStrictEqual<unknown>(replay.systemMessage(), expected)
        assert.strictEqual(Messages.systemPrompt(messages), Pi.getCurrentSystemPrompt(piMessages))
        assert.strictEqual(replay.systemPrompt(), Pi.getCurrentSystemPrompt(piMessages))
        assert.deepStrictEqual<unknown>(replay.declaredTools(), Pi.getCurrentTools(piMessages))
        assert.deepStrictEqual(Messages.declaredTools(messages), replay.declaredTools())
        if (replay.version === before.version) assert.strictEqual(replay.declaredTools(), before.tools)
      }
    })

    it("S1 a Replay answers from what it has until a system message comes", () => {
      const replay = new Replay([Messages.system("a", { toolsAdded: [echo] })])
      const { version } = replay
      const tools = replay.declaredTools()
      const message = replay.systemMessage()
      replay.add(Messages.user("hi"))
      replay.add(Messages.assistant("hi"))
      assert.strictEqual(replay.declaredTools(), tools)
      assert.strictEqual(replay.systemMessage(), message)
      replay.add(Messages.system("b"))
      replay.add(Messages.system("c", { toolsAdded: [], toolsRemoved: [] }))
      assert.strictEqual(replay.version, version)
      assert.strictEqual(replay.systemPrompt(), "a\n\nb\n\nc")
      replay.add(Messages.system("", { toolsRemoved: [{ name: "echo" }] }))
      assert.isAbove(replay.version, version)
      assert.deepStrictEqual(replay.declaredTools(), [])
      assert.deepStrictEqual(tools, [echo], "what was handed out does not change")
    })

    it("a fork goes its own way", () => {
      const replay = new Replay([Messages.system("a", { sections: { s: "x" }, toolsAdded: [echo] })])
      const prompt = replay.systemPrompt()
      const fork = replay.fork()
      assert.strictEqual(fork.systemPrompt(), prompt)
      fork.add(Messages.system("b", { sections: { s: null }, toolsAdded: [read] }))
      assert.deepStrictEqual(fork.declaredTools(), [echo, read])
      assert.strictEqual(fork.systemPrompt(), "a\n\nb")
      assert.isAbove(fork.version, replay.version)
      const third = tool("third")
      replay.add(Messages.system("", { toolsAdded: [third] }))
      assert.strictEqual(replay.systemPrompt(), "a\n\nx")
      assert.deepStrictEqual(replay.declaredTools(), [echo, third])
    })
  })

  describe("toolChanges", () => {
    const none = { toolsAdded: [], toolsRemoved: [] }
    const a = tool("a", { type: "object", properties: { x: { type: "string" }, y: { enum: [1, null, { z: 1 }] } } })
    const b = tool("b")

    it("S3 the order of keys and of tools is not a change", () => {
      const reordered: Messages.ToolDeclaration = {
        parameters: { properties: { y: { enum: [1, null, { z: 1 }] }, x: { type: "string" } }, type: "object" },
        description: a.description,
        name: "a"
      }
      assert.deepStrictEqual(Messages.toolChanges([a], [reordered]), none)
      assert.deepStrictEqual(Messages.toolChanges([a, b], [b, reordered]), none)
      assert.deepStrictEqual(Messages.toolChanges([], []), none)
    })

    it("S3 a changed definition is a removal and an addition", () => {
      const variants: ReadonlyArray<Messages.ToolDeclaration> = [
        { ...a, description: "other" },
        { ...a, constrainedSampling: false },
        { ...a, parameters: { type: "object" } },
        { ...a, parameters: { ...a.parameters, extra: 1 } },
        { ...a, parameters: { type: "object", properties: { x: { type: "string" }, z: { enum: [] } } } },
        { ...a, parameters: { type: "object", properties: { x: { type: "string" }, y: { enum: [1, null] } } } },
        {
          ...a,
          parameters: { type: "object", properties: { x: { type: "string" }, y: { enum: [null, 1, { z: 1 }] } } }
        },
        { ...a, parameters: { type: "object", properties: { x: { type: "string" }, y: { enum: { 0: 1 } } } } },
        { ...a, parameters: { type: "object", properties: { x: null, y: { enum: [1, null, { z: 1 }] } } } }
      ]
      for (const changed of variants) {
        assert.deepStrictEqual(Messages.toolChanges([a, b], [changed, b]), {
          toolsAdded: [changed],
          toolsRemoved: [{ name: "a" }]
        })
        assert.deepStrictEqual(Messages.toolChanges([changed], [a]), { toolsAdded: [a], toolsRemoved: [{ name: "a" }] })
      }
      const differ = (left: string, right: string) => {
        const parse = (parameters: string): Messages.ToolDeclaration => tool("p", JSON.parse(parameters))
        assert.deepStrictEqual(Messages.toolChanges([parse(left)], [parse(right)]).toolsRemoved, [{ name: "p" }])
        assert.deepStrictEqual(Messages.toolChanges([parse(right)], [parse(left)]).toolsRemoved, [{ name: "p" }])
        assert.deepStrictEqual(Messages.toolChanges([parse(left)], [parse(left)]), none)
      }
      differ(`{"__proto__":{}}`, `{}`)
      differ(`{"__proto__":{}}`, `{"a":{}}`)
      differ(`{"enum":[]}`, `{"enum":{"length":0}}`)
      differ(`{"enum":[]}`, `{"enum":{}}`)
      differ(`{"enum":null}`, `{"enum":{}}`)
      differ(`{"enum":"1"}`, `{"enum":1}`)
    })

    it("S3 a renamed tool is another tool", () => {
      assert.deepStrictEqual(Messages.toolChanges([a], [{ ...a, name: "c" }]), {
        toolsAdded: [{ ...a, name: "c" }],
        toolsRemoved: [{ name: "a" }]
      })
    })

    it("S2 executable tools are declared without what only the runtime needs, others as they are", () => {
      const executable = { ...a, constrainedSampling: false, execute: () => "x", timeout: 1 }
      const { toolsAdded } = Messages.toolChanges([], [executable, b])
      assert.deepStrictEqual(toolsAdded, [{ ...a, constrainedSampling: false }, b])
      assert.strictEqual(toolsAdded[1], b)
      assert.deepStrictEqual(Messages.toolChanges(toolsAdded, [executable, b]), none)
    })

    const Tools = Schema.Array(Schema.Struct({
      description: Schema.Literals(["old", "new"]),
      parameters: Schema.Struct({ type: Schema.Literals(["object", "null"]) })
    })).check(Schema.isMaxLength(4))

    it.prop(
      "S3 replaying the changes yields exactly the executable tools, as pi's changes do",
      [Tools, Tools, Schema.Boolean],
      ([before, after, reversed]) => {
        const named = (tools: typeof Tools.Type) => tools.map((tool, index) => ({ name: `t${index}`, ...tool }))
        const declared = named(before)
        const executable = reversed ? named(after).toReversed() : named(after)
        const changes = Messages.toolChanges(declared, executable)
        assert.deepStrictEqual<unknown>(changes, Pi.getToolStateChanges(declared, executable))
        const replayed = Messages.declaredTools([
          Messages.system("", { toolsAdded: declared }),
          Messages.system("", changes)
        ])
        const sorted = (tools: ReadonlyArray<Messages.ToolDeclaration>) =>
          tools.toSorted((left, right) => left.name.localeCompare(right.name))
        assert.deepStrictEqual(sorted(replayed), sorted(executable))
      }
    )
  })
})
