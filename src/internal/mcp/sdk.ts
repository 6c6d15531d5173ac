/**
 * The client of `@modelcontextprotocol/sdk`, where Effect ends. It is loaded when a server is connected, so that a program
 * without it can load the rest; its types stay in this file.
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Json, JsonObject } from "../../Messages.ts"
import { isRecord } from "../record.ts"
import { McpError } from "./error.ts"

/** What a client says of itself to a server. */
export const clientInfo = { name: "effect-pi", version: "0.1.0" }

/** The SDK would end a request after a minute by the clock of the machine; deadlines are those of Effect's clock. */
const never = { timeout: 2 ** 31 - 1 }

/** What is heard of a server beside the answers to requests. */
export interface Listeners {
  /** Every message, before the SDK looks at it. */
  readonly onMessage: (message: unknown) => void
  /** What was wrong with something that came, or with the connection. */
  readonly onError: (error: unknown) => void
  readonly onClose: () => void
  readonly onStderr: (text: string) => void
  /** The stream of the answer to a request is over, in whatever way. */
  readonly onAnswerEnd: (id: Json | undefined) => void
}

/** A request on its way. */
export interface Sent {
  readonly id: Json | undefined
  readonly answer: Promise<{ readonly [key: string]: unknown }>
}

/** A client with its transport. */
export interface Wire {
  /** Starts the transport and agrees on a version of the protocol. */
  readonly initialize: (signal: AbortSignal) => Promise<void>
  readonly about: () => About
  readonly request: (method: string, params: JsonObject, signal: AbortSignal, onResumable: () => void) => Sent
  /** Ends the session with the server, where there are sessions. */
  readonly endSession: () => Promise<void>
  readonly close: () => Promise<void>
  /** Whether there is a process that has to end. */
  readonly hasProcess: () => boolean
  readonly readError: (error: unknown) => WireError
}

/** What a server says of itself. */
export interface About {
  readonly instructions: string | undefined
  readonly serverInfo: { readonly name: string; readonly version: string; readonly title?: string | undefined }
  readonly hasTools: boolean
}

/** An error as far as it matters here: an answer of HTTP, an answer of the protocol, or anything else. */
export type WireError =
  | { readonly _tag: "Http"; readonly status: number; readonly text: string; readonly hadSession: boolean }
  | { readonly _tag: "Rpc"; readonly code: number; readonly text: string }
  | { readonly _tag: "Other"; readonly code: string | undefined; readonly text: string }

/** Loads a module of the SDK, or says how to get it. */
const load = <A>(server: string, importing: () => Promise<A>): Effect.Effect<A, McpError> =>
  Effect.tryPromise({
    try: importing,
    catch: (error) =>
      new McpError({
        reason: "NotInstalled",
        server,
        message:
          `MCP server "${server}" needs the package @modelcontextprotocol/sdk, which cannot be loaded: run \`npm install @modelcontextprotocol/sdk\`. (${
            textOf(error).split("\n", 1)[0]
          })`
      })
  })

const loadClient = (server: string) =>
  load(server, () =>
    Promise.all([
      import("@modelcontextprotocol/sdk/client/index.js"),
      import("@modelcontextprotocol/sdk/types.js")
    ]))

type Modules = Effect.Success<ReturnType<typeof loadClient>>

/** A process that speaks over its standard input and output. */
export const openStdio = Effect.fnUntraced(function*(
  server: string,
  setup: {
    readonly command: string
    readonly args: ReadonlyArray<string>
    readonly env: Readonly<Record<string, string>>
    readonly cwd: string | undefined
  },
  listeners: Listeners
) {
  const modules = yield* loadClient(server)
  const { StdioClientTransport } = yield* load(server, () => import("@modelcontextprotocol/sdk/client/stdio.js"))
  const transport = new StdioClientTransport({
    command: setup.command,
    args: [...setup.args],
    env: { ...setup.env },
    stderr: "pipe",
    ...(setup.cwd !== undefined && { cwd: setup.cwd })
  })
  transport.stderr?.on("data", (chunk: unknown) => listeners.onStderr(String(chunk)))
  return wireOf(modules, transport, listeners, {
    isProcess: true,
    hasProcess: () => transport.pid !== null,
    endSession: () => Promise.resolve(),
    statusOf: () => undefined
  })
})

/** A server behind a URL, by streamable HTTP. */
export const openHttp = Effect.fnUntraced(function*(
  server: string,
  setup: { readonly url: URL; readonly headers: Readonly<Record<string, string>> },
  listeners: Listeners
) {
  const modules = yield* loadClient(server)
  const { StreamableHTTPClientTransport, StreamableHTTPError } = yield* load(
    server,
    () => import("@modelcontextprotocol/sdk/client/streamableHttp.js")
  )
  const transport = new StreamableHTTPClientTransport(setup.url, {
    requestInit: { headers: { ...setup.headers } },
    fetch: watchedFetch(listeners.onAnswerEnd)
  })
  return wireOf(modules, transport, listeners, {
    isProcess: false,
    hasProcess: () => false,
    endSession: () => transport.terminateSession(),
    statusOf: (error) => error instanceof StreamableHTTPError ? error.code : undefined
  })
})

