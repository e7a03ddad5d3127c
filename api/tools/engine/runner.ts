// Runs a tool call for every protocol: takes a slot, reserves the price, enforces the time limit, validates the result
// and settles.
import { randomUUID } from 'node:crypto';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Logger } from '../../../lib/telemetry.ts';
import { Problem } from '../../../lib/problem.ts';
import {
  computeCharge,
  type Money,
  toDollarNumber,
  isFree,
  parseMoney,
  type Payer,
  type PriceList,
  type PriceVersion,
  type Quota,
  selectPriceAccounts,
  type Spend,
  toToolAccount,
  type Wallet,
  zero,
} from '../../billing/index.ts';
import { sumCost, addCost, type Cost, type Spending } from './response.ts';
import { noArtifact, toolBusy, toolLimit, tooManyCalls } from '../problems.ts';
import type { Spender } from './spender.ts';
import type { Artifact, Progress, Tool, ToolAnswer, ToolContext } from '../tool.ts';

/** A spender that sums what it has spent. */
export interface CountingSpender extends Spender {
  readonly spending: Spending & { readonly quota: Quota | undefined };
}

export interface RunnerOptions {
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while no ledger is available */
  readonly wallet: () => Wallet;
  readonly spenderFor: (
    payer: Payer,
    call: Pick<RunRequest, 'announce'> & {
      readonly tool: string;
      readonly request: string;
      readonly signal: AbortSignal;
    },
  ) => CountingSpender;
  readonly slots: Slots;
  readonly metrics: ToolMetrics;
  readonly prices: PriceList;
}

export interface RunRequest {
  readonly tool: Tool;
  /** Validated by the tool's input schema. */
  readonly input: Record<string, unknown>;
  readonly payer: Payer;
  readonly session: string | undefined;
  readonly via: Via;
  /** Id of the request; the signal aborts when the caller disconnects. */
  readonly id: string;
  readonly signal: () => AbortSignal;
  readonly log: Logger;
  /** Reject a result without a file, before it is charged. */
  readonly fileWanted?: boolean;
  readonly report?: (progress: Progress) => void;
  /** Receives the id of each hold before it is created: for the tool's price and for model calls. */
  readonly announce?: (hold: string) => Promise<void>;
}

export interface ToolRun {
  readonly result: Record<string, unknown>;
  readonly artifact: Artifact | undefined;
  readonly cost: Cost;
  readonly latencyMs: number;
  /** The caller's quota after the call, if any. */
  readonly quota: Quota | undefined;
}

/** Time limit of a call of a tool that sets none. */
export const defaultLimitMs = 30_000;
const longMs = 600_000;
const noSpending: Spending & { readonly quota: undefined } = {
  cost: zero,
  charged: zero,
  pending: 0,
  calls: 0,
  quota: undefined,
};

export function getTimeLimitMs({ limitMs, long }: Tool): number {
  return limitMs ?? (long === true ? longMs : defaultLimitMs);
}

export class Runner {
  readonly #options: RunnerOptions;

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /**
   * @throws Problem: the tool's own, or too-many-calls, tool-busy, tool-limit, quota-exhausted, ledger-unconfigured … A
   * failed call is not charged.
   */
  async run(call: RunRequest): Promise<ToolRun> {
    const { tool, via } = call;
    const since = performance.now();
    const ended = (outcome: string): void => {
      this.#options.metrics.recordCall(tool.name, via, outcome, (performance.now() - since) / 1000);
    };
    try {
      const ran = await this.#runAndSettle(call, since);
      ended('answered');
      this.#options.metrics.recordCost(tool.name, toDollarNumber(ran.cost.known));
      return ran;
    } catch (error) {
      ended(error instanceof Problem ? error.type.slug : 'fault');
      throw error;
    }
  }

