/** One namespace of effect-pi: the rest of the library has to stay out of the bundle. */
import { Messages } from "../../src/index.ts"

export const main = () => Messages.user("go")
