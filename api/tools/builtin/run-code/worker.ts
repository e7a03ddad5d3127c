// Runs JavaScript in QuickJS (WebAssembly). Runs in a worker process: QuickJS limits time and memory, and the process
// limits what QuickJS misses.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import variant from '@jitl/quickjs-wasmfile-release-sync';
import {
  newQuickJSWASMModuleFromVariant,
  type QuickJSSyncVariant,
  type QuickJSContext,
  type QuickJSHandle,
  type QuickJSRuntime,
} from 'quickjs-emscripten-core';
import { createFailure, defaultLimitMs, type CodeTask, type Fault, type Log, type Outcome } from './outcome.ts';
import { answerPlatform } from './platform.ts';

const limits = { memory: 64 * 1024 * 1024, stack: 256 * 1024, text: 200_000, logs: 1_000, nesting: 200 };
const fileName = 'code.js';
/**
 * JS_EVAL_TYPE_GLOBAL with JS_EVAL_FLAG_ASYNC: a script that can use await anywhere. Returns a promise of {value}.
 */
const asyncScript = 1 << 7;
/** JS_EVAL_FLAG_COMPILE_ONLY: runs nothing. */
const compileOnly = 1 << 5;
const [prelude = '', platform = '', intl = ''] = ['prelude.js', 'platform.js', 'intl.js'].map((name) =>
  readFileSync(new URL(name, import.meta.url), 'utf8'),
);

