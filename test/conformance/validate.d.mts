/** Violations of the format of SCENARIO.md as text; empty when the value is a well-formed `Scenario`. */
export function validate(scenario: unknown): Array<string>
