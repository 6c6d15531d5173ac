/** The body of a request, without a network. */
import { assert, describe, it } from "@effect/vitest"
import { Messages, type StreamFn } from "../../src/index.ts"
import { jsonText } from "../../src/internal/openai/jsonText.ts"
import { payloadOf } from "../../src/internal/openai/payload.ts"
import { readSettings } from "../../src/internal/openai/settings.ts"
import { OpenAi } from "../../src/openai/index.ts"
import { request } from "./ask.ts"

const openAi = "https://api.openai.com/v1"

const local = "http://127.0.0.1:1/v1"

const payload = (fields: Partial<StreamFn.StreamRequest>, baseUrl = local) => {
  const asked = request(fields)
  return payloadOf(asked, readSettings(asked.model, baseUrl))
}

const messages = (messages: ReadonlyArray<Messages.Message>, fields: OpenAi.ModelFields = {}) =>
  payload({ messages, model: OpenAi.model("test-model", fields) })["messages"]

const call = (id: string, args: Messages.JsonObject = {}, name = "t"): Messages.ToolCall => ({
  type: "toolCall",
  id,
  name,
  arguments: args
})

const calling = (...calls: ReadonlyArray<Messages.ToolCall>) => Messages.assistant(calls, own)

const own = { api: "openai-completions", provider: "openai", model: "test-model" }

const sent = (id: string, args = "{}", name = "t") => ({ id, type: "function", function: { name, arguments: args } })

const image: Messages.ImageContent = { type: "image", data: "AAAA", mimeType: "image/png" }

const imagePart = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }

const tool: Messages.ToolDeclaration = { name: "t", description: "A tool.", parameters: { type: "object" } }

