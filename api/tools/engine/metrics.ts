// Metrics of tools. Labels are tool names, protocols and problem slugs: sets that cannot grow.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** How a call arrived. */
export type Via = 'http' | 'mcp' | 'a2a' | 'job';

export interface ToolMetrics {
  /** `outcome`: answered, the slug of the problem, or fault. */
  called(tool: string, via: Via, outcome: string, seconds: number): void;
  cost(tool: string, usd: number): void;
}

export function toolMetrics(registry: Registry, running: () => number): ToolMetrics {
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
    called(tool, via, outcome, took) {
      calls.inc({ tool, via, outcome });
      seconds.observe({ tool }, took);
    },
    cost(tool, usd) {
      cost.inc({ tool }, usd);
    },
  };
}
