// How a tool calls models: every call goes through the metered router, and its cost is part of the tool call's cost.
import type { z } from 'zod';
import { type CostSource, type Money, type Payer, type Quota, sumMoney } from '../../billing/index.ts';
import {
  allowModels,
  getAnswerOrThrow,
  type AnswerOptions,
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
import type { Spending } from './response.ts';
import { Problem } from '../../../lib/problem.ts';
import { toolFailed } from '../problems.ts';

export interface Prompt {
  /** Id of a model of /api/models; the default model when left out. */
  readonly model?: string | undefined;
  readonly prompt: string;
  readonly system?: string | undefined;
  readonly options?: AnswerOptions | undefined;
  readonly maxTokens?: number | undefined;
  /** Replaces the tool call's signal, for a model call that must end earlier. */
  readonly signal?: AbortSignal;
}

export interface Reply {
  readonly model: string;
  readonly text: string;
  /** Why the answer ended: stop, or length if it was cut off. */
  readonly finishReason: string | undefined;
  readonly latencyMs: number;
  readonly tokensIn: number | undefined;
  readonly tokensOut: number | undefined;
  /** Absent while it is pending. */
  readonly cost: Money | undefined;
  readonly costSource: CostSource | 'pending';
}

/** One prompt for several models; without `models`, for a spread of them. */
export interface ComparisonPrompt extends Omit<Prompt, 'model'> {
  readonly models?: readonly string[] | undefined;
}

/** Calls models on behalf of a caller. */
export interface Spender {
  /** @throws Problem (quota-exhausted, key-required, models-unconfigured, model-failed, ...) */
  ask(prompt: Prompt): Promise<Reply>;
  /** Like POST /api/compare. @throws Problem if no model could be called at all */
  compare(prompt: ComparisonPrompt): Promise<z.output<typeof comparisonResult>>;
  /** The maximum cost of this prompt, which is what is reserved. For tools with a budget. */
  maxCost(prompt: Prompt): Money;
}

export interface ModelSpenderOptions {
  /** @throws Problem (models-unconfigured, ledger-unavailable) while no model can be asked */
  readonly services: () => Pick<ModelServices, 'router' | 'keys'>;
  readonly maxTokens: ModelServices['maxTokens'];
  readonly catalog: Catalog;
  readonly payer: Payer;
  /** Name of the calling tool, for the usage record. */
  readonly tool: string;
  /** Id of the request that calls the tool. */
  readonly request?: string;
  /** Aborted when the call of the tool ends. */
  readonly signal: AbortSignal;
  /** Receives the id of each hold before it is created; see ModelCall. */
  readonly announce?: (hold: string) => Promise<void>;
}

/** What a call has spent so far, and the quota after the last of its model calls. */
export interface QuotaSpending extends Spending {
  readonly quota: Quota | undefined;
}

/** The spender of one tool call: sums the cost of its model calls. */
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
    const { text, finishReason, tokensIn, tokensOut } = getAnswerOrThrow(services, call, called);
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
    return (model === undefined ? undefined : catalog.byId.get(model)) ?? catalog.preferred;
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

export interface JsonQuestion<Answer> extends Prompt {
  readonly schema: z.ZodType<Answer>;
}

/**
 * Asks a model for JSON of a given schema. If the answer does not match, asks once more and lists its faults.
 * @throws Problem (tool-failed) if the second answer is wrong too, and whatever `ask` throws
 */
export async function askJson<Answer>(
  ask: (prompt: Prompt) => Promise<Reply>,
  { schema, ...question }: JsonQuestion<Answer>,
): Promise<{ readonly value: Answer; readonly model: string }> {
  const first = await ask(question);
  const read = readJson(schema, first.text);
  if (read.faults === undefined) return { value: read.value, model: first.model };
  const again = await ask({
    ...question,
    prompt: `${question.prompt}\n\nYou answered this before:\n${first.text.slice(0, 8_000)}\n\nIt is not what was asked for: ${read.faults}. Answer again, with the whole JSON and nothing else.`,
  });
  const repaired = readJson(schema, again.text);
  if (repaired.faults === undefined) return { value: repaired.value, model: again.model };
  throw new Problem(
    toolFailed,
    `The model ${again.model} did not answer in the required format (${repaired.faults}). Try again, or use another model.`,
    { members: { model: again.model } },
  );
}

type JsonReading<Answer> = { readonly value: Answer; readonly faults?: undefined } | { readonly faults: string };

/** Models put words and fences around JSON whatever the prompt says. */
function readJson<Answer>(schema: z.ZodType<Answer>, text: string): JsonReading<Answer> {
  const json = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
  if (json === '') return { faults: 'there is no JSON object in it' };
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch (error) {
    return { faults: `it is not JSON: ${error instanceof Error ? error.message : 'malformed'}` };
  }
  const read = schema.safeParse(parsed);
  if (read.success) return { value: read.data };
  return {
    faults: read.error.issues
      .slice(0, 5)
      .map(({ path, message }) => `${path.join('.')}: ${message}`)
      .join('; '),
  };
}
