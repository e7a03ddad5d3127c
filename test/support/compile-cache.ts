// Runs in each process of tests. Node keeps the code that it has compiled, without its types, in NODE_COMPILE_CACHE
// (vitest.config.ts), but writes it only when a process ends by itself, and these are ended by a signal.
import { flushCompileCache } from 'node:module';
import { afterAll } from 'vitest';

afterAll(() => {
  flushCompileCache();
});
