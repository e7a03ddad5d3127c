// The parts that several pages share: text, links, tables, code and form fields.
import { type Html, html, trustHtml } from '../http/index.ts';
import type { StatusView } from '../apps/index.ts';
import type { ProjectEntry, Rate } from '../catalog/index.ts';
import type { Visit } from './visit.ts';
import type { FieldError, Problem } from '../../lib/problem.ts';

/** A stranger's text, isolated so that it cannot change the writing direction around it. */
export function renderAuthored(text: string): Html {
  return html`<bdi>${text}</bdi>`;
}

/** English text of the API in a page of any language. */
export function renderEnglish(text: string, { language }: Visit): Html {
  return language === 'en' ? html`${text}` : html`<span lang="en">${text}</span>`;
}

/** The Chinese text if the page is Chinese and there is one. */
export function chooseTranslation({ language }: Visit, text: string, chinese: string | null): string {
  return language === 'zh' && chinese !== null && chinese !== '' ? chinese : text;
}

/** A link to an address from a stranger. Only web addresses become links. */
export function renderOutwardLink(url: string, content: Html | string): Html {
  const isWeb = URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
  return isWeb ? html`<a href="${url}" rel="noopener nofollow">${content}</a>` : html`${content}`;
}

/** Shortens a URL of this site, as the API reports it, to its path. */
export function toPath(url: string, baseUrl: string): string {
  return url.startsWith(`${baseUrl}/`) ? url.slice(baseUrl.length) : url;
}

export function renderBadge(state: ProjectEntry['state'], { text }: Visit): Html {
  return html`<span class="badge ${state}">${text.state[state]}</span>`;
}

/** A value that was not measured or does not exist. */
export function renderMissing({ text }: Visit): Html {
  return html`<span class="none"
    ><span aria-hidden="true">–</span><span class="hidden">${text.site.unmeasured}</span></span
  >`;
}

export function formatOrMissing(
  value: number | null,
  format: (value: number) => string | Html,
  visit: Visit,
): Html | string {
  return value === null ? renderMissing(visit) : format(value);
}

/** `87.5%` with its interval and count. */
export function renderRate({ passed, n, rate, interval }: Rate, visit: Visit): Html {
  const { format } = visit;
  if (rate === null) return renderMissing(visit);
  const range =
    interval === null ? '' : html`<br /><small>${format.percent(interval[0])}–${format.percent(interval[1])}</small>`;
  return html`${format.percent(rate)} <small>${passed}/${n}</small>${range}`;
}

export interface Column {
  readonly title: string;
  readonly number?: boolean;
}

/** A table that scrolls if it is too wide. The first cell of a row is its header. */
export function renderTable(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly (Html | string)[])[],
): Html {
  const renderClass = (index: number): Html => trustHtml(columns[index]?.number === true ? ' class="number"' : '');
  return html`<div class="scroll" role="group" tabindex="0" aria-label="${caption}">
    <table>
      <caption class="hidden">
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map(({ title }, index) => html`<th scope="col" ${renderClass(index)}>${title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          ([first = '', ...rest]) =>
            html`<tr>
              <th scope="row">${first}</th>
              ${rest.map((cell, index) => html`<td${renderClass(index + 1)}>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** Names with their values. Leaves out names without a value. */
export function renderFacts(entries: readonly (readonly [name: string, value: Html | string | undefined])[]): Html {
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

/** Lines for a terminal. A screen reader reads the label. */
export function renderCode(text: string, label: string, opensAt: 'start' | 'end' = 'start'): Html {
  return html`<pre
    class="code${opensAt === 'end' ? ' at-end' : ''}"
    tabindex="0"
    role="group"
    aria-label="${label}"
  ><code>${text}</code></pre>`;
}

/** The short id of a commit. */
export function renderCommit(id: string): Html {
  return html`<code title="${id}">${id.slice(0, 8)}</code>`;
}

/** A hidden field that keeps the language when a form is sent with GET. */
export function renderLanguageField({ isNamed, language }: Visit): Html {
  return isNamed ? html`<input type="hidden" name="lang" value="${language}" />` : html``;
}

// Fields of forms with their labels, help and errors, and the summary of what is wrong.

export interface FieldDefinition {
  readonly name: string;
  readonly label: string;
  readonly help: string;
  readonly value: string;
  readonly isRequired?: boolean;
  readonly maxLength: number;
  readonly type?: 'text' | 'password';
  readonly autocomplete?: string;
}

export function renderTextField(field: FieldDefinition, errors: readonly FieldError[], visit: Visit): Html {
  const { name, label, help, value, maxLength, type = 'text', autocomplete = 'off' } = field;
  const error = errors.find((one) => one.field === name);
  const described = `${name}-help${error === undefined ? '' : ` ${name}-error`}`;
  return html`<div class="field">
    <label for="${name}"
      >${label}${field.isRequired === true ? '' : html` <small>${visit.text.submit.optional}</small>`}</label
    >
    <p class="help" id="${name}-help">${help}</p>
    ${error === undefined ? '' : html`<p class="error" id="${name}-error">${renderFieldError(error, visit)}</p>`}
    <input
      id="${name}"
      name="${name}"
      type="${type}"
      value="${value}"
      maxlength="${maxLength}"
      autocomplete="${autocomplete}"
      autocapitalize="none"
      spellcheck="false"
      aria-describedby="${described}"
      ${field.isRequired === true ? html`required` : ''}
      ${error === undefined ? '' : html`aria-invalid="true"`}
    />
  </div>`;
}

/** The words of the API's problem as a sentence. */
export function renderFieldError({ message, fix }: FieldError, visit: Visit): Html {
  const sentence = `${message.charAt(0).toUpperCase()}${message.slice(1).replace(/\.$/, '')}. ${fix}`;
  return renderEnglish(sentence, visit);
}

/** The errors above a rejected form, with links to its fields. */
export function renderErrorSummary(title: string, problem: Problem, fields: readonly string[], visit: Visit): Html {
  const known = problem.errors.filter(({ field }) => fields.includes(field));
  const others = problem.errors.filter(({ field }) => !fields.includes(field));
  const detail = problem.errors.length === 0 ? html`<p>${renderEnglish(problem.message, visit)}</p>` : '';
  return html`<div class="notice rejected" role="alert" id="errors" tabindex="-1">
    <h2>${title}</h2>
    ${detail}
    <ul>
      ${known.map((error) => html`<li><a href="#${error.field}">${renderFieldError(error, visit)}</a></li>`)}
      ${others.map((error) => html`<li>${error.field === '' ? '' : html`<code>${error.field}</code>: `}${renderFieldError(error, visit)}</li>`)}
    </ul>
  </div>`;
}

/** Each component of an app that has several, with its state. */
export function renderComponents(components: StatusView['components'], visit: Visit): Html | undefined {
  const { text, format } = visit;
  if (components === undefined) return undefined;
  return html`<ul>
    ${components.map(({ name, kind, ready, restarts = 0, message }) => {
      const often = restarts === 0 ? '' : html` · ${text.app.restarts(format.integer(restarts))}`;
      const why = message === undefined ? '' : html`<br /><small>${renderEnglish(message, visit)}</small>`;
      return html`<li>
        <code>${name}</code> (${kind}): ${text.app.componentState[ready ? 'ready' : 'other']}${often}${why}
      </li>`;
    })}
  </ul>`;
}
