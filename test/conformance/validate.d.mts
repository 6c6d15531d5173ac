/** Violations of the format of SCENARIO.md as text; empty when the scenario is well-formed. */
export function validate(scenario: unknown): Array<string>