  async #runAndSettle(call: RunRequest, since: number): Promise<ToolRun> {
    const { tool, payer } = call;
    const version = this.#options.prices.at();
    const tariff = parseMoney(tool.price);
    const leave = this.#options.slots.take(payer.owner);
    const spend = await this.#reserve(call, tariff, version).catch((error: unknown) => {
      leave();
      throw error;
    });
    const work = new RunningCall(call, this.#options.spenderFor);
    try {
      const { result, artifact } = await work.finish(leave);
      const checked = tool.output.parse(result);
      if (call.fileWanted === true && artifact === undefined)
        throw new Problem(
          noArtifact,
          `${tool.name} created no file in this call. Remove raw to get the JSON response.`,
        );
      const latencyMs = Math.round(performance.now() - since);
      const quota = await this.#settle(call, spend, { tariff, version, latencyMs });
      return {
        result: checked,
        artifact,
        latencyMs,
        cost: sumCost(tariff, work.spending, computeCharge(tariff, payer, version, tool.name)),
        quota: quota ?? work.spending.quota,
      };
    } catch (error) {
      await spend?.release();
      throw error instanceof Problem ? addCost(error, work.spending) : error;
    }
  }

  async #reserve(
    { tool, payer, announce }: RunRequest,
    tariff: Money,
    version: PriceVersion,
  ): Promise<Spend | undefined> {
    if (tariff === zero) return undefined;
    const wallet = this.#options.wallet();
    const id = randomUUID();
    await announce?.(id);
    return wallet.reserve({
      id,
      payer,
      amount: tariff,
      ttlMs: getTimeLimitMs(tool) + 60_000,
      ...selectPriceAccounts(payer, toToolAccount(tool.name), isFree(version, tool.name) ? tool.name : undefined),
    });
  }

  async #settle(
    { tool, payer, id }: RunRequest,
    spend: Spend | undefined,
    { tariff, version, latencyMs }: { tariff: Money; version: PriceVersion; latencyMs: number },
  ): Promise<Quota | undefined> {
    return spend?.settle({
      cost: tariff,
      source: 'tariff',
      usage: {
        kind: 'tool',
        tool: tool.name,
        caller: payer.owner,
        latencyMs,
        priceVersion: version.version,
        request: id,
      },
    });
  }
}

/** One call in progress, with its time limit. */
class RunningCall {
  readonly #call: RunRequest;
  readonly #spenderFor: RunnerOptions['spenderFor'];
  readonly #over = new AbortController();
  #signal: AbortSignal | undefined;
  #spender: CountingSpender | undefined;

  constructor(call: RunRequest, spenderFor: RunnerOptions['spenderFor']) {
    this.#call = call;
    this.#spenderFor = spenderFor;
  }

  get spending(): CountingSpender['spending'] {
    return this.#spender?.spending ?? noSpending;
  }

