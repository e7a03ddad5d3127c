// Metrics of model calls. Labels are ids from models.yaml, kinds and outcomes from here: sets that cannot grow.
import { Counter, Histogram, type Registry } from 'prom-client';
import type { Payer } from '../billing/index.ts';

type Kind = Payer['kind'];

/** How a call ended: answered, or the kind of its failure. */
export interface ModelMetrics {
  called(model: string, kind: Kind, outcome: string, seconds: number): void;
  tokens(model: string, direction: 'in' | 'out', count: number): void;
  cost(model: string, kind: Kind, usd: number): void;
  pending(model: string): void;
  estimated(count: number): void;
}

export function createModelMetrics(registry: Registry): ModelMetrics {
  const registers = [registry];
  const calls = new Counter({
    name: 'moorage_model_calls_total',
    help: 'Model calls by outcome.',
    labelNames: ['model', 'caller', 'outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'moorage_model_call_duration_seconds',
    help: 'Time until the model router completed its response.',
    labelNames: ['model'],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160],
    registers,
  });
  const tokens = new Counter({
    name: 'moorage_model_tokens_total',
    help: 'Tokens as counted by the model router.',
    labelNames: ['model', 'direction'],
    registers,
  });
  const cost = new Counter({
    name: 'moorage_model_cost_usd_total',
    help: 'Cost billed by the model router, in USD. The ledger has the exact amounts.',
    labelNames: ['model', 'caller'],
    registers,
  });
  const pending = new Counter({
    name: 'moorage_model_costs_pending_total',
    help: 'Model calls whose cost was not known when they ended.',
    labelNames: ['model'],
    registers,
  });
  const estimated = new Counter({
    name: 'moorage_model_costs_estimated_total',
    help: 'Model calls that were settled at an estimate, since their cost was never found.',
    registers,
  });
  return {
    called(model, caller, outcome, took) {
      calls.inc({ model, caller, outcome });
      seconds.observe({ model }, took);
    },
    tokens(model, direction, count) {
      tokens.inc({ model, direction }, count);
    },
    cost(model, caller, usd) {
      cost.inc({ model, caller }, usd);
    },
    pending(model) {
      pending.inc({ model });
    },
    estimated(count) {
      estimated.inc(count);
    },
  };
}
