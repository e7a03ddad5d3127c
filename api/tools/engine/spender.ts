// How a tool asks models: prompts, replies and their cost. Implemented over the meter, so that each call is charged.
import type { z } from 'zod';
import type { CostSource, Money } from '../../billing/index.ts';
import type { AnswerOptions, comparisonResult } from '../../models/index.ts';

export interface Prompt {
  /** Id of a model of /api/models; the default model when left out. */
  readonly model?: string | undefined;
  readonly prompt: string;
  readonly system?: string | undefined;
  readonly options?: AnswerOptions | undefined;
  readonly maxTokens?: number | undefined;
  /** Replaces the call's own signal, for one that must end earlier. */
  readonly signal?: AbortSignal;
}

export interface Reply {
  readonly model: string;
  readonly text: string;
  /** Why the answer ends: stop, or length when it was cut. */
  readonly finishReason: string | undefined;
  readonly latencyMs: number;
  readonly tokensIn: number | undefined;
  readonly tokensOut: number | undefined;
  /** Absent while it is pending. */
  readonly cost: Money | undefined;
  readonly costSource: CostSource | 'pending';
}

/** One prompt for several models; a spread of them where none is named. */
export interface ComparisonPrompt extends Omit<Prompt, 'model'> {
  readonly models?: readonly string[] | undefined;
}

/** Asks models on behalf of a caller. What it spends is part of the cost of the tool's call. */
export interface Spender {
  /** @throws Problem (quota-exhausted, key-required, models-unconfigured, model-failed, ...) */
  ask(prompt: Prompt): Promise<Reply>;
  /** As POST /api/compare. @throws Problem when no model could even be asked */
  compare(prompt: ComparisonPrompt): Promise<z.output<typeof comparisonResult>>;
  /** The maximum that this prompt can cost: what is reserved for it. For tools that keep to a budget. */
  maxCost(prompt: Prompt): Money;
}
