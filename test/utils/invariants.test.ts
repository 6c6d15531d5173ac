import { assert, describe, it } from "@effect/vitest"
import { RunOutcome } from "../../src/Errors.ts"
import type { AgentEvent } from "../../src/Events.ts"
import * as Messages from "../../src/Messages.ts"
import { violations } from "./invariants.ts"

const call = (id: string): Messages.ToolCall => ({ type: "toolCall", id, name: "a", arguments: {} })
const user = Messages.user("go")
const asks = Messages.assistant([call("x"), call("y")])
const x = Messages.toolResult(call("x"), "done")
const y = Messages.toolResult(call("y"), "done")

const told = (message: Messages.AgentMessage): ReadonlyArray<AgentEvent> => [
  { type: "message_start", message },
  { type: "message_end", message }
]

const runs = (id: string): ReadonlyArray<AgentEvent> => [
  { type: "tool_execution_start", toolCallId: id, toolName: "a", args: {} },
  { type: "tool_execution_end", toolCallId: id, toolName: "a", result: { content: [] }, isError: false }
]

const start: AgentEvent = { type: "agent_start" }
const turn: AgentEvent = { type: "turn_start" }
const turnEnd: AgentEvent = { type: "turn_end", message: asks, toolResults: [x, y] }
const end: AgentEvent = { type: "agent_end", messages: [user, asks, x, y], outcome: RunOutcome.Aborted() }

const good = [
  start,
  turn,
  ...told(user),
  ...told(asks),
  ...runs("x"),
  ...runs("y"),
  ...told(x),
  ...told(y),
  turnEnd,
  end
]

describe("the checks of the invariants", () => {
  it("I3: find nothing wrong with a whole run", () => {
    assert.deepStrictEqual(violations({ events: good, accepted: ["go"] }), [])
  })

  const wrong: Record<string, readonly [rule: string, events: ReadonlyArray<AgentEvent>]> = {
    "no agent_end": ["I3", good.slice(0, -1)],
    "a second agent_end": ["I3", [...good, end]],
    "an event behind agent_end": ["I3", [...good, turn]],
    "no agent_start": ["I3", good.slice(1)],
    "no turn_start": ["I3", good.filter((event) => event !== turn)],
    "no turn_end": ["I3", good.filter((event) => event !== turnEnd)],
    "a message that does not end": ["I3", good.toSpliced(3, 1)],
    "a message that does not start": ["I3", good.toSpliced(2, 1)],
    "a call that does not end": ["I3", good.toSpliced(7, 1)],
    "a call that starts twice": ["I3", good.toSpliced(6, 0, good[6]!)],
    "a turn_end without its results": ["I3", [...good.slice(0, -2), { ...turnEnd, toolResults: [x] }, end]],
    "an agent_end without the prompt": ["I3", [...good.slice(0, -1), { ...end, messages: [asks, x, y] }]],
    "a call that is not answered": ["I1", good.filter((event) => !("message" in event) || event.message !== y)],
    "answers in another order": ["I1", [...good.slice(0, 10), ...told(y), ...told(x), turnEnd, end]]
  }
  for (const [name, [rule, events]] of Object.entries(wrong)) {
    it(`${rule}: find ${name}`, () => {
      const found = violations({ events })
      assert.isTrue(found.some((problem) => problem.startsWith(rule)), found.join("\n"))
    })
  }

  it("I1: find a message between a call and its result, and a result nobody asked for", () => {
    assert.include(violations({ events: [], transcript: [asks, x, user, y] }).join("\n"), "I1: y is not answered")
    assert.include(violations({ events: [], transcript: [user, x] }).join("\n"), "I1: the result of x")
  })

  it("I2, I4, I6, M1: find what no run may do", () => {
    const transcript = [user, user]
    assert.include(violations({ events: good, requestsAtAbort: 1, requestsAtEnd: 2 }).join("\n"), "I2")
    assert.include(violations({ events: good, accepted: ["go", "lost"] }).join("\n"), "I4: \"lost\" is in 0 places")
    assert.include(violations({ events: [], transcript, accepted: ["go"] }).join("\n"), "I4: \"go\" is in 2 places")
    assert.include(violations({ events: good, accepted: ["go"], queued: [user] }).join("\n"), "in 2 places")
    assert.include(violations({ events: [], transcript: [Messages.user("\ud83d")] }).join("\n"), "I6")
    assert.include(violations({ events: good, transcript: [user] }).join("\n"), "H3: the transcript is \"U\"")
    const empty = [Messages.assistant("")]
    assert.include(violations({ events: good, requests: [{ messages: empty }] }).join("\n"), "request 0: M1")
  })
})
