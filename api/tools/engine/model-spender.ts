// The spender of one tool call: asks models through the meter, and remembers what each call cost.
import type { Spending } from './cost.ts';
import type { z } from 'zod';
import { sumMoney, type Money } from '../../billing/ledger/money.ts';
import type { Catalog, Model } from '../../models/catalog.ts';
import { ask, mostOf, type Question } from '../../models/chat.ts';
import { chooseModels, compareModels, type comparisonResult } from '../../models/compare/comparison.ts';
import type { Booked } from '../../models/meter.ts';
import type { Payer } from '../../billing/payer.ts';
import type { Quota } from '../../billing/quota.ts';
import { answerOf } from '../../models/refuse.ts';
import { allowModels } from '../../models/request.ts';
import type { ModelServices } from '../../models/services.ts';
import type { ComparisonPrompt, Prompt, Reply, Spender } from './spender.ts';

export interface ModelSpenderOptions {
  /** @throws Problem (models-unconfigured, ledger-unavailable) while no model can be asked */
  readonly services: () => Pick<ModelServices, 'meter' | 'keys'>;
  readonly maxTokens: ModelServices['maxTokens'];
  readonly catalog: Catalog;
  readonly payer: Payer;
  /** Name of the tool that asks, for the record of uses. */
  readonly tool: string;
  /** Aborted when the call of the tool ends. */
  readonly signal: AbortSignal;
  /** Hears the id of each hold before it is made; see Question. */
  readonly announce?: (hold: string) => Promise<void>;
}

/** What a call has spent so far, and the quota after the last of its model calls. */
export interface QuotaSpending extends Spending {
  readonly quota: Quota | undefined;
}

export class ModelSpender implements Spender {
  readonly #options: ModelSpenderOptions;
  readonly #booked: Booked[] = [];
  #quota: Quota | undefined;

  constructor(options: ModelSpenderOptions) {
    this.#options = options;
  }

  get spending(): QuotaSpending {
    return {
      cost: sumMoney(this.#booked.flatMap(({ cost }) => cost ?? [])),
      pending: this.#booked.filter(({ source }) => source === 'pending').length,
      calls: this.#booked.length,
      quota: this.#quota,
    };
  }

  async ask(prompt: Prompt): Promise<Reply> {
    const { catalog, payer } = this.#options;
    const services = this.#options.services();
    const model = this.#modelOf(prompt);
    allowModels([model], payer, catalog);
    const question = { ...this.#question(prompt), model };
    const called = await ask(services.meter, question);
    const { booked } = called;
    this.#remember([booked], booked.quota);
    const { text, finishReason, tokensIn, tokensOut } = answerOf(services, question, called);
    return {
      model: model.id,
      text,
      finishReason,
      latencyMs: booked.latencyMs,
      tokensIn,
      tokensOut,
      cost: booked.cost,
      costSource: booked.source === 'none' ? 'pending' : booked.source,
    };
  }

  async compare(prompt: ComparisonPrompt): Promise<z.output<typeof comparisonResult>> {
    const { catalog, payer } = this.#options;
    const services = this.#options.services();
    const { result, booked, quota } = await compareModels(
      services,
      chooseModels(prompt.models, payer, catalog),
      this.#question(prompt),
    );
    this.#remember(booked, quota);
    return result;
  }

  maxCost(prompt: Prompt): Money {
    return mostOf({ ...this.#question(prompt), model: this.#modelOf(prompt) });
  }

  #remember(booked: readonly Booked[], quota: Quota | undefined): void {
    this.#booked.push(...booked);
    this.#quota = quota ?? this.#quota;
  }

  #modelOf({ model }: Prompt): Model {
    const { catalog } = this.#options;
    return (model === undefined ? undefined : catalog.get(model)) ?? catalog.preferred;
  }

  #question({ prompt, system, maxTokens, signal }: Omit<Prompt, 'model'>): Omit<Question, 'model'> {
    const {
      tool,
      payer,
      announce,
      maxTokens: { usual, most },
    } = this.#options;
    return {
      kind: 'tool',
      tool,
      payer,
      prompt,
      system,
      maxTokens: Math.min(maxTokens ?? usual, most),
      signal: signal ?? this.#options.signal,
      ...(announce === undefined ? {} : { announce }),
    };
  }
}
