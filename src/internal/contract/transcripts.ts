/**
 * Conversations that a request has to be made of (M1): stored by others, aborted, cut in two, made by another model. They
 * are given as they are stored, not as the loop would normalise them: whoever calls a `StreamFn` need not be the loop.
 */
import {
  assistant,
  type ImageContent,
  type Message,
  system,
  type ToolCall,
  toolResult,
  type ToolResultMessage,
  user
} from "../../Messages.ts"
import { instructions } from "./ask.ts"

export interface Conversation {
  readonly name: string
  readonly messages: ReadonlyArray<Message>
  /** What the request must say, and what it must not. */
  readonly says?: ReadonlyArray<string>
  readonly omits?: ReadonlyArray<string>
}

const call = (id: string, path = "a.md"): ToolCall => ({ type: "toolCall", id, name: "read_file", arguments: { path } })

const result = (id: string, content: string | ToolResultMessage["content"] = "found"): ToolResultMessage =>
  toolResult(call(id), content)

const image: ImageContent = {
  type: "image",
  mimeType: "image/png",
  data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
}

const goOn = user("go on")

const half = "half \ud83d of it"

const foreign = `call_${"x".repeat(60)}|fc_1/ü:ab`

const other = { api: "anthropic-messages", provider: "other", model: "other-model" } as const

/** Behind the instructions, and with a last word of the user. */
const conversation = (
  name: string,
  messages: ReadonlyArray<Message>,
  more: Pick<Conversation, "says" | "omits"> = {}
): Conversation => ({
  name: `M1: ${name}`,
  messages: [instructions, user("hi"), ...messages, goOn],
  ...more,
  says: ["go on", ...more.says ?? []]
})

export const conversations: ReadonlyArray<Conversation> = [
  conversation("a call and its result", [assistant([{ type: "text", text: "I look." }, call("a")]), result("a")], {
    says: ["Be brief.", "I look.", "found"]
  }),
  conversation("a call without a result", [assistant([call("a")])]),
  conversation("one of two calls without a result", [assistant([call("a"), call("b")]), result("b")], {
    says: ["found"]
  }),
  conversation("a result without a call", [result("a")]),
  conversation("a result that stands behind another message", [assistant([call("a")]), user("wait"), result("a")]),
  conversation("results in another order than their calls", [
    assistant([call("a"), call("b")]),
    result("b"),
    result("a")
  ]),
  conversation("a message with nothing in it", [assistant([])]),
  conversation("a message with an empty text", [assistant([{ type: "text", text: "" }]), user("hello?")]),
  conversation("an empty thought", [assistant([{ type: "thinking", thinking: "" }])]),
  conversation("a call behind an empty text", [assistant([{ type: "text", text: "" }, call("a")]), result("a")]),
  conversation("a question with nothing in it", [user(""), user([])]),
  conversation("an empty result", [assistant([call("a"), call("b")]), result("a", []), result("b", "")]),
  conversation("ids with other characters", [
    assistant([call("a|b/ü:1"), call("a|b/ü:2")], other),
    result("a|b/ü:1", "first"),
    result("a|b/ü:2", "second")
  ], { says: ["first", "second"] }),
  conversation("ids that differ in other characters alone", [
    assistant([call("a:1"), call("a/1")], other),
    result("a:1", "first"),
    result("a/1", "second")
  ], { says: ["first", "second"] }),
  conversation("ids of another provider, too long and with other characters", [
    assistant([call(foreign), call(`${foreign}2`)], other),
    result(foreign, "first"),
    result(`${foreign}2`, "second")
  ], { says: ["first", "second"] }),
  conversation("one id in two turns", [
    assistant([call("a")]),
    result("a", "first"),
    assistant([call("a")]),
    result("a", "second")
  ], {
    says: ["first", "second"]
  }),
  conversation("half a character in a question", [user(half)]),
  conversation("half a character in an answer", [assistant(half), user("what?")]),
  conversation("half a character in a result", [assistant([call("a")]), result("a", half)]),
  conversation("half a character in arguments", [assistant([call("a", half)]), result("a")]),
  conversation("half a character in the instructions", [system(half)]),
  conversation("an image in a question", [user([{ type: "text", text: "see" }, image])], { says: [image.data] }),
  conversation("an image alone", [user([image])], { says: [image.data] }),
  conversation("an image in a result", [assistant([call("a")]), result("a", [{ type: "text", text: "this" }, image])], {
    says: ["this"]
  }),
  conversation("results that are images alone", [
    assistant([call("a"), call("b")]),
    result("a", [image]),
    result("b", [image])
  ]),
  conversation("a thought of another provider", [
    assistant([{ type: "thinking", thinking: "Hm.", thinkingSignature: "secret-signature" }, {
      type: "text",
      text: "Yes."
    }], other)
  ], { says: ["Yes."], omits: ["secret-signature"] }),
  conversation("a thought of another provider that is encrypted", [
    assistant([
      { type: "thinking", thinking: "", thinkingSignature: "secret-signature", redacted: true },
      { type: "text", text: "Yes." }
    ], other)
  ], { says: ["Yes."], omits: ["secret-signature"] }),
  conversation("an answer that was aborted, with a call that never ran", [
    assistant([{ type: "text", text: "I begin" }, call("a")], {
      stopReason: "aborted",
      errorMessage: "Request was aborted"
    })
  ]),
  conversation("an answer that failed before it began", [
    assistant([], { stopReason: "error", errorMessage: "503 overloaded" })
  ], { omits: ["503 overloaded"] }),
  conversation("an answer that was stored before it was finished", [assistant([call("a")], { stopReason: "pending" })]),
  conversation("an instruction in the middle", [assistant("Hello."), system("Be rude.")], { says: ["Be rude."] })
]
