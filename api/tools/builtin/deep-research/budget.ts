// Keeps a piece of research within its money and its calls, with what writing it up costs set aside.
import { picoDollars, zero, type Money } from '../../../billing/ledger/money.ts';
import type { Prompt, Reply, Spender } from '../../engine/spender.ts';

/** Thrown when a call could cost more than is left for it: time to write up what there is. */
export class BudgetSpent extends Error {
  override readonly name = 'BudgetSpent';
}

export class Budget {
  readonly #models: Spender;
  readonly #limit: Money;
  readonly #mostCalls: number;
  /** What was spent, with the most that a call can have cost where its cost is not known. */
  #spent: Money = zero;
  /** What calls under way can cost. */
  #held: Money = zero;
  #calls = 0;

  constructor(models: Spender, limit: Money, mostCalls: number) {
    this.#models = models;
    this.#limit = limit;
    this.#mostCalls = mostCalls;
  }

  get calls(): number {
    return this.#calls;
  }

  /** Asks, if the most that it can cost is left beside what is kept. @throws BudgetSpent and what asking throws */
  async ask(prompt: Prompt, keep: Money = zero): Promise<Reply> {
    const most = this.#models.mostOf(prompt);
    if (this.#calls >= this.#mostCalls || this.#spent + this.#held + most + keep > this.#limit)
      throw new BudgetSpent('the budget is spent');
    this.#calls += 1;
    this.#held = picoDollars(this.#held + most);
    let cost = most;
    try {
      const reply = await this.#models.ask(prompt);
      cost = reply.cost ?? most;
      return reply;
    } finally {
      this.#held = picoDollars(this.#held - most);
      this.#spent = picoDollars(this.#spent + cost);
    }
  }
}
