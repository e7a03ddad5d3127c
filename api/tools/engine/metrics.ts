// Metrics of tools. Labels are names from the registry, the ways in, and slugs of problems: sets that cannot grow.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** By which way a call came. */
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
    help: 'Calls of tools by how they ended.',
    labelNames: ['tool', 'via', 'outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'moorage_tool_call_duration_seconds',
    help: 'Seconds until a tool had answered.',
    labelNames: ['tool'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600],
    registers,
  });
  const cost = new Counter({
    name: 'moorage_tool_cost_usd_total',
    help: 'What calls have cost, model calls included. The ledger has it exactly.',
    labelNames: ['tool'],
    registers,
  });
  new Gauge({
    name: 'moorage_tools_running',
    help: 'Calls of tools under way.',
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
