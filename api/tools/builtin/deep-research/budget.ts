// The budget of a research call: limits its money and its model calls, and reserves the cost of writing the answer.
import { type Money, picoDollars, zero } from '../../../billing/index.ts';
import type { Prompt, Reply, Spender } from '../../engine/spender.ts';

/** Thrown when a call could cost more than is left for it: time to write up what there is. */
export class BudgetExhausted extends Error {
  override readonly name = 'BudgetExhausted';
}

export class Budget {
  readonly #models: Spender;
  readonly #limit: Money;
  readonly #maxCalls: number;
  /** What was spent, with the maximum that a call can have cost where its cost is not known. */
  #spent: Money = zero;
  /** What calls in progress can cost. */
  #held: Money = zero;
  #calls = 0;

  constructor(models: Spender, limit: Money, maxCalls: number) {
    this.#models = models;
    this.#limit = limit;
    this.#maxCalls = maxCalls;
  }

  get calls(): number {
    return this.#calls;
  }

  /** Asks, if the maximum that it can cost is left beside what is kept. @throws BudgetExhausted and what asking throws */
  async ask(prompt: Prompt, keep: Money = zero): Promise<Reply> {
    const maximum = this.#models.maxCost(prompt);
    if (this.#calls >= this.#maxCalls || this.#spent + this.#held + maximum + keep > this.#limit)
      throw new BudgetExhausted('the budget is exhausted');
    this.#calls += 1;
    this.#held = picoDollars(this.#held + maximum);
    let cost = maximum;
    try {
      const reply = await this.#models.ask(prompt);
      cost = reply.cost ?? maximum;
      return reply;
    } finally {
      this.#held = picoDollars(this.#held - maximum);
      this.#spent = picoDollars(this.#spent + cost);
    }
  }
}
