// Runs code in QuickJS (WebAssembly). Runs in a worker process: QuickJS limits time and memory, and the process limits
// what QuickJS misses.
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
import { failure, type Fault, type Log, type Outcome } from './outcome.ts';
import { answerPlatform } from './platform.ts';

const limits = { ms: 5_000, memory: 64 * 1024 * 1024, stack: 256 * 1024, text: 200_000, logs: 1_000, nesting: 200 };
const fileName = 'code.js';
/**
 * JS_EVAL_TYPE_GLOBAL with JS_EVAL_FLAG_ASYNC: a script in which await may stand anywhere. Gives a promise of {value}.
 */
const asyncScript = 1 << 7;
/** JS_EVAL_FLAG_COMPILE_ONLY: nothing of it runs. */
const compileOnly = 1 << 5;
const [prelude = '', platform = '', clone = '', intl = ''] = ['prelude.js', 'platform.js', 'clone.js', 'intl.js'].map(
  (name) => readFileSync(new URL(name, import.meta.url), 'utf8'),
);

export default async function run({ code, input }: { code: string; input: unknown }): Promise<unknown> {
  // Fresh for each call: code that breaks its memory breaks nothing for the next.
  const quickJs = await newQuickJSWASMModuleFromVariant(variant as unknown as QuickJSSyncVariant);
  const runtime = quickJs.newRuntime({ maxStackSizeBytes: limits.stack });
  runtime.setMemoryLimit(limits.memory);
  const context = runtime.newContext();
  const started = performance.now();
  const sandbox = new Sandbox(runtime, context, input);
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
  readonly #show: QuickJSHandle;
  readonly #timers: QuickJSHandle;
  #textLeft = limits.text;
  #late = false;
  #deadline = Number.POSITIVE_INFINITY;

  constructor(runtime: QuickJSRuntime, context: QuickJSContext, input: unknown) {
    this.#runtime = runtime;
    this.#context = context;
    const write = context.newFunction('write', (level, text) => {
      this.logs.push({ level: context.getString(level), text: this.#cut(context.getString(text)) });
      const open = this.logs.length < limits.logs && this.#textLeft > 0;
      if (!open) this.truncated = true;
      return open ? context.true : context.false;
    });
    const ask = context.newFunction('ask', (name, words) => {
      // The engine counts its own steps, not the time of ours.
      this.#late ||= performance.now() > this.#deadline;
      if (this.#late) throw new Error('the time is over');
      return context.newString(answerPlatform(context.getString(name), context.getString(words)));
    });
    this.#show = this.#prepared(prelude, write);
    this.#timers = this.#prepared(platform, ask);
    this.#prepared(clone, this.#timers);
    this.#prepared(intl, this.#timers);
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
    this.#deadline = performance.now() + limits.ms;
    this.#runtime.setInterruptHandler(() => (this.#late ||= performance.now() > this.#deadline));
    try {
      return await this.#evaluated(this.#runnable(code));
    } catch (error) {
      // The stack of this process is at its end before that of QuickJS.
      if (error instanceof RangeError)
        return failure({ name: 'InternalError', message: 'stack overflow', line: null, stack: '' });
      throw error;
    }
  }

  /** Calls the function that a script of ours is. */
  #prepared(script: string, given: QuickJSHandle): QuickJSHandle {
    const setUp = this.#context.unwrapResult(this.#context.evalCode(script, 'prelude.js'));
    return this.#context.unwrapResult(this.#context.callFunction(setUp, this.#context.undefined, given));
  }

  /** As it is, or as the body of a function where it returns: a script does not. Lines keep their numbers. */
  #runnable(code: string): string {
    const compiled = this.#context.evalCode(code, fileName, asyncScript | compileOnly);
    if (compiled.error === undefined) return code;
    return /return/.test(this.#fault(compiled.error).message) ? `(async () => {${code}\n})()` : code;
  }

  async #evaluated(code: string): Promise<Outcome> {
    const value = await this.#settled(this.#context.evalCode(code, fileName, asyncScript));
    if ('error' in value) return this.#failed(value.error);
    const inner = await this.#settled({ value: this.#context.getProp(value.value, 'value') });
    if ('error' in inner) return this.#failed(inner.error);
    const rest = await this.#finished();
    if (rest !== undefined) return this.#failed(rest.error);
    const json = this.#shown('toJson', inner.value);
    if (json.error !== undefined) return this.#failed(json.error);
    const text = this.#shown('toText', inner.value);
    if (text.error !== undefined) return this.#failed(text.error);
    return {
      ok: true,
      value: this.#jsonOf(json.value),
      value_type: this.#context.typeof(inner.value),
      value_text: this.#cutText(this.#context.getString(text.value)),
      error: null,
    };
  }

  #shown(how: 'toJson' | 'toText', value: QuickJSHandle): ReturnType<QuickJSContext['callFunction']> {
    return this.#context.callFunction(this.#context.getProp(this.#show, how), this.#context.undefined, value);
  }

  /** What a promise became, once all jobs are done and timers have come; what is no promise stays. */
  async #settled(
    result: { value: QuickJSHandle; error?: undefined } | { error: QuickJSHandle },
  ): Promise<{ value: QuickJSHandle } | { error: QuickJSHandle }> {
    if (result.error !== undefined) return { error: result.error };
    for (;;) {
      const jobs = this.#runtime.executePendingJobs();
      if (jobs.error !== undefined) return { error: jobs.error };
      const state = this.#context.getPromiseState(result.value);
      if (state.type === 'fulfilled') return { value: state.value };
      if (state.type === 'rejected') return { error: state.error };
      const timer = await this.#timer();
      if (timer === 'none') return { error: this.#neverSettles() };
      if (timer !== 'fired') return timer;
    }
  }

  /** Lets what timers still do come to its end, as a program does. */
  async #finished(): Promise<{ error: QuickJSHandle } | undefined> {
    for (;;) {
      const jobs = this.#runtime.executePendingJobs();
      if (jobs.error !== undefined) return { error: jobs.error };
      const timer = await this.#timer();
      if (timer === 'none') return undefined;
      if (timer !== 'fired') return timer;
    }
  }

  /** Waits for the next timer, and calls it. */
  async #timer(): Promise<'none' | 'fired' | { error: QuickJSHandle }> {
    const due = this.#onTimers('nextDue');
    if (due.error !== undefined) return { error: due.error };
    if (this.#context.typeof(due.value) !== 'number') return 'none';
    const ms = this.#context.getNumber(due.value);
    if (performance.now() + ms > this.#deadline) this.#late = true;
    else if (ms > 0) await sleep(ms);
    if (this.#late) return { error: this.#context.undefined };
    const fired = this.#onTimers('fire');
    return fired.error === undefined ? 'fired' : { error: fired.error };
  }

  #onTimers(name: 'nextDue' | 'fire'): ReturnType<QuickJSContext['callFunction']> {
    return this.#context.callFunction(this.#context.getProp(this.#timers, name), this.#context.undefined);
  }

  #neverSettles(): QuickJSHandle {
    return this.#context.newError({
      name: 'Error',
      message: 'the code awaits a promise that never settles; the network is not available',
    });
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
