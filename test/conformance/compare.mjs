#!/usr/bin/env node
// Compares two traces (SCENARIO.md, "Comparison").   node compare.mjs expected.json actual.json
import { readFileSync } from "node:fs"

/** The parts of a trace that are compared; anomalies and unhandled are not. */
export const SECTIONS = ["events", "requests", "executions", "hooks", "listeners", "actions", "inner", "final"]

function walk(expected, actual, path, out) {
  if (out.length >= 20 || Object.is(expected, actual)) return
  if (
    expected === null || actual === null || typeof expected !== "object" || typeof actual !== "object" ||
    Array.isArray(expected) !== Array.isArray(actual)
  ) {
    out.push(
      `${path}: expected ${JSON.stringify(expected)?.slice(0, 200)}, got ${JSON.stringify(actual)?.slice(0, 200)}`
    )
    return
  }
  if (Array.isArray(expected) && expected.length !== actual.length) {
    out.push(`${path}: expected ${expected.length} entries, got ${actual.length}`)
  }
  for (const k of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
    walk(expected[k], actual[k], Array.isArray(expected) ? `${path}[${k}]` : `${path}.${k}`, out)
  }
}

/** Differences as text, at most 20; empty when the traces agree. Key order does not matter. */
export function diffTraces(expected, actual, sections = SECTIONS) {
  const out = []
  for (const s of sections) walk(expected[s] ?? [], actual[s] ?? [], s, out)
  return out
}

if (process.argv[1]?.endsWith("compare.mjs")) {
  const [a, b] = process.argv.slice(2).map((f) => JSON.parse(readFileSync(f, "utf8")))
  const diff = diffTraces(a, b)
  for (const d of diff) console.log(d)
  console.log(diff.length === 0 ? "equal" : `${diff.length} differences`)
  process.exit(diff.length === 0 ? 0 : 1)
}
