/**
 * What the agent can do in the working folder.
 */
import { edit } from "./tools/edit.ts"
import { list } from "./tools/list.ts"
import { read } from "./tools/read.ts"
import { run } from "./tools/run.ts"
import { search } from "./tools/search.ts"
import { write } from "./tools/write.ts"

export const tools = [read, list, search, write, edit, run] as const
