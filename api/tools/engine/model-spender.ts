// The spender of one tool call: asks models through the metered router, and remembers what each call cost.
import type { Spending } from './cost.ts';
import type { z } from 'zod';
import { type Money, type Payer, type Quota, sumMoney } from '../../billing/index.ts';
import {
  allowModels,
  answerOrThrow,
  type Catalog,
  chooseModels,
  compareModels,
  type comparisonResult,
  createModelCall,
  type Model,
  type ModelCall,
  type ModelServices,
  type Settlement,
  toMessages,
} from '../../models/index.ts';
import type { ComparisonPrompt, Prompt, Reply, Spender } from './spender.ts';

export interface ModelSpenderOptions {
  /** @throws Problem (models-unconfigured, ledger-unavailable) while no model can be asked */
  readonly services: () => Pick<ModelServices, 'router' | 'keys'>;
  readonly maxTokens: ModelServices['maxTokens'];
  readonly catalog: Catalog;
  readonly payer: Payer;
  /** Name of the tool that asks, for the record of uses. */
  readonly tool: string;
  /** Id of the request that calls the tool. */
  readonly request?: string;
  /** Aborted when the call of the tool ends. */
  readonly signal: AbortSignal;
  /** Gets the id of each hold before it is made; see ModelCall. */
  readonly announce?: (hold: string) => Promise<void>;
}

/** What a call has spent so far, and the quota after the last of its model calls. */
export interface QuotaSpending extends Spending {
  readonly quota: Quota | undefined;
}

export class ModelSpender implements Spender {
  readonly #options: ModelSpenderOptions;
  readonly #settlements: Settlement[] = [];
  #quota: Quota | undefined;

  constructor(options: ModelSpenderOptions) {
    this.#options = options;
  }

  get spending(): QuotaSpending {
    return {
      cost: sumMoney(this.#settlements.flatMap(({ cost }) => cost ?? [])),
      charged: sumMoney(this.#settlements.map(({ charged }) => charged)),
      pending: this.#settlements.filter(({ source }) => source === 'pending').length,
      calls: this.#settlements.length,
      quota: this.#quota,
    };
  }

  async ask(prompt: Prompt): Promise<Reply> {
    const { catalog, payer } = this.#options;
    const services = this.#options.services();
    const model = this.#modelOf(prompt);
    allowModels([model], payer, catalog);
    const call = this.#toCall(prompt, model);
    const called = await services.router.chat(call);
    const { settlement } = called;
    this.#remember([settlement], settlement.quota);
    const { text, finishReason, tokensIn, tokensOut } = answerOrThrow(services, call, called);
    return {
      model: model.id,
      text,
      finishReason,
      latencyMs: settlement.latencyMs,
      tokensIn,
      tokensOut,
      cost: settlement.cost,
      costSource: settlement.source === 'none' ? 'pending' : settlement.source,
    };
  }

  async compare(prompt: ComparisonPrompt): Promise<z.output<typeof comparisonResult>> {
    const { catalog, payer } = this.#options;
    const services = this.#options.services();
    const calls = chooseModels(prompt.models, payer, catalog).map((model) => this.#toCall(prompt, model));
    const { result, settlements, quota } = await compareModels(services, calls);
    this.#remember(settlements, quota);
    return result;
  }

  maxCost(prompt: Prompt): Money {
    return this.#toCall(prompt, this.#modelOf(prompt)).maxCost;
  }

  #remember(settlements: readonly Settlement[], quota: Quota | undefined): void {
    this.#settlements.push(...settlements);
    this.#quota = quota ?? this.#quota;
  }

  #modelOf({ model }: Prompt): Model {
    const { catalog } = this.#options;
    return (model === undefined ? undefined : catalog.get(model)) ?? catalog.preferred;
  }

  #toCall({ prompt, system, options, maxTokens, signal }: Omit<Prompt, 'model'>, model: Model): ModelCall {
    const {
      tool,
      payer,
      request,
      announce,
      maxTokens: { default: usual, max },
    } = this.#options;
    return createModelCall({
      kind: 'tool',
      tool,
      payer,
      model,
      messages: toMessages({ prompt, system }),
      options,
      maxTokens: Math.min(maxTokens ?? usual, max),
      signal: signal ?? this.#options.signal,
      request,
      announce,
    });
  }
}
