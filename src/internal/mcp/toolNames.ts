/**
 * The names under which a model calls the tools of a server. Providers allow letters, digits, `_` and `-`, at most 64.
 */

const maxLength = 64

const safe = (name: string): string => name.replaceAll(/[^a-zA-Z0-9_-]/g, "_")

/** FNV-1a, 32 bits: the same text has the same hash everywhere, which a name in a transcript needs. */
const hash = (text: string): string => {
  let value = 0x811c9dc5
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 0x01000193) >>> 0
  return value.toString(16).padStart(8, "0")
}

const withHash = (name: string, of: string): string => {
  const end = `_${hash(of)}`
  return name.slice(0, maxLength - end.length) + end
}

/**
 * A name for each tool, `server__tool`. It gets a hash of the original where it is too long, or where another tool has
 * the same after what is not allowed was replaced; a name that needed no change keeps its place. The order of the tools
 * does not matter, so that a server that lists them differently the next time has them under the same names.
 */
export const toolNames = (server: string, tools: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const names = new Map<string, string>()
  const full = new Map([...new Set(tools)].toSorted().map((tool) => [tool, `${server}__${tool}`]))
  const holders = new Map<string, number>()
  for (const name of full.values()) holders.set(safe(name), (holders.get(safe(name)) ?? 0) + 1)
  const taken = new Set<string>()
  const give = (tool: string, name: string): void => {
    names.set(tool, name)
    taken.add(name)
  }
  const keeps = (tool: string, name: string): boolean =>
    name.length <= maxLength && (holders.get(safe(name)) === 1 || safe(tool) === tool)
  for (const [tool, name] of full) if (keeps(tool, name)) give(tool, safe(name))
  for (const [tool, name] of full) {
    if (keeps(tool, name)) continue
    let of = name
    while (taken.has(withHash(safe(name), of))) of += "_"
    give(tool, withHash(safe(name), of))
  }
  return names
}
