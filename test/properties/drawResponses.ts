/** Draws what the model says: blocks, laid out as events, laid out in time, and then broken. */
import type { StreamEvent } from "../../src/StreamFn.ts"
import { type Draw, millis, steps } from "./drawWorks.ts"
import { compact, type Random } from "./random.ts"
import type { Chunk, Response } from "./types.ts"

type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted" | "deferred"

const callId = ({ fresh, random, traits }: Draw): string =>
  traits.ids && random.chance(0.4) ? random.pick(["", "same", "same", "call", "same_2"]) : `c${fresh()}`

const argumentsOf = ({ random, traits }: Draw): unknown =>
  random.weighted<unknown>([
    [6, { n: 1 }],
    [2, { n: random.int(1, 3) }],
    [1, { n: "4" }],
    [1, {}],
    [traits.odd ? 1 : 0, { n: "four \ud800", more: [1] }],
    [traits.odd ? 0.5 : 0, null]
  ])

const argumentsText = (draw: Draw): string => {
  const text = JSON.stringify(argumentsOf(draw))
  const { random, traits } = draw
  return traits.broken && random.chance(0.25)
    ? random.pick([text.slice(0, -1), "{", "", "[1]", "nothing", `${text}}`])
    : text
}

const cut = (random: Random, text: string): ReadonlyArray<string> => {
  if (text === "" || random.chance(0.4)) return [text]
  const at = random.int(0, text.length)
  return [text.slice(0, at), text.slice(at)]
}

const callBlock = (draw: Draw, contentIndex: number): ReadonlyArray<StreamEvent> => {
  const { random, toolNames } = draw
  const name = random.chance(0.06) || toolNames.length === 0 ? "ghost" : random.pick(toolNames)
  const start: StreamEvent = { type: "toolcall_start", contentIndex, id: callId(draw), name }
  return random.chance(0.5)
    ? [start, { type: "toolcall_end", contentIndex, arguments: argumentsOf(draw) }]
    : [
      start,
      ...cut(random, argumentsText(draw)).map((delta): StreamEvent => ({
        type: "toolcall_delta",
        contentIndex,
        delta
      })),
      { type: "toolcall_end", contentIndex }
    ]
}

const textBlock = (
  { random, traits }: Draw,
  kind: "text" | "thinking",
  contentIndex: number
): ReadonlyArray<StreamEvent> => [
  { type: `${kind}_start`, contentIndex },
  ...cut(random, traits.odd ? random.pick(["so", "", "half \ud800 of it"]) : "so be it").map((delta): StreamEvent => ({
    type: `${kind}_delta`,
    contentIndex,
    delta
  })),
  { type: `${kind}_end`, contentIndex }
]

const usage = ({ random }: Draw) => {
  const tokens = random.pick([0, 10, 100])
  return {
    input: tokens,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    totalTokens: tokens,
    cost: { input: tokens / 100, output: 0, cacheRead: 0, cacheWrite: 0, total: tokens / 100 }
  }
}

const finalEvent = (draw: Draw, calls: number): StreamEvent => {
  const { random, traits } = draw
  const usual: StopReason = calls > 0 ? "toolUse" : "stop"
  const stopReason = random.weighted<StopReason>([
    [12, usual],
    [1, "length"],
    [traits.broken ? 3 : 0, random.pick(["stop", "toolUse", "error", "aborted", "deferred", "length"])],
    [traits.failures ? 1 : 0, "error"]
  ])
  return compact({
    type: stopReason === "error" || (traits.broken && random.chance(0.1)) ? "error" as const : "done" as const,
    stopReason: random.maybe(0.9, () => stopReason),
    usage: random.maybe(0.6, () => usage(draw)),
    errorMessage: random.maybe(stopReason === "error" ? 0.5 : 0.03, () => "overloaded \ud800"),
    content: random.maybe(traits.broken ? 0.15 : 0.03, () => [
      { type: "text" as const, text: "instead" },
      ...(random.chance(0.5)
        ? [{ type: "toolCall" as const, id: callId(draw), name: draw.toolNames[0] ?? "ghost", arguments: { n: 1 } }]
        : [])
    ])
  })
}

