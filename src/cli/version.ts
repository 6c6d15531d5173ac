/**
 * The version of the package, which is where this file is, in `src` or bundled.
 */
import manifest from "../../package.json" with { type: "json" }

export const { version } = manifest
