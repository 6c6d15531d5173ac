/** What is wrong with the body of a request, in words. */
import { assert, describe, it } from "@effect/vitest"
import { StreamFnContract } from "../../src/testing/index.ts"

describe("requestDefects", () => {
  const call = (id: string, args = "{}") => ({ id, type: "function", function: { name: "read_file", arguments: args } })
  const ask = { role: "user", content: "hi" }
  const calling = (...tool_calls: ReadonlyArray<object>) => ({ role: "assistant", content: null, tool_calls })
  const result = (id: string) => ({ role: "tool", tool_call_id: id, content: "found" })
  const tool = (name: string, parameters: unknown = { type: "object" }) => ({
    type: "function",
    function: { name, parameters }
  })

  it("finds nothing in a request that servers take", () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }
    assert.deepStrictEqual(
      StreamFnContract.requestDefects({
        model: "m",
        stream: true,
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: [{ type: "text", text: "see" }, image] },
          calling(call("a"), call("b")),
          result("b"),
          result("a"),
          { role: "assistant", content: "Yes." }
        ],
        tools: [tool("read_file")],
        tool_choice: "none"
      }),
      []
    )
  })

  const table: ReadonlyArray<readonly [messages: ReadonlyArray<unknown>, says: string]> = [
    [[], "`messages` is empty"],
    [[5], "is no object"],
    [[{ role: "robot", content: "hi" }], "has the role \"robot\""],
    [[{ role: "user", content: "" }], "is empty"],
    [[{ role: "user", content: [{ type: "text", text: "" }] }], "an empty or unknown part"],
    [
      [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64," } }] }],
      "unknown part"
    ],
    [[{ role: "assistant", content: null }], "is empty"],
    [[ask, calling()], "an empty list of calls"],
    [[ask, result("a")], "no call right before it"],
    [[ask, calling(call("a"))], "is missing at the end"],
    [[ask, calling(call("a")), ask, result("a")], "where the result of \"a\" is missing"],
    [[ask, calling(call("a")), result("a"), result("a")], "no call right before it"],
    [[ask, calling(call("a"), call("a")), result("a")], "two calls with the id a"],
    [[ask, calling(call("a|b")), result("a|b")], "the unsafe id \"a|b\""],
    [[ask, calling(call("a", "{\"x\":")), result("a")], "no JSON object"],
    [[ask, calling(call("a", "[]")), result("a")], "no JSON object"],
    [[ask, calling(call("a", "{\"x\":\"\\ud83d\"}")), result("a")], "half a character"],
    [[{ role: "user", content: "half \ud83d of it" }], "the body.messages[0].content has half a character in it"]
  ]
  for (const [messages, says] of table) {
    it(`finds: ${says}, in ${JSON.stringify(messages).slice(0, 80)}`, () => {
      assert.include(StreamFnContract.requestDefects({ model: "m", stream: true, messages }).join("; "), says)
    })
  }

  it("finds what is wrong beside the messages", () => {
    const messages = [ask]
    const bodies: ReadonlyArray<readonly [body: unknown, says: string]> = [
      [undefined, "no JSON object"],
      [{ stream: true, messages }, "`model`"],
      [{ model: "m", messages }, "`stream`"],
      [{ model: "m", stream: true, messages, tools: [] }, "`tools` is empty"],
      [{ model: "m", stream: true, messages, tool_choice: "none" }, "without `tools`"],
      [{ model: "m", stream: true, messages, tools: [tool("a b")] }, "unsafe name"],
      [{ model: "m", stream: true, messages, tools: [tool("a"), tool("a")] }, "another tool has"],
      [{ model: "m", stream: true, messages, tools: [tool("a", {})] }, "parameters that are no object"]
    ]
    for (const [body, says] of bodies) assert.include(StreamFnContract.requestDefects(body).join("; "), says)
  })
})
