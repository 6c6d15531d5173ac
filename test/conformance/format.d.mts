/** Scenario as JSON with one line per list entry. */
export function formatScenario(scenario: object): string
