// Parts that several pages are made of.
import { type Html, html, trustHtml } from '../http/index.ts';
import type { Project, Rate } from './data.ts';
import type { Visit } from './visit.ts';

/** Text that a stranger wrote, kept from turning the direction of what stands around it. */
export function authored(text: string): Html {
  return html`<bdi>${text}</bdi>`;
}

/** English of the API inside a page of whichever language. */
export function english(text: string, { language }: Visit): Html {
  return language === 'en' ? html`${text}` : html`<span lang="en">${text}</span>`;
}

/** The Chinese where the page is Chinese and there is any. */
export function translated({ language }: Visit, text: string, chinese: string | null | undefined): string {
  return language === 'zh' && chinese !== null && chinese !== undefined && chinese !== '' ? chinese : text;
}

/** A link to an address that a stranger may have given: only to the web. */
export function outward(url: string, content: Html | string): Html {
  const isWeb = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
  return isWeb ? html`<a href="${url}" rel="noopener nofollow">${content}</a>` : html`${content}`;
}

/** The path of a link of ours: what the API gives as whole addresses. */
export function pathOf(url: string, baseUrl: string): string {
  return url.startsWith(`${baseUrl}/`) ? url.slice(baseUrl.length) : url;
}

export function badge(state: Project['state'], { text }: Visit): Html {
  return html`<span class="badge ${state}">${text.state[state]}</span>`;
}

/** Nothing was measured, or there is nothing. */
export function missing({ text }: Visit): Html {
  return html`<span class="none"
    ><span aria-hidden="true">–</span><span class="hidden">${text.site.unmeasured}</span></span
  >`;
}

export function orMissing(
  value: number | null | undefined,
  format: (value: number) => string | Html,
  visit: Visit,
): Html | string {
  return value === null || value === undefined ? missing(visit) : format(value);
}

/** `87.5%` with its interval and count. */
export function rateCell({ passed, n, rate, interval }: Rate, visit: Visit): Html {
  const { format } = visit;
  if (rate === null || rate === undefined) return missing(visit);
  const range =
    interval === null || interval === undefined
      ? ''
      : html`<br /><small>${format.percent(interval[0])}–${format.percent(interval[1])}</small>`;
  return html`${format.percent(rate)} <small>${passed}/${n}</small>${range}`;
}

export interface Column {
  readonly title: string;
  readonly number?: boolean;
}

/** A table that scrolls by itself where it is too wide. The first cell of a row is its header. */
export function table(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly (Html | string)[])[],
): Html {
  const kind = (index: number): Html => trustHtml(columns[index]?.number === true ? ' class="number"' : '');
  return html`<div class="scroll" role="group" tabindex="0" aria-label="${caption}">
    <table>
      <caption class="hidden">
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map(({ title }, index) => html`<th scope="col" ${kind(index)}>${title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          ([first = '', ...rest]) =>
            html`<tr>
              <th scope="row">${first}</th>
              ${rest.map((cell, index) => html`<td${kind(index + 1)}>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Names with their values; those without a value are left out. */
export function facts(entries: readonly (readonly [name: string, value: Html | string | undefined])[]): Html {
  return html`<dl class="facts">
    ${entries.map(([name, value]) =>
      value === undefined
        ? ''
        : html`<div>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
    )}
  </dl>`;
}

/** Lines for a terminal. The label names them for a screen reader. */
export function code(text: string, label: string, opensAt: 'start' | 'end' = 'start'): Html {
  return html`<pre
    class="code${opensAt === 'end' ? ' at-end' : ''}"
    tabindex="0"
    role="group"
    aria-label="${label}"
  ><code>${text}</code></pre>`;
}

/** A short id of a commit. */
export function commit(id: string): Html {
  return html`<code title="${id}">${id.slice(0, 8)}</code>`;
}

/** A hidden field that keeps the language of a page when its form is sent with GET. */
export function languageField({ named, language }: Visit): Html {
  return named ? html`<input type="hidden" name="lang" value="${language}" />` : html``;
}
