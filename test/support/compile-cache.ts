// Runs in each process of tests, before each of its files. Node keeps the code that it has compiled, without its types, in
// NODE_COMPILE_CACHE (vitest.config.ts), but writes it only when a process ends by itself, and Vitest ends these by SIGTERM.
function endWithCompiledCode(): void {
  process.exit();
}

// The module is loaded again for each file.
if (!process.listeners('SIGTERM').some((listener) => listener.name === endWithCompiledCode.name))
  process.once('SIGTERM', endWithCompiledCode);