export default async function run({ code, input, limitMs = defaultLimitMs }: CodeTask): Promise<unknown> {
  // A fresh module per call: code that corrupts its memory cannot affect the next call.
  const quickJs = await newQuickJSWASMModuleFromVariant(variant as unknown as QuickJSSyncVariant);
  const runtime = quickJs.newRuntime({ maxStackSizeBytes: limits.stack });
  runtime.setMemoryLimit(limits.memory);
  const context = runtime.newContext();
  const started = performance.now();
  const sandbox = new Sandbox(runtime, context, { input, limitMs });
  const outcome = await sandbox.run(code);
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
  readonly #serializers: QuickJSHandle;
  readonly #timers: QuickJSHandle;
  readonly #limitMs: number;
  #textLeft = limits.text;
  #late = false;
  #deadline = Number.POSITIVE_INFINITY;

  constructor(
    runtime: QuickJSRuntime,
    context: QuickJSContext,
    { input, limitMs }: { readonly input: unknown; readonly limitMs: number },
  ) {
    this.#runtime = runtime;
    this.#context = context;
    this.#limitMs = limitMs;
    const write = context.newFunction('write', (level, text) => {
      this.logs.push({ level: context.getString(level), text: this.#cut(context.getString(text)) });
      const open = this.logs.length < limits.logs && this.#textLeft > 0;
      if (!open) this.truncated = true;
      return open ? context.true : context.false;
    });
    const ask = context.newFunction('ask', (name, words) => {
      // The engine counts its own steps, not the time spent here.
      this.#late ||= performance.now() > this.#deadline;
      if (this.#late) throw new Error('the time is over');
      return context.newString(answerPlatform(context.getString(name), context.getString(words)));
    });
    this.#serializers = this.#runScript(prelude, write);
    this.#timers = this.#runScript(platform, ask);
    this.#runScript(intl, this.#timers);
    if (input !== undefined) {
      const parse = context.unwrapResult(context.evalCode('JSON.parse'));
      context.setProp(
        context.global,
        'input',
        context.unwrapResult(context.callFunction(parse, context.undefined, context.newString(JSON.stringify(input)))),
      );
    }
  }

  async run(code: string): Promise<Outcome> {
    this.#deadline = performance.now() + this.#limitMs;
    this.#runtime.setInterruptHandler(() => (this.#late ||= performance.now() > this.#deadline));
    try {
      return await this.#evaluate(this.#toRunnable(code));
    } catch (error) {
      // The stack of this process overflows before that of QuickJS.
      if (error instanceof RangeError)
        return createFailure({ name: 'InternalError', message: 'stack overflow', line: null, stack: '' });
      throw error;
    }
  }

  /** Evaluates one of our scripts, which is a function, and calls it. */
  #runScript(script: string, given: QuickJSHandle): QuickJSHandle {
    const setUp = this.#context.unwrapResult(this.#context.evalCode(script, 'prelude.js'));
    return this.#context.unwrapResult(this.#context.callFunction(setUp, this.#context.undefined, given));
  }

  /** Wraps code with a top-level return in a function: a script cannot return. Line numbers stay the same. */
  #toRunnable(code: string): string {
    const compiled = this.#context.evalCode(code, fileName, asyncScript | compileOnly);
    if (compiled.error === undefined) return code;
    return /return/.test(this.#readFault(compiled.error).message) ? `(async () => {${code}\n})()` : code;
  }

  async #evaluate(code: string): Promise<Outcome> {
    const value = await this.#settle(this.#context.evalCode(code, fileName, asyncScript));
    if ('error' in value) return this.#toFailure(value.error);
    const inner = await this.#settle({ value: this.#context.getProp(value.value, 'value') });
    if ('error' in inner) return this.#toFailure(inner.error);
    const rest = await this.#finishTimers();
    if (rest !== undefined) return this.#toFailure(rest.error);
    const json = this.#serialize('toJson', inner.value);
    if (json.error !== undefined) return this.#toFailure(json.error);
    const text = this.#serialize('toText', inner.value);
    if (text.error !== undefined) return this.#toFailure(text.error);
    return {
      ok: true,
      value: this.#parseJson(json.value),
      value_type: this.#context.typeof(inner.value),
      value_text: this.#cutText(this.#context.getString(text.value)),
      error: null,
    };
  }

  #serialize(how: 'toJson' | 'toText', value: QuickJSHandle): ReturnType<QuickJSContext['callFunction']> {
    return this.#context.callFunction(this.#context.getProp(this.#serializers, how), this.#context.undefined, value);
  }

  /** Waits until a promise settles, running jobs and timers. Other values are returned unchanged. */
  async #settle(
    result: { value: QuickJSHandle; error?: undefined } | { error: QuickJSHandle },
  ): Promise<{ value: QuickJSHandle } | { error: QuickJSHandle }> {
    if (result.error !== undefined) return { error: result.error };
    for (;;) {
      const jobs = this.#runtime.executePendingJobs();
      if (jobs.error !== undefined) return { error: jobs.error };
      const state = this.#context.getPromiseState(result.value);
      if (state.type === 'fulfilled') return { value: state.value };
      if (state.type === 'rejected') return { error: state.error };
      const timer = await this.#fireNextTimer();
      if (timer === 'none') return { error: this.#createNeverSettles() };
      if (timer !== 'fired') return timer;
    }
  }

  /** Runs the remaining timers to their end, as a program does. */
  async #finishTimers(): Promise<{ error: QuickJSHandle } | undefined> {
    for (;;) {
      const jobs = this.#runtime.executePendingJobs();
      if (jobs.error !== undefined) return { error: jobs.error };
      const timer = await this.#fireNextTimer();
      if (timer === 'none') return undefined;
      if (timer !== 'fired') return timer;
    }
  }

  /** Waits for the next timer and calls it. */
  async #fireNextTimer(): Promise<'none' | 'fired' | { error: QuickJSHandle }> {
    const due = this.#callTimers('nextDue');
    if (due.error !== undefined) return { error: due.error };
    if (this.#context.typeof(due.value) !== 'number') return 'none';
    const ms = this.#context.getNumber(due.value);
    if (performance.now() + ms > this.#deadline) this.#late = true;
    else if (ms > 0) await sleep(ms);
    if (this.#late) return { error: this.#context.undefined };
    const fired = this.#callTimers('fire');
    return fired.error === undefined ? 'fired' : { error: fired.error };
  }

  #callTimers(name: 'nextDue' | 'fire'): ReturnType<QuickJSContext['callFunction']> {
    return this.#context.callFunction(this.#context.getProp(this.#timers, name), this.#context.undefined);
  }

  #createNeverSettles(): QuickJSHandle {
    return this.#context.newError({
      name: 'Error',
      message: 'the code awaits a promise that never settles; the network is not available',
    });
  }

  #parseJson(handle: QuickJSHandle): unknown {
    if (this.#context.typeof(handle) !== 'string') return null;
    const text = this.#context.getString(handle);
    if (text.length <= limits.text && measureNesting(text) <= limits.nesting) return JSON.parse(text);
    this.truncated = true;
    return text.slice(0, limits.text);
  }

  #toFailure(handle: QuickJSHandle): Outcome {
    // An interrupted job can leave any kind of error.
    if (this.#late)
      return createFailure({
        name: 'TimeLimit',
        message: `the code ran longer than ${this.#limitMs / 1000} s`,
        line: null,
        stack: '',
      });
    return createFailure(this.#readFault(handle));
  }

  #readFault(handle: QuickJSHandle): Fault {
    if (this.#context.typeof(handle) !== 'object')
      return { name: 'Thrown', message: this.#cut(this.#readText(handle)), line: null, stack: '' };
    const read = (name: string): string => {
      const property = this.#context.getProp(handle, name);
      return this.#context.typeof(property) === 'string' ? this.#context.getString(property).slice(0, 4_000) : '';
    };
    const [name, message, stack] = [read('name'), read('message'), read('stack')];
    const line = new RegExp(`${fileName.replace('.', '\\.')}:(\\d+)`).exec(stack)?.[1];
    return { ...nameLimit(name, message), line: line === undefined ? null : Number(line), stack };
  }

  #readText(handle: QuickJSHandle): string {
    return this.#context.typeof(handle) === 'symbol' ? 'a symbol' : this.#context.getString(handle);
  }

  #cutText(text: string): string {
    if (text.length > limits.text) this.truncated = true;
    return text.slice(0, limits.text);
  }

  #cut(text: string): string {
    const kept = text.slice(0, Math.max(0, this.#textLeft));
    this.#textLeft -= kept.length;
    if (kept.length < text.length) this.truncated = true;
    return kept;
  }
}

/** Measures the nesting of JSON text: its later readers recurse. */
function measureNesting(text: string): number {
  let [depth, maximum] = [0, 0];
  for (const [mark] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (mark === '[' || mark === '{') maximum = Math.max(maximum, (depth += 1));
    else if (mark === ']' || mark === '}') depth -= 1;
  }
  return maximum;
}

/** Names the memory limit, which QuickJS reports as an internal error. */
function nameLimit(name: string, message: string): { name: string; message: string } {
  if (name === 'InternalError' && message === 'out of memory')
    return { name: 'MemoryLimit', message: `the code needed more than ${limits.memory / 1024 / 1024} MB` };
  return { name: name === '' ? 'Error' : name, message };
}
