// Starts the operator with V8 flags that keep its heap small.
import { setFlagsFromString } from 'node:v8';

// V8 lets its heap grow to several times the live data before it collects. The operator is idle most of the time, so it
// can collect often, and its caches should cost no more than what they hold. The flags apply only to code loaded later.
setFlagsFromString('--semi-space-growth-factor=1');
setFlagsFromString('--heap-growing-percent=10');

const { runOperator } = await import('./operator.ts');
await runOperator();