describe("Messages", () => {
  it("a conversation", () => {
    const a = call("a", { x: 1 })
    assert.deepStrictEqual(
      messages([
        Messages.system("Be brief.", { sections: { date: "Monday" } }),
        Messages.user("hi"),
        Messages.assistant([{ type: "text", text: "let me " }, { type: "text", text: "see" }, a], own),
        Messages.toolResult(a, "7"),
        Messages.assistant("seven", own)
      ]),
      [
        { role: "system", content: "Be brief.\n\nMonday" },
        { role: "user", content: "hi" },
        { role: "assistant", content: "let me see", tool_calls: [sent("a", "{\"x\":1}")] },
        { role: "tool", tool_call_id: "a", content: "7" },
        { role: "assistant", content: "seven" }
      ]
    )
  })

  it("S1: later system messages go into the first, unless the server takes them where they stand", () => {
    const conversation = [
      Messages.system("Be brief.", { sections: { date: "Monday", place: "Oslo" } }),
      Messages.user("hi"),
      Messages.system("Answer in verse.", { sections: { date: "Tuesday", place: null } }),
      Messages.system("", { toolsAdded: [tool] })
    ]
    assert.deepStrictEqual(messages(conversation), [
      { role: "system", content: "Be brief.\n\nAnswer in verse.\n\nTuesday" },
      { role: "user", content: "hi" }
    ])
    assert.deepStrictEqual(messages(conversation, { compat: { supportsMidConvoSystemMessages: true } }), [
      { role: "system", content: "Be brief.\n\nMonday\n\nOslo" },
      { role: "user", content: "hi" },
      {
        role: "system",
        content: "Answer in verse.\n\nThe section \"date\" of the instructions is now:\n\nTuesday\n\n" +
          "The section \"place\" of the instructions no longer applies."
      }
    ])
  })

  it("M1: nothing empty is sent, and no call without its result", () => {
    const [a, b] = [call("a"), call("b")]
    assert.deepStrictEqual(
      messages([
        Messages.user(""),
        Messages.user([{ type: "text", text: "" }]),
        Messages.assistant([], own),
        Messages.assistant([{ type: "thinking", thinking: "hm", thinkingSignature: "reasoning" }], own),
        Messages.assistant("  ", own),
        calling(a, b),
        Messages.toolResult(b, []),
        Messages.toolResult(call("c"), "orphan"),
        Messages.assistant([a], { ...own, stopReason: "aborted" })
      ]),
      [
        { role: "assistant", content: null, tool_calls: [sent("b")] },
        { role: "tool", tool_call_id: "b", content: "(no output)" }
      ]
    )
  })

  it("images go to the model as parts; those of results behind the last of them", () => {
    const [a, b] = [call("a"), call("b")]
    const conversation = [
      Messages.user([{ type: "text", text: "look" }, image, { type: "text", text: "" }]),
      calling(a, b),
      Messages.toolResult(a, [image]),
      Messages.toolResult(b, [{ type: "text", text: "x" }, image]),
      Messages.user("and?")
    ]
    const asked = { role: "assistant", content: null, tool_calls: [sent("a"), sent("b")] }
    assert.deepStrictEqual(messages(conversation), [
      { role: "user", content: [{ type: "text", text: "look" }, imagePart] },
      asked,
      { role: "tool", tool_call_id: "a", content: "(the image follows)" },
      { role: "tool", tool_call_id: "b", content: "x" },
      { role: "user", content: [{ type: "text", text: "The images that the tools returned:" }, imagePart, imagePart] },
      { role: "user", content: "and?" }
    ])
    const leftOut = "(an image was left out: the model takes text only)"
    assert.deepStrictEqual(messages(conversation, { input: ["text"] }), [
      { role: "user", content: `look\n${leftOut}\n` },
      asked,
      { role: "tool", tool_call_id: "a", content: leftOut },
      { role: "tool", tool_call_id: "b", content: `x\n${leftOut}` },
      { role: "user", content: "and?" }
    ])
  })

  it("ids are those that servers take, unique, and the same in call and result", () => {
    const long = "call_".padEnd(450, "x|+/")
    const odd = [call("a|b"), call("a b"), call(long), call(`${long}y`), call(""), call("fine")]
    const body = JSON.stringify(messages([
      calling(...odd),
      ...odd.map((each) => Messages.toolResult(each, each.id)),
      calling(call("fine"), call("fine")),
      Messages.toolResult(call("fine"), "first"),
      Messages.toolResult(call("fine"), "second")
    ]))
    const ids = Array.from(body.matchAll(/"id":"([^"]*)"/g), (match) => match[1]!)
    const results = Array.from(body.matchAll(/"tool_call_id":"([^"]*)"/g), (match) => match[1]!)
    assert.deepStrictEqual(ids, results, "in the same order")
    assert.strictEqual(new Set(ids).size, 8)
    for (const id of ids) assert.match(id, /^[\w-]{1,40}$/)
    assert.deepStrictEqual([ids[0], ids[1], ids[4], ids[5], ids[6], ids[7]], [
      "a_b",
      "a_b_2",
      "call",
      "fine",
      "fine_2",
      "fine_3"
    ])
    assert.match(body, /"tool_call_id":"fine_2","content":"first"/)
  })

  it("ids of a longer conversation repeat those of the shorter one", () => {
    const turn = [calling(call("a")), Messages.toolResult(call("a"), "1")]
    const short = messages(turn)
    const long = messages([...turn, ...turn]) as unknown
    assert.deepStrictEqual(Array.isArray(long) ? long.slice(0, 2) : long, short)
  })

  it("arguments are always the JSON of an object", () => {
    const broken: Messages.ToolCall = { ...call("a"), argumentsText: "{\"x\":" }
    assert.include(
      JSON.stringify(messages([calling(broken), Messages.toolResult(broken, "no")])),
      "\"arguments\":\"{}\""
    )
  })

  it("thinking goes back to the model it came from, in the form it came in", () => {
    const thinking = (text: string, thinkingSignature?: string): Messages.ThinkingContent => ({
      type: "thinking",
      thinking: text,
      ...(thinkingSignature !== undefined && { thinkingSignature })
    })
    const said: Messages.TextContent = { type: "text", text: "x" }
    const details = [{ type: "reasoning.encrypted", data: "e" }]
    const fields = (...blocks: ReadonlyArray<Messages.ThinkingContent>) =>
      messages([Messages.assistant([...blocks, said], own)])
    const expected = (more: object) => [{ role: "assistant", content: "x", ...more }]
    assert.deepStrictEqual(fields(thinking("a", "reasoning_content")), expected({ reasoning_content: "a" }))
    assert.deepStrictEqual(
      fields(thinking("a", "reasoning"), thinking("b", "reasoning")),
      expected({ reasoning: "a\nb" })
    )
    assert.deepStrictEqual(fields(thinking("a", JSON.stringify(details))), expected({ reasoning_details: details }))
    for (const signature of [undefined, "", "encrypted", "[1]", "[", "{}"]) {
      assert.deepStrictEqual(fields(thinking("a", signature)), expected({}))
    }
    const other = { ...own, model: "other-model" }
    assert.deepStrictEqual(
      messages([Messages.assistant([thinking("a", "reasoning"), { ...thinking("b"), redacted: true }, said], other)]),
      [{ role: "assistant", content: "a\n\nx" }]
    )
  })
})