/** What a provider's bug may make of a response. */
const breakProtocol = ({ random }: Draw, events: ReadonlyArray<StreamEvent>): ReadonlyArray<StreamEvent> => {
  const at = random.int(0, Math.max(0, events.length - 1))
  const event = events[at]
  if (event === undefined) return events
  return random.weighted<() => ReadonlyArray<StreamEvent>>([
    [2, () => events.filter((_, index) => index !== at)],
    [2, () => [...events.slice(0, at + 1), event, ...events.slice(at + 1)]],
    [1, () => [...events.slice(0, at), ...events.slice(at + 1), event]],
    [
      2,
      () =>
        events.map((one, index) =>
          index === at && "contentIndex" in one ? { ...one, contentIndex: random.pick([-1, 7, 0, 0.5]) } : one
        )
    ],
    [1, () => events.slice(0, at)],
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a provider's bug
    [1, () => events.with(at, { type: "surprise" } as unknown as StreamEvent)],
    [1, () => events.filter(({ type }) => type !== "start")]
  ])()
}

const chunksOf = (draw: Draw, events: ReadonlyArray<StreamEvent>): ReadonlyArray<Chunk> => {
  const { random, traits } = draw
  const together = random.chance(0.35)
  const chunks: Array<Chunk> = []
  let rest = events
  while (rest.length > 0) {
    const size = together ? rest.length : random.int(1, 4)
    chunks.push(compact({
      after: random.chance(0.5) ? millis(draw) : 0,
      steps: random.maybe(traits.reentrant || traits.deaf ? 0.06 : 0, () => steps(draw, "stream", 1, 1)),
      events: rest.slice(0, size)
    }))
    rest = rest.slice(size)
  }
  return chunks
}

const response = (draw: Draw): Response => {
  const { random, traits } = draw
  const calls = random.weighted<number>([[5, 0], [5, 1], [4, 2], [2, 3], [1, 5], [0.2, random.int(17, 20)]])
  const blocks: Array<ReadonlyArray<StreamEvent>> = []
  if (random.chance(0.2)) blocks.push(textBlock(draw, "thinking", blocks.length))
  if (calls === 0 || random.chance(0.4)) blocks.push(textBlock(draw, "text", blocks.length))
  for (let call = 0; call < calls; call++) blocks.push(callBlock(draw, blocks.length))
  const whole: ReadonlyArray<StreamEvent> = [{ type: "start" }, ...blocks.flat(), finalEvent(draw, calls)]
  const events = traits.broken && random.chance(0.35) ? breakProtocol(draw, whole) : whole
  return compact({
    opening: random.maybe(traits.failures ? 0.04 : 0, () => "throws" as const),
    setup: random.maybe(0.1, () => steps(draw, "stream", 1, 2)),
    chunks: chunksOf(draw, events),
    end: random.weighted<Response["end"]>([
      [6, "done"],
      [traits.endless ? 2 : 0, "open"],
      [traits.broken ? 2 : 0, random.pick(["fail", "die", "interrupt"])]
    ]),
    cleanup: random.maybe(traits.deaf ? 0.2 : 0, () => traits.endless && random.chance(0.3) ? "forever" : millis(draw))
  })
}

/** Cuts a response short, so that what comes at its end comes earlier. */
const shortened = ({ random }: Draw, response: Response): Response => ({
  ...response,
  chunks: response.chunks.slice(0, random.int(0, response.chunks.length))
})

export const responses = (draw: Draw): ReadonlyArray<Response> => {
  const { random, traits } = draw
  return random.many(1, 6, () => {
    const whole = response(draw)
    return (traits.broken || traits.endless) && random.chance(0.12) ? shortened(draw, whole) : whole
  })
}