  /** Calls `leave` when the tool has really ended, which may be after the time limit. */
  async finish(leave: () => void): Promise<ToolAnswer<Record<string, unknown>>> {
    const { tool, input } = this.#call;
    const limit = getTimeLimitMs(tool);
    const late = Promise.withResolvers<never>();
    const clock = new TimeLimit(limit, () => {
      const problem = new Problem(
        toolLimit,
        `${tool.name} did not finish within its time limit of ${limit / 1000} s and was stopped.`,
        {
          members: { limit_ms: limit },
        },
      );
      late.reject(problem);
      this.#over.abort(problem);
    });
    // A tool that throws before it returns a promise fails like any other.
    const working = (async () => tool.run(input, this.#context(clock)))();
    void working.catch(() => undefined).finally(leave);
    try {
      return await Promise.race([working, late.promise]);
    } catch (error) {
      if (error instanceof Problem || this.#signal?.aborted !== true) throw error;
      throw new Problem(toolBusy, 'The call was canceled before it finished. Try again.', {
        headers: { 'retry-after': '1' },
        cause: error,
      });
    } finally {
      clock.end();
    }
  }

  /** Creates signal and spender on first access: most tools need neither. */
  #context(clock: TimeLimit): ToolContext {
    const { tool, id, session, payer, log, report } = this.#call;
    const signal = (): AbortSignal => (this.#signal ??= AbortSignal.any([this.#call.signal(), this.#over.signal]));
    const models = (): CountingSpender =>
      (this.#spender ??= this.#spenderFor(payer, {
        tool: tool.name,
        request: id,
        signal: signal(),
        ...(this.#call.announce === undefined ? {} : { announce: this.#call.announce }),
      }));
    return {
      id,
      session,
      log,
      owner: payer.owner,
      keyed: payer.kind === 'key',
      get signal() {
        return signal();
      },
      get models() {
        return models();
      },
      report: report ?? (() => undefined),
      waiting: (wait) => clock.waiting(wait),
    };
  }
}

export interface SlotsOptions {
  readonly maxConcurrent: number;
  readonly maxConcurrentPerCaller: number;
}

/** Limits the calls in progress, per process and per caller. */
export class Slots {
  readonly #options: SlotsOptions;
  /** Calls in progress by caller; callers without any are removed. */
  readonly #callers = new Map<string, number>();
  #taken = 0;

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a slot. @returns a function that releases it, once. @throws Problem (too-many-calls, tool-busy) */
  take(caller: string): () => void {
    const { maxConcurrent, maxConcurrentPerCaller } = this.#options;
    const own = this.#callers.get(caller) ?? 0;
    if (own >= maxConcurrentPerCaller)
      throw new Problem(
        tooManyCalls,
        `You have ${own} calls in progress, which is the limit per caller. Try again in 2 seconds. Calls without a key are counted by network address, those with your own API key for the model router (Authorization: Bearer sk-…) by key.`,
        { headers: { 'retry-after': '2' } },
      );
    if (this.#taken >= maxConcurrent)
      throw new Problem(toolBusy, 'This replica has reached its limit of concurrent calls. Try again in 2 seconds.', {
        headers: { 'retry-after': '2' },
      });
    this.#taken += 1;
    this.#callers.set(caller, own + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#taken -= 1;
      const left = (this.#callers.get(caller) ?? 1) - 1;
      if (left === 0) this.#callers.delete(caller);
      else this.#callers.set(caller, left);
    };
  }
}

/** A call's time limit: a clock that pauses while the call waits in a queue. */
export class TimeLimit {
  readonly #late: () => void;
  #leftMs: number;
  #timer: NodeJS.Timeout | undefined;
  #since = 0;
  #waits = 0;

  /** Starts the clock and calls `late` once when it runs out. */
  constructor(ms: number, late: () => void) {
    this.#leftMs = ms;
    this.#late = late;
    this.#go();
  }

  /** Pauses the clock until `wait` settles. The code that waits must limit the wait. */
  async waiting<Value>(wait: Promise<Value>): Promise<Value> {
    this.#waits += 1;
    if (this.#waits === 1) this.#stop();
    try {
      return await wait;
    } finally {
      this.#waits -= 1;
      if (this.#waits === 0) this.#go();
    }
  }

  end(): void {
    this.#waits = Number.POSITIVE_INFINITY;
    this.#stop();
  }

  #go(): void {
    this.#since = performance.now();
    this.#timer = setTimeout(this.#late, Math.max(0, this.#leftMs));
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#leftMs -= performance.now() - this.#since;
  }
}

/** How a call arrived. */
export type Via = 'http' | 'mcp' | 'a2a' | 'job';

/** Labels are tool names, protocols and problem slugs: sets that cannot grow. */
export interface ToolMetrics {
  /** `outcome`: answered, the slug of the problem, or fault. */
  recordCall(tool: string, via: Via, outcome: string, seconds: number): void;
  recordCost(tool: string, usd: number): void;
}

export function createToolMetrics(registry: Registry, running: () => number): ToolMetrics {
  const registers = [registry];
  const calls = new Counter({
    name: 'moorage_tool_calls_total',
    help: 'Tool calls by outcome.',
    labelNames: ['tool', 'via', 'outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'moorage_tool_call_duration_seconds',
    help: 'Duration of tool calls in seconds.',
    labelNames: ['tool'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600],
    registers,
  });
  const cost = new Counter({
    name: 'moorage_tool_cost_usd_total',
    help: 'Cost of tool calls in USD, model calls included. The ledger has the exact amounts.',
    labelNames: ['tool'],
    registers,
  });
  new Gauge({
    name: 'moorage_tools_running',
    help: 'Tool calls in progress.',
    registers,
    collect() {
      this.set(running());
    },
  });
  return {
    recordCall(tool, via, outcome, took) {
      calls.inc({ tool, via, outcome });
      seconds.observe({ tool }, took);
    },
    recordCost(tool, usd) {
      cost.inc({ tool }, usd);
    },
  };
}
