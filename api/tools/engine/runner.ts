// Runs a tool call: takes a slot, reserves the money, enforces the time limit, validates the result, settles. Every
// protocol uses it.
import { randomUUID } from 'node:crypto';
import type { Logger } from '../../../lib/telemetry.ts';
import { Problem } from '../../../lib/problem.ts';
import {
  chargedOf,
  type Money,
  moneyToNumber,
  isFree,
  parseMoney,
  type Payer,
  type PriceList,
  type PriceVersion,
  type Quota,
  selectPriceAccounts,
  type Spend,
  toolAccount,
  type Wallet,
  zero,
} from '../../billing/index.ts';
import { costOf, withCost, type Cost, type Spending } from './cost.ts';
import type { Slots } from './slots.ts';
import type { ToolMetrics, Via } from './metrics.ts';
import { noArtifact, toolBusy, toolLimit } from '../problems.ts';
import type { Spender } from './spender.ts';
import { TimeLimit } from './time-limit.ts';
import type { Artifact, Progress, Tool, ToolAnswer, ToolContext } from '../tool.ts';

/** A spender that keeps account. */
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
  /** As the tool's input schema gave it. */
  readonly input: Record<string, unknown>;
  readonly payer: Payer;
  readonly session: string | undefined;
  readonly via: Via;
  /** Id of the request, signal that ends with the caller, and log. */
  readonly id: string;
  readonly signal: () => AbortSignal;
  readonly log: Logger;
  /** Refuse an answer without a file, before it is charged for. */
  readonly fileWanted?: boolean;
  readonly report?: (progress: Progress) => void;
  /** Hears the id of each hold before it is made: of the tariff, and of model calls. */
  readonly announce?: (hold: string) => Promise<void>;
}

/** What came of a call. */
export interface ToolRun {
  readonly result: Record<string, unknown>;
  readonly artifact: Artifact | undefined;
  readonly cost: Cost;
  readonly latencyMs: number;
  /** The caller's quota afterwards, where there is one. */
  readonly quota: Quota | undefined;
}

/** Time limit of a call of a tool that sets none. */
export const usualLimitMs = 30_000;
const longMs = 600_000;
const noSpending: Spending & { readonly quota: undefined } = {
  cost: zero,
  charged: zero,
  pending: 0,
  calls: 0,
  quota: undefined,
};

/** How long a call of this tool may take. */
export function limitOf({ limitMs, long }: Tool): number {
  return limitMs ?? (long === true ? longMs : usualLimitMs);
}

export class Runner {
  readonly #options: RunnerOptions;

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /**
   * @throws Problem: of the tool, or too-many-calls, tool-busy, tool-limit, quota-exhausted, ledger-unconfigured ... A
   * call that fails is not charged for.
   */
  async run(call: RunRequest): Promise<ToolRun> {
    const { tool, via } = call;
    const since = performance.now();
    const ended = (outcome: string): void => {
      this.#options.metrics.called(tool.name, via, outcome, (performance.now() - since) / 1000);
    };
    try {
      const ran = await this.#booked(call, since);
      ended('answered');
      this.#options.metrics.cost(tool.name, moneyToNumber(ran.cost.known));
      return ran;
    } catch (error) {
      ended(error instanceof Problem ? error.type.slug : 'fault');
      throw error;
    }
  }

  async #booked(call: RunRequest, since: number): Promise<ToolRun> {
    const { tool, payer } = call;
    const version = this.#options.prices.at();
    const tariff = parseMoney(tool.price);
    const leave = this.#options.slots.take(payer.owner);
    const spend = await this.#reserve(call, tariff, version).catch((error: unknown) => {
      leave();
      throw error;
    });
    const work = new Work(call, this.#options.spenderFor);
    try {
      const { result, artifact } = await work.done(leave);
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
        cost: costOf(tariff, work.spending, chargedOf(tariff, payer, version, tool.name)),
        quota: quota ?? work.spending.quota,
      };
    } catch (error) {
      await spend?.release();
      throw error instanceof Problem ? withCost(error, work.spending) : error;
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
      ttlMs: limitOf(tool) + 60_000,
      ...selectPriceAccounts(payer, toolAccount(tool.name), isFree(version, tool.name) ? tool.name : undefined),
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

/** A tool at work, with its limit of time. */
class Work {
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

  /** `leave` is called when the tool has really ended, which may be after the limit. */
  async done(leave: () => void): Promise<ToolAnswer<Record<string, unknown>>> {
    const { tool, input } = this.#call;
    const limit = limitOf(tool);
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
    const working = tool.run(input, this.#context(clock));
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

  /** Signal and spender are made when they are asked for: most tools need neither. */
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
