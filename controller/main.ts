// Starts the operator, in little memory.
import { setFlagsFromString } from 'node:v8';

// V8 lets its heap grow to several times of what is alive before it cleans up. An operator is idle most of the time and
// has the time to clean up; its caches should cost what they hold. The flags count only for what is loaded after them.
setFlagsFromString('--semi-space-growth-factor=1');
setFlagsFromString('--heap-growing-percent=10');

const { runOperator } = await import('./operator.ts');
await runOperator();
