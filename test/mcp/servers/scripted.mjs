// An MCP server over stdio, by hand: `node scripted.mjs MODE [FILE]`. What it does wrong depends on the mode; its process
// id goes to FILE, a line for each start.
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { createInterface } from "node:readline"

const [, , mode = "fine", file] = process.argv
if (file !== undefined) appendFileSync(file, `${process.pid}\n`)
const starts = file === undefined ? 1 : readFileSync(file, "utf8").trim().split("\n").length

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const tool = (name, more = {}) => ({ name, description: `does ${name}`, inputSchema: { type: "object" }, ...more })
const text = (value) => ({ content: [{ type: "text", text: value }] })

const tools = [
  "die",
  "wait",
  "cancelled",
  "grow",
  "refuse",
  "fails",
  "progress",
  "oddities",
  "structured",
  "wrong",
  "pid"
]
  .map((name) => tool(name))
if (mode === "schemas") tools.push(tool("list", { inputSchema: { type: "array" } }), tool("pid"), { description: "?" })
if (mode === "names") {
  for (const name of ["a.b", "a b", "a_b", "ünï", "x".repeat(90), `${"x".repeat(90)}y`]) tools.push(tool(name))
}
const cancelled = []

const fail = () => {
  for (let line = 0; line < 30; line++) process.stderr.write(`line ${line}\n`)
  process.stderr.write(`the key is ${process.env.SECRET_KEY}\n`)
  process.exit(3)
}

if (mode === "dies" || (mode === "dies-again" && starts > 1) || (mode === "dies-once-more" && starts === 2)) fail()
if (mode === "garbage") process.stdout.write("Welcome to the server!\n")
if (mode === "stubborn") {
  process.on("SIGTERM", () => {})
  setInterval(() => {}, 1000)
}

const call = (id, { _meta, name, arguments: args }) => {
  const answer = (result) => send({ id, result })
  switch (name) {
    case "die":
      process.stderr.write("out of memory\n")
      process.exit(1)
      return
    case "wait":
      // Tells that the call is here.
      send({ method: "notifications/progress", params: { progressToken: _meta.progressToken, progress: 1 } })
      return
    case "cancelled":
      return answer(text(`${cancelled.length} cancelled`))
    case "grow":
      tools.push(tool(`grown${tools.length}`))
      answer(text("grown"))
      return send({ method: "notifications/tools/list_changed" })
    case "refuse":
      return send({ id, error: { code: -32602, message: `no such thing, ${process.env.SECRET_KEY}` } })
    case "fails":
      return answer({ ...text("disk full"), isError: true })
    case "progress": {
      const progressToken = _meta.progressToken
      // In one piece with the answer: none of it may get lost.
      const messages = [
        { method: "notifications/progress", params: { progressToken, progress: 1, total: 2 } },
        { method: "notifications/progress", params: { progressToken, progress: 2, total: 2, message: "nearly" } },
        { id, result: text("done") }
      ]
      process.stdout.write(messages.map((each) => `${JSON.stringify({ jsonrpc: "2.0", ...each })}\n`).join(""))
      return
    }
    case "oddities":
      return answer({
        content: [
          { type: "audio", data: "AAAA", mimeType: "audio/wav" },
          { type: "resource", resource: { uri: "file:///a", mimeType: "text/plain", text: "inside" } },
          { type: "resource", resource: { uri: "file:///b", mimeType: "application/zip", blob: "AAAAAA==" } },
          { type: "resource", resource: { uri: "file:///c", mimeType: "image/png", blob: "AAAA" } },
          { type: "resource_link", uri: "file:///d", name: "d", description: "the fourth" },
          { type: "hologram", depth: 3 }
        ],
        _meta: { cost: 1 }
      })
    case "structured":
      return answer({ content: [], structuredContent: { args } })
    case "wrong":
      return answer({ surprise: true })
    default:
      return answer(text(`${name} in ${process.pid}`))
  }
}

const pageOf = (cursor) => {
  if (mode === "endless") return { tools: [tool("again")], nextCursor: "more" }
  if (mode !== "pages") return { tools }
  const page = Number(cursor ?? 0)
  return { tools: [tool(`page${page}`)], ...(page < 4 && { nextCursor: String(page + 1) }) }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  if (mode === "silent" || mode === "garbage") return
  switch (method) {
    case "initialize":
      if (file !== undefined && existsSync(`${file}.client`)) appendFileSync(`${file}.client`, JSON.stringify(params))
      return send({
        id,
        result: {
          protocolVersion: mode === "version" ? "1999-01-01" : params.protocolVersion,
          capabilities: mode === "no-tools" ? {} : { tools: { listChanged: true } },
          serverInfo: { name: "scripted", version: "1.2.3", title: "Scripted" },
          instructions: "Be careful."
        }
      })
    case "tools/list":
      return send({ id, result: pageOf(params?.cursor) })
    case "tools/call":
      return call(id, params)
    case "notifications/cancelled":
      cancelled.push(params.requestId)
  }
})
