// The command for the figures of an app over time: requests, errors, latency, CPU, memory, model cost and earnings.
import { z } from 'zod';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { formatFields, formatTime, type Row } from '../output.ts';
import { defineCommand } from '../program.ts';
import { appArgument, appOption, chooseApp } from './apps.ts';

const measures = {
  requests: z.number().nullable(),
  errors_4xx: z.number().nullable(),
  errors_5xx: z.number().nullable(),
  latency_ms: z.number().nullable(),
  cpu_cores: z.number().nullable(),
  memory_mib: z.number().nullable(),
  model_cost_usd: z.string().nullable(),
  model_costs_pending: z.number().nullable(),
};
const bucket = z.looseObject({ start: z.string(), ...measures });
type Bucket = z.output<typeof bucket>;

const figureList = z.looseObject({
  range: z.string(),
  bucket: z.string(),
  since: z.string(),
  buckets: z.array(bucket),
  earnings: z.array(z.looseObject({ day: z.string(), earnings_usd: z.string().nullable() })),
  total: z.looseObject({ ...measures, earnings_usd: z.string().nullable() }),
  unmeasured: z.record(z.string(), z.string()).default({}),
});
type Figures = z.output<typeof figureList>;

export const figures = defineCommand({
  name: 'figures',
  group: 'Watch',
  summary: 'Show requests, errors, latency, CPU, memory, cost and earnings',
  details: [
    'By hour for 24h and 7d, by day for 30d, in UTC. Hours and days in which nothing happened are left out, except with --json. A hyphen means that nothing was measured, or that it is not known yet.',
    'Latency, CPU and memory are means. A sleeping app uses no CPU and no memory.',
  ],
  arguments: [appArgument],
  options: {
    range: {
      ...{ type: 'string', value: 'RANGE', choices: ['24h', '7d', '30d'] },
      about: '24h, 7d or 30d (default: 24h)',
    },
    app: appOption,
  },
  examples: ['figures', 'figures octo/hello --range 7d', 'moorage figures hello --range 30d --json | jq .total'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const read = await api.call({
      path: `/api/apps/${slug}/figures`,
      query: { range: values.range },
      schema: figureList,
      feature: 'figures',
    });
    const { terminal } = session;
    terminal.printResult(read, () => [
      ...formatTotal(read),
      '',
      ...terminal.formatTable(
        read.buckets.filter(hasHappened).map((one) => toRow(one, read.bucket)),
        read.buckets.length === 0
          ? `The figures begin at ${formatTime(read.since)}, with the first full hour after the app was created.`
          : 'Nothing happened in this time.',
      ),
    ]);
    if (!terminal.isJson)
      for (const reason of Object.values(read.unmeasured)) terminal.printNote(toHarmlessText(reason));
    return undefined;
  },
});

function hasHappened({
  requests,
  cpu_cores: cores,
  model_cost_usd: cost,
  model_costs_pending: pending,
}: Bucket): boolean {
  return [requests, cores, Number(cost), pending].some((value) => value !== null && value !== 0);
}

function formatTotal({ range, total, earnings }: Figures): string[] {
  const days = earnings.filter(({ earnings_usd: amount }) => amount !== null).map(({ day }) => day);
  const span = days.length === 0 ? '' : ` (${[...new Set([days[0], days.at(-1)])].join(' to ')})`;
  return formatFields([
    ['range', range],
    ['requests', show(total.requests)],
    ['errors 4xx', show(total.errors_4xx)],
    ['errors 5xx', show(total.errors_5xx)],
    ['mean latency', show(total.latency_ms, ' ms')],
    ['mean CPU', show(total.cpu_cores, ' cores')],
    ['mean memory', show(total.memory_mib, ' MiB')],
    ['model cost', `${showUsd(total.model_cost_usd)}${formatPending(total.model_costs_pending)}`],
    ['earnings', `${showUsd(total.earnings_usd)}${span}`],
  ]);
}

function toRow(one: Bucket, by: string): Row {
  return {
    time: by === 'day' ? one.start.slice(0, 10) : formatTime(one.start),
    requests: show(one.requests),
    '4xx': show(one.errors_4xx),
    '5xx': show(one.errors_5xx),
    latency: show(one.latency_ms, ' ms'),
    cores: show(one.cpu_cores),
    memory: show(one.memory_mib, ' MiB'),
    'model cost': `${showUsd(one.model_cost_usd)}${formatPending(one.model_costs_pending)}`,
  };
}

function show(value: number | null, unit = ''): string {
  return value === null ? '-' : `${value}${unit}`;
}

function showUsd(amount: string | null): string {
  if (amount === null) return '-';
  return amount.startsWith('-') ? `-$${amount.slice(1)}` : `$${amount}`;
}

function formatPending(count: number | null): string {
  return count === null || count === 0 ? '' : ` and ${count} not known yet`;
}
