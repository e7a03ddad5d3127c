// Runs code in QuickJS (WebAssembly). Runs in a worker process: QuickJS limits time and memory, and the process limits
// what QuickJS misses.
import { readFileSync } from 'node:fs';
import variant from '@jitl/quickjs-wasmfile-release-sync';
import {
  newQuickJSWASMModuleFromVariant,
  type QuickJSSyncVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
} from 'quickjs-emscripten-core';

const limits = { ms: 5_000, memory: 64 * 1024 * 1024, stack: 256 * 1024, text: 200_000, logs: 1_000, nesting: 200 };
const fileName = 'code.js';
/**
 * JS_EVAL_TYPE_GLOBAL with JS_EVAL_FLAG_ASYNC: a script in which await may stand anywhere. Gives a promise of {value}.
 */
const asyncScript = 1 << 7;
const prelude = readFileSync(new URL('prelude.js', import.meta.url), 'utf8');

interface Log {
  readonly level: string;
  readonly text: string;
}
interface Outcome {
  readonly ok: boolean;
  readonly value: unknown;
  readonly value_type: string;
  readonly error: Fault | null;
}
interface Fault {
  readonly name: string;
  readonly message: string;
  readonly line: number | null;
  readonly stack: string;
}

export default async function run({ code, input }: { code: string; input: unknown }): Promise<unknown> {
  // Fresh for each call: code that breaks its memory breaks nothing for the next.
  const quickJs = await newQuickJSWASMModuleFromVariant(variant as unknown as QuickJSSyncVariant);
  const runtime = quickJs.newRuntime({ maxStackSizeBytes: limits.stack });
  runtime.setMemoryLimit(limits.memory);
  const context = runtime.newContext();
  const started = performance.now();
  const sandbox = new Sandbox(runtime, context, input);
  const outcome = sandbox.run(code);
  return {
    ...outcome,
    logs: sandbox.logs,
    truncated: sandbox.truncated,
    duration_ms: Math.round((performance.now() - started) * 10) / 10,
  };
}

class Sandbox {
  readonly logs: Log[] = [];
  truncated = false;
  readonly #runtime: QuickJSRuntime;
  readonly #context: QuickJSContext;
  readonly #toJson: QuickJSHandle;
  #textLeft = limits.text;
  #late = false;

  constructor(runtime: QuickJSRuntime, context: QuickJSContext, input: unknown) {
    this.#runtime = runtime;
    this.#context = context;
    const write = context.newFunction('write', (level, text) => {
      this.logs.push({ level: context.getString(level), text: this.#cut(context.getString(text)) });
      const open = this.logs.length < limits.logs && this.#textLeft > 0;
      if (!open) this.truncated = true;
      return open ? context.true : context.false;
    });
    const setUp = context.unwrapResult(context.evalCode(prelude, 'prelude.js'));
    this.#toJson = context.unwrapResult(context.callFunction(setUp, context.undefined, write));
    if (input !== undefined) {
      const parse = context.unwrapResult(context.evalCode('JSON.parse'));
      context.setProp(
        context.global,
        'input',
        context.unwrapResult(context.callFunction(parse, context.undefined, context.newString(JSON.stringify(input)))),
      );
    }
  }

  run(code: string): Outcome {
    const deadline = performance.now() + limits.ms;
    this.#runtime.setInterruptHandler(() => (this.#late ||= performance.now() > deadline));
    try {
      return this.#evaluated(code);
    } catch (error) {
      // The stack of this process is at its end before that of QuickJS.
      if (error instanceof RangeError)
        return failure({ name: 'InternalError', message: 'stack overflow', line: null, stack: '' });
      throw error;
    }
  }

  #evaluated(code: string): Outcome {
    const value = this.#settled(this.#context.evalCode(code, fileName, asyncScript));
    if ('error' in value) return this.#failed(value.error);
    const inner = this.#settled({ value: this.#context.getProp(value.value, 'value') });
    if ('error' in inner) return this.#failed(inner.error);
    const text = this.#context.callFunction(this.#toJson, this.#context.undefined, inner.value);
    if (text.error !== undefined) return this.#failed(text.error);
    return { ok: true, value: this.#jsonOf(text.value), value_type: this.#context.typeof(inner.value), error: null };
  }

  /** What a promise became, once all jobs are done; what is no promise stays. */
  #settled(
    result: { value: QuickJSHandle; error?: undefined } | { error: QuickJSHandle },
  ): { value: QuickJSHandle } | { error: QuickJSHandle } {
    if (result.error !== undefined) return { error: result.error };
    const jobs = this.#runtime.executePendingJobs();
    if (jobs.error !== undefined) return { error: jobs.error };
    const state = this.#context.getPromiseState(result.value);
    if (state.type === 'fulfilled') return { value: state.value };
    if (state.type === 'rejected') return { error: state.error };
    return {
      error: this.#context.newError({
        name: 'Error',
        message: 'the code awaits a promise that never settles; timers and the network are not available',
      }),
    };
  }

  #jsonOf(handle: QuickJSHandle): unknown {
    if (this.#context.typeof(handle) !== 'string') return null;
    const text = this.#context.getString(handle);
    if (text.length <= limits.text && nesting(text) <= limits.nesting) return JSON.parse(text);
    this.truncated = true;
    return text.slice(0, limits.text);
  }

  #failed(handle: QuickJSHandle): Outcome {
    // What an interrupted job leaves behind is an error of any kind.
    if (this.#late)
      return failure({
        name: 'TimeLimit',
        message: `the code ran longer than ${limits.ms / 1000} s`,
        line: null,
        stack: '',
      });
    return failure(this.#fault(handle));
  }

  #fault(handle: QuickJSHandle): Fault {
    if (this.#context.typeof(handle) !== 'object')
      return { name: 'Thrown', message: this.#cut(this.#textOf(handle)), line: null, stack: '' };
    const read = (name: string): string => {
      const property = this.#context.getProp(handle, name);
      return this.#context.typeof(property) === 'string' ? this.#context.getString(property).slice(0, 4_000) : '';
    };
    const [name, message, stack] = [read('name'), read('message'), read('stack')];
    const line = new RegExp(`${fileName.replace('.', '\\.')}:(\\d+)`).exec(stack)?.[1];
    return { ...named(name, message), line: line === undefined ? null : Number(line), stack };
  }

  #textOf(handle: QuickJSHandle): string {
    return this.#context.typeof(handle) === 'symbol' ? 'a symbol' : this.#context.getString(handle);
  }

  #cut(text: string): string {
    const kept = text.slice(0, Math.max(0, this.#textLeft));
    this.#textLeft -= kept.length;
    if (kept.length < text.length) this.truncated = true;
    return kept;
  }
}

function failure(error: Fault): Outcome {
  return { ok: false, value: null, value_type: 'undefined', error };
}

/** How deep JSON text is nested, at most: what reads it further on recurses. */
function nesting(text: string): number {
  let [depth, maximum] = [0, 0];
  for (const [mark] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (mark === '[' || mark === '{') maximum = Math.max(maximum, (depth += 1));
    else if (mark === ']' || mark === '}') depth -= 1;
  }
  return maximum;
}

/** The limit under a name of its own. */
function named(name: string, message: string): { name: string; message: string } {
  if (name === 'InternalError' && message === 'out of memory')
    return { name: 'MemoryLimit', message: `the code needed more than ${limits.memory / 1024 / 1024} MB` };
  return { name: name === '' ? 'Error' : name, message };
}