describe("The body", () => {
  it("tools, and that none must be called", () => {
    const declared = [Messages.system("", { toolsAdded: [tool] }), Messages.user("hi")]
    const wire = [{ type: "function", function: { name: "t", description: "A tool.", parameters: { type: "object" } } }]
    assert.deepInclude(payload({ messages: declared }), { tools: wire })
    assert.notProperty(payload({ messages: declared }), "tool_choice")
    assert.deepInclude(payload({ messages: declared, toolChoice: "none" }), { tools: wire, tool_choice: "none" })
    const without = payload({ toolChoice: "none" })
    assert.notProperty(without, "tools")
    assert.notProperty(without, "tool_choice")
  })

  const effort = (thinkingLevel: Messages.ThinkingLevel, fields: OpenAi.ModelFields = {}, baseUrl = local) => {
    const { reasoning, reasoning_effort } = payload({
      thinkingLevel,
      model: OpenAi.model("test-model", fields),
      thinkingBudgets: { high: 9000 }
    }, baseUrl)
    return reasoning_effort ?? reasoning
  }

  it("the thinking level as effort", () => {
    assert.deepStrictEqual(
      (["off", "minimal", "low", "medium", "high", "xhigh", "max"] as const).map((level) => effort(level)),
      [undefined, "minimal", "low", "medium", "high", "high", "high"]
    )
    assert.isUndefined(effort("high", { reasoning: false }))
    assert.isUndefined(effort("high", { compat: { supportsReasoningEffort: false } }))
  })

  it("the thinking level in the model's own words", () => {
    const thinkingLevelMap = { off: "none", minimal: null, low: null, medium: "mid", xhigh: "extra" }
    assert.deepStrictEqual(
      (["off", "minimal", "low", "medium", "high", "xhigh", "max"] as const).map((level) =>
        effort(level, { thinkingLevelMap })
      ),
      ["none", "mid", "mid", "mid", "high", "extra", "extra"]
    )
  })

  it("a model that cannot do without thinking is not told to, and one without levels is told nothing", () => {
    assert.isUndefined(effort("off", { thinkingLevelMap: { off: null } }))
    const none = { minimal: null, low: null, medium: null, high: null }
    assert.isUndefined(effort("low", { thinkingLevelMap: none }))
  })

  it("the thinking level for OpenRouter", () => {
    const openRouter = "https://openrouter.ai/api/v1"
    assert.isUndefined(effort("off", {}, openRouter))
    assert.deepStrictEqual(effort("low", {}, openRouter), { effort: "low" })
    assert.deepStrictEqual(effort("high", {}, openRouter), { max_tokens: 9000 })
    assert.deepStrictEqual(effort("low", { compat: { thinkingFormat: "openrouter" } }), { effort: "low" })
    assert.strictEqual(effort("low", { compat: { thinkingFormat: "openai" } }, openRouter), "low")
  })

  it("the thinking budget, where the server has a field for it", () => {
    const budgeted = OpenAi.model("test-model", { compat: { thinkingTokenBudgetField: "thinking_budget" } })
    const thinkingBudgets = { high: 9000 }
    assert.strictEqual(payload({ thinkingLevel: "high", model: budgeted, thinkingBudgets })["thinking_budget"], 9000)
    assert.notProperty(payload({ thinkingLevel: "low", model: budgeted, thinkingBudgets }), "thinking_budget")
    assert.notProperty(payload({ thinkingLevel: "off", model: budgeted, thinkingBudgets }), "thinking_budget")
    assert.notProperty(payload({ thinkingLevel: "high", thinkingBudgets }), "thinking_budget")
  })

  it("the length of an answer, in the field that the server knows", () => {
    const bounded = OpenAi.model("test-model", { maxTokens: 100 })
    assert.deepInclude(payload({ model: bounded }), { max_tokens: 100 })
    assert.deepInclude(payload({ model: bounded }, openAi), { max_completion_tokens: 100 })
    const told = OpenAi.model("m", { maxTokens: 100, compat: { maxTokensField: "max_completion_tokens" } })
    assert.deepInclude(payload({ model: told }), { max_completion_tokens: 100 })
    assert.notProperty(payload({}), "max_tokens")
  })

  it("the session, for OpenAI", () => {
    assert.strictEqual(payload({ sessionId: "🙈".repeat(70) }, openAi)["prompt_cache_key"], "🙈".repeat(64))
    assert.notProperty(payload({ sessionId: "s" }), "prompt_cache_key")
  })

  it("metadata, as texts", () => {
    const metadata = { user: "u", n: 1, list: [1], none: null, f: () => 1 }
    assert.deepStrictEqual(payload({ metadata })["metadata"], { user: "u", n: "1", list: "[1]" })
  })

  it("no usage where the server does not know the option", () => {
    const old = OpenAi.model("test-model", { compat: { supportsUsageInStreaming: false } })
    assert.notProperty(payload({ model: old }), "stream_options")
  })

  it("T9: is well-formed Unicode, in arguments, keys and schemas too", () => {
    const lone = "a\uD83Db\uDE48"
    const each = call("a", { [lone]: lone, escaped: "\\ud83d", emoji: "🙈", twice: "\uD83D\uD83D" }, lone)
    const body = jsonText(payload({
      messages: [
        Messages.system(lone, { toolsAdded: [{ ...tool, description: lone, parameters: { [lone]: {} } }] }),
        Messages.user(lone),
        calling(each),
        Messages.toolResult(each, lone)
      ]
    }))
    assert.isTrue(body.isWellFormed())
    // What is still an escape must be the text of one: read twice it is what it was.
    const parsed = JSON.parse(body)
    assert.isTrue(JSON.stringify(parsed).isWellFormed())
    const args = JSON.parse(parsed.messages[2].tool_calls[0].function.arguments)
    assert.deepStrictEqual(args, {
      "a\uFFFDb\uFFFD": "a\uFFFDb\uFFFD",
      escaped: "\\ud83d",
      emoji: "🙈",
      twice: "\uFFFD\uFFFD"
    })
    assert.strictEqual(parsed.messages[1].content, "a\uFFFDb\uFFFD")
  })
})
