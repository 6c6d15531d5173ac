/** How long something takes, and how much memory. */

/** Milliseconds. */
export const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await work()
  return performance.now() - began
}

const used = async (): Promise<number> => {
  if (global.gc === undefined) throw new Error("memory is measured under `node --expose-gc`")
  for (let i = 0; i < 4; i++) {
    // Whatever is still on its way arrives first.
    await new Promise((resolve) => setTimeout(resolve, 5))
    global.gc()
  }
  return process.memoryUsage().heapUsed
}

/** Makes so many things and gives them with the bytes of the heap each of them takes. */
export const heapOf = async <A>(count: number, make: () => Promise<A>): Promise<{ value: number; kept: A }> => {
  const before = await used()
  const kept = await make()
  const after = await used()
  return { value: (after - before) / count, kept }
}
