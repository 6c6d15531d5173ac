/** Imports what it is given and prints the milliseconds it took. Not TypeScript, because stripping types would count. */
const began = performance.now()
await import(process.argv[2] ?? "")
const ended = performance.now()
process.stdout.write(String(ended - began), () => process.exit())