const wireOf = (
  [{ Client }, { ErrorCode, McpError: RpcError, ResultSchema }]: Modules,
  transport: Transport,
  listeners: Listeners,
  kind: Pick<Wire, "endSession" | "hasProcess"> & {
    readonly isProcess: boolean
    readonly statusOf: (error: unknown) => number | undefined
  }
): Wire => {
  const client = new Client(clientInfo, { capabilities: {} })
  const closeTransport = transport.close.bind(transport)
  let closing: Promise<void> | undefined
  // The client closes by itself when it cannot initialize: whoever closes later has to wait for the same end.
  transport.close = () => closing ??= closeTransport()
  Object.assign(transport, {
    onmessage: listeners.onMessage,
    onerror: listeners.onError,
    // Behind a URL nothing ends but what was closed from here.
    onclose: () => kind.isProcess ? listeners.onClose() : undefined
  })
  const send = transport.send.bind(transport)
  let sent: Json | undefined
  transport.send = (message, options) => {
    if ("method" in message && "id" in message) sent = message.id
    return send(message, options)
  }
  return {
    ...kind,
    initialize: (signal) => client.connect(transport, { ...never, signal }),
    about: () => {
      const info = client.getServerVersion()
      return {
        instructions: client.getInstructions(),
        serverInfo: {
          name: info?.name ?? "",
          version: info?.version ?? "",
          ...(info?.title !== undefined && { title: info.title })
        },
        hasTools: client.getServerCapabilities()?.tools !== undefined
      }
    },
    request: (method, params, signal, onResumable) => {
      sent = undefined
      const answer = client.request({ method, params }, ResultSchema, {
        ...never,
        signal,
        onresumptiontoken: onResumable
      })
      // The client has handed it to the transport by now, which is what tells its id.
      return { id: sent, answer }
    },
    close: () => transport.close(),
    readError: (error) => {
      const status = kind.statusOf(error)
      const text = textOf(error)
      if (status !== undefined) {
        return { _tag: "Http", status, text: afterPrefix(text), hadSession: transport.sessionId !== undefined }
      }
      // The SDK's own word for a connection that was closed has a code that servers use as well.
      const isClosed = text === `MCP error ${ErrorCode.ConnectionClosed}: Connection closed`
      if (error instanceof RpcError && !isClosed) {
        return { _tag: "Rpc", code: error.code, text: text.replace(/^MCP error -?\d+: /, "") }
      }
      return { _tag: "Other", code: codeOf(error), text: deepText(error) }
    }
  }
}

const textOf = (error: unknown): string => error instanceof Error ? error.message : String(error)

const afterPrefix = (text: string): string =>
  text.replace(/^Streamable HTTP error: (Error POSTing to endpoint: |Failed to open SSE stream: )?/, "")

/** `fetch` says what happened in the cause of its errors only. */
const deepText = (error: unknown): string => {
  const cause = error instanceof Error ? error.cause : undefined
  if (cause === undefined) return textOf(error)
  // A name with several addresses has one error for each of them, and no text of its own.
  const said = textOf(cause) || codeOf(cause) || "no reason given"
  return `${textOf(error)}: ${said}`
}

const codeOf = (error: unknown): string | undefined => {
  if (!isRecord(error)) return undefined
  if (typeof error["code"] === "string") return error["code"]
  return codeOf(error["cause"])
}

/** Tells when the stream of an answer is over: the SDK alone would wait for ever for one that broke. */
const watchedFetch = (onEnd: (id: Json | undefined) => void): typeof fetch => (input, init) =>
  fetch(input, init).then((response) => {
    const isEvents = /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "")
    if (!response.ok || !isEvents || response.body === null || init?.method !== "POST") return response
    const id = idIn(init.body)
    const { headers, status, statusText } = response
    return new Response(watched(response.body, () => onEnd(id)), { status, statusText, headers })
  })

const idIn = (body: unknown): Json | undefined => {
  const message: unknown = Result.getOrUndefined(Result.try(() => JSON.parse(String(body))))
  const id = isRecord(message) ? message["id"] : undefined
  return typeof id === "number" || typeof id === "string" ? id : undefined
}

const watched = (body: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> => {
  const reader = body.getReader()
  return new ReadableStream({
    pull: (controller) =>
      reader.read().then(
        ({ done, value }) => {
          if (!done) return controller.enqueue(value)
          controller.close()
          onEnd()
        },
        (error: unknown) => {
          controller.error(error)
          onEnd()
        }
      ),
    cancel: (reason) => reader.cancel(reason)
  })
}
