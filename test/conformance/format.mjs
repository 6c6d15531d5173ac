/** Scenario as JSON with one line per list entry. */
export function formatScenario(s) {
  const value = (v) => {
    if (Array.isArray(v) && v.some((x) => typeof x === "object")) {
      return `[\n    ${v.map((x) => JSON.stringify(x)).join(",\n    ")}\n  ]`
    }
    if (v && typeof v === "object" && !Array.isArray(v) && Object.values(v).some((x) => typeof x === "object")) {
      return `{\n    ${
        Object.entries(v).map(([k, x]) => `${JSON.stringify(k)}: ${JSON.stringify(x)}`).join(",\n    ")
      }\n  }`
    }
    return JSON.stringify(v)
  }
  return `{\n  ${Object.entries(s).map(([k, v]) => `${JSON.stringify(k)}: ${value(v)}`).join(",\n  ")}\n}\n`
}
