// The price list: what is in effect, and what is announced.
import { formatUsd } from '../../billing/index.ts';
import { type Html, html } from '../../http/index.ts';
import type { PriceListRecord } from '../data.ts';
import type { Page } from '../page.ts';
import { english, table } from '../parts.ts';
import type { Visit } from '../visit.ts';

type Version = PriceListRecord['versions'][number];

export function pricesPage({ current, versions }: PriceListRecord, visit: Visit): Page {
  const { text } = visit;
  const [now, ...others] = [...versions].sort((a, b) => Number(b.version === current) - Number(a.version === current));
  return {
    title: text.prices.title,
    description: text.prices.lead,
    json: '/api/prices',
    main: html`<h1>${text.prices.title}</h1>
      <p class="lead">${text.prices.lead}</p>
      ${now === undefined ? '' : section(now, text.prices.current, visit)}
      ${others.map((version) => section(version, text.prices.other, visit))}`,
  };
}

function section({ version, from, note, free, ...prices }: Version, title: string, visit: Visit): Html {
  const { text, format } = visit;
  const name = (item: string): Html => html`<code>${item}</code>`;
  return html`<section>
    <h2>${title}: ${version}</h2>
    <p>
      ${text.prices.from} ${format.date(`${from}T00:00:00Z`)}.
      ${note === null || note === undefined ? '' : english(note, visit)}
    </p>
    ${table(
      text.prices.title,
      [{ title: text.prices.item }, { title: text.prices.price, number: true }],
      [
        [text.prices.use, formatUsd(prices.use_usd)],
        [text.prices.call, priceOf('call', prices.call_usd, free, visit)],
        [text.prices.margin, format.percent(Number(prices.model_margin))],
        ...Object.entries(prices.tools).map(([tool, price]) => [name(tool), priceOf(tool, price, free, visit)]),
      ],
    )}
  </section>`;
}

function priceOf(item: string, price: string, free: readonly string[], { text }: Visit): string {
  return free.includes(item) ? `${formatUsd(price)} (${text.prices.free})` : formatUsd(price);
}
