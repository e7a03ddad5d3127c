// Runs in each process of tests. Node keeps the code that it has compiled, without its types, in NODE_COMPILE_CACHE
// (vitest.config.ts), but writes it only when a process ends by itself, and Vitest ends these by SIGTERM.
process.once('SIGTERM', () => {
  process.exit();
});
