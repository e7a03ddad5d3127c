// The ledger as a few lines of plain arithmetic, to compare the real one with.
import type { HoldState } from '../../../api/billing/ledger/statements.ts';

export interface ModelHold {
  readonly caller: string;
  readonly amount: bigint;
  readonly expiresAt: number;
  state: HoldState;
  cost: bigint;
  /** Whether someone still looks for the cost. */
  sought: boolean;
}

const reserved = (hold: ModelHold): boolean => hold.state === 'open' || hold.state === 'pending';

export class Model {
  readonly holds = new Map<number, ModelHold>();
  readonly limits: { readonly caller: bigint; readonly platform: bigint };
  now = 0;

  constructor(limits: { caller: bigint; platform: bigint }) {
    this.limits = limits;
  }

  used(caller?: string): bigint {
    return this.#sum(
      (hold) => hold.state === 'settled' && (caller === undefined || hold.caller === caller),
      (hold) => hold.cost,
    );
  }

  held(caller?: string): bigint {
    return this.#sum(
      (hold) => reserved(hold) && (caller === undefined || hold.caller === caller),
      (hold) => hold.amount,
    );
  }

  reserve(id: number, caller: string, amount: bigint, ttl: number): string {
    const known = this.holds.get(id);
    if (known !== undefined) return known.caller === caller && known.amount === amount ? 'replayed' : 'conflict';
    if (this.used(caller) + this.held(caller) + amount > this.limits.caller) return 'refused by debit';
    if (this.used() + this.held() + amount > this.limits.platform) return 'refused by credit';
    this.holds.set(id, { caller, amount, expiresAt: this.now + ttl, state: 'open', cost: 0n, sought: false });
    return 'reserved';
  }

  settle(id: number, cost: bigint): string {
    const hold = this.holds.get(id);
    if (hold === undefined) return 'unknown';
    if (hold.state === 'settled') return `replayed ${hold.cost.toString()}`;
    Object.assign(hold, { state: 'settled', cost, sought: false });
    return `settled ${cost.toString()}`;
  }

  release(id: number): string {
    const hold = this.holds.get(id);
    if (hold === undefined) return 'unknown';
    if (hold.state === 'settled' || hold.state === 'abandoned') return hold.state;
    if (hold.state === 'released') return 'replayed';
    Object.assign(hold, { state: 'released', sought: false });
    return 'released';
  }

  pend(id: number): string {
    const hold = this.holds.get(id);
    if (hold === undefined) return 'unknown';
    if (hold.state === 'settled' || hold.state === 'abandoned') return hold.state;
    if (hold.state === 'open') hold.state = 'pending';
    hold.sought = true;
    return 'pending';
  }

  expire(): number {
    const due = [...this.holds.values()].filter((hold) => hold.state === 'open' && hold.expiresAt <= this.now);
    for (const hold of due) Object.assign(hold, { state: 'pending', sought: true });
    return due.length;
  }

  abandon(id: number): void {
    const hold = this.holds.get(id);
    if (hold?.sought !== true) return;
    hold.sought = false;
    if (hold.state === 'pending') hold.state = 'abandoned';
  }

  #sum(which: (hold: ModelHold) => boolean, what: (hold: ModelHold) => bigint): bigint {
    return [...this.holds.values()].filter(which).reduce((total, hold) => total + what(hold), 0n);
  }
}
