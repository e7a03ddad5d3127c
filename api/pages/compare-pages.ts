// The page that compares models: one prompt, and the answers of several models with cost and latency. It works as a form,
// and with its script it shows answers as they arrive.
import type { z } from 'zod';
import { Problem } from '../../lib/problem.ts';
import { toDollarNumber } from '../billing/index.ts';
import { type Endpoint, type RequestFields, type Html, html, trustHtml } from '../http/index.ts';
import { type Catalog as ModelList, comparisonAnswer, maxModels, type Model } from '../models/index.ts';
import { type Calls, type Page, createPageEndpoint } from './page.ts';
import { readField, type PageSite, type Visit } from './visit.ts';
import { renderCode, renderEnglish, renderErrorSummary, renderFieldError, renderTextField } from './parts.ts';

/** Bytes of a prompt at its limit, if the form encodes each character as nine bytes. */
const formLimit = 2_000_000;

export function createComparePages(site: PageSite, calls: Calls, list: ModelList): Endpoint[] {
  const compare = calls.find('POST', '/api/compare', comparisonAnswer);
  if (compare === undefined) return [];
  const models = list.models.map(({ id, label, tier, in_per_m: input, out_per_m: output }) => ({
    id,
    label,
    tier,
    inPrice: toDollarNumber(input),
    outPrice: toDollarNumber(output),
  }));
  const createPage = (
    visit: Visit,
    form: CompareForm,
    more: Pick<Parameters<typeof buildComparePage>[0], 'problem' | 'result'> = {},
  ): Page => buildComparePage({ form, models, maximum: maxModels, ...more }, visit);
  return [
    createPageEndpoint(site, {
      path: '/compare',
      operation: 'showComparison',
      summary: 'Compare models',
      render: (_input, visit) => createPage(visit, { prompt: '', models: [] }),
    }),
    createPageEndpoint(site, {
      method: 'POST',
      path: '/compare',
      operation: 'sendComparison',
      summary: 'Compare models by form',
      formLimit,
      async render({ form: fields }, visit, context) {
        const form = readCompareForm(fields);
        const key = (readField(fields, 'key') ?? '').trim();
        try {
          const result = await compare(context, {
            body: { prompt: form.prompt, ...(form.models.length === 0 ? {} : { models: form.models }) },
            ...(key === '' ? {} : { key }),
          });
          return createPage(visit, form, { result });
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          return createPage(visit, form, { problem: error });
        }
      },
    }),
  ];
}

/** Browsers send line breaks as CR LF. */
function readCompareForm(fields: RequestFields): CompareForm {
  const models = Object.hasOwn(fields, 'models') ? [fields['models'] ?? []].flat() : [];
  return { prompt: (readField(fields, 'prompt') ?? '').replaceAll('\r\n', '\n'), models };
}

type Comparison = z.output<typeof comparisonAnswer>;
type Answer = Comparison['results'][number];

export interface CompareForm {
  readonly prompt: string;
  readonly models: readonly string[];
}

export interface CompareContent {
  readonly form: CompareForm;
  readonly models: readonly ListedModel[];
  readonly maximum: number;
  readonly problem?: Problem | undefined;
  readonly result?: Comparison | undefined;
}

/** A model with its prices in USD per million tokens. */
export interface ListedModel extends Pick<Model, 'id' | 'label' | 'tier'> {
  readonly inPrice: number;
  readonly outPrice: number;
}

export function buildComparePage(content: CompareContent, visit: Visit): Page {
  const { text, site } = visit;
  const { problem, result, form } = content;
  return {
    title: text.compare.title,
    description: text.compare.lead,
    scripts: ['compare.js'],
    isPrivate: result !== undefined,
    ...(problem === undefined ? {} : { status: problem.type.status }),
    main: html`<h1>${text.compare.title}</h1>
      <p class="lead">${text.compare.lead}</p>
      ${problem === undefined ? '' : renderErrorSummary(text.compare.errors, problem, ['prompt'], visit)}
      ${renderForm(content, visit)}
      <section id="answers" aria-labelledby="answers-title" ${result === undefined ? html` hidden` : ''}>
        <h2 id="answers-title">${text.compare.answers}</h2>
        <p role="status" id="summary">${result === undefined ? '' : formatSummary(result, visit)}</p>
        <div class="answers" id="columns">
          ${result === undefined ? '' : result.results.map((one) => renderAnswer(one, result, content, visit))}
        </div>
      </section>
      <template id="answer">${renderAnswerTemplate(visit)}</template>
      <section aria-labelledby="api">
        <h2 id="api">${text.compare.api}</h2>
        ${renderCode(`curl ${site.baseUrl}/api/compare --json '{"prompt": "${form.prompt === '' ? 'Why is the sky blue?' : '…'}"}'`, text.compare.api)}
      </section>`,
  };
}

/** The words that the script needs stand in attributes: it knows no language. */
function renderForm({ form, models, maximum, problem }: CompareContent, visit: Visit): Html {
  const { text } = visit;
  const error = problem?.errors.find(({ field }) => field === 'prompt');
  const key = {
    name: 'key',
    label: text.compare.key,
    help: text.compare.keyHelp,
    value: '',
    maxLength: 300,
    type: 'password' as const,
  };
  const isOpen = models.some(({ id, tier }) => tier === 'premium' && form.models.includes(id));
  return html`<form
    class="panel"
    id="compare"
    method="post"
    action="${visit.link('/compare')}"
    data-maximum="${maximum}"
    data-waiting="${text.compare.waiting}"
    data-writing="${text.compare.writing}"
    data-done="${text.compare.done}"
    data-failed="${text.compare.failed}"
    data-stopped="${text.compare.stopped}"
    data-pending="${text.compare.pending}"
    data-toomany="${text.compare.tooMany(String(maximum))}"
    data-language="${visit.language === 'zh' ? 'zh-Hans' : 'en'}"
  >
    <div class="field">
      <label for="prompt">${text.compare.prompt}</label>
      ${error === undefined ? '' : html`<p class="error" id="prompt-error">${renderFieldError(error, visit)}</p>`}
      <textarea id="prompt" name="prompt" rows="4" maxlength="200000" required${error === undefined ? '' : html` aria-invalid="true" aria-describedby="prompt-error"`}>${trustHtml('\n')}${form.prompt}</textarea>
    </div>
    <fieldset>
      <legend>${text.compare.models}</legend>
      <p class="help" id="models-help">${text.compare.modelsHelp(String(maximum))}</p>
      <ul class="choices">
        ${models.map((model) => renderChoice(model, form.models.includes(model.id), visit))}
      </ul>
      <p class="error" id="models-error" role="alert"></p>
    </fieldset>
    <details${isOpen ? html` open` : ''}>
      <summary>${text.compare.key}</summary>
      ${renderTextField(key, [], visit)}
    </details>
    <p class="actions">
      <button type="submit">${text.compare.send}</button>
      <button type="button" class="quiet" id="stop" hidden>${text.compare.stop}</button>
    </p>
    <p class="help">${text.compare.quota}</p>
  </form>`;
}

function renderChoice(
  { id, label, tier, inPrice, outPrice }: ListedModel,
  isChosen: boolean,
  { text, format }: Visit,
): Html {
  return html`<li>
    <label>
      <input
        type="checkbox"
        name="models"
        value="${id}"
        data-label="${label}"
        data-tier="${tier}"
        ${isChosen ? html` checked` : ''}
      />
      <span>${label}</span>
      <small
        >${text.compare.price(format.money(inPrice), format.money(outPrice))}${tier === 'premium' ? html`; ${text.compare.premium}` : ''}</small
      >
    </label>
  </li>`;
}

function renderAnswer(one: Answer, { summary: aggregate }: Comparison, { models }: CompareContent, visit: Visit): Html {
  const { text, format } = visit;
  const { model, error } = one;
  const label = models.find(({ id }) => id === model)?.label ?? model;
  const cost = one.cost_usd === undefined ? text.compare.pending : format.money(one.cost_usd);
  return html`<article class="answer" aria-labelledby="answer-${model}">
    <div class="cardhead">
      <h3 id="answer-${model}">${label}</h3>
      <span class="badge ${error === undefined ? 'live' : 'rejected'}"
        >${error === undefined ? text.compare.done : text.compare.failed}</span
      >
    </div>
    <div class="text">${error === undefined ? one.answer : renderEnglish(error, visit)}</div>
    ${renderFigures({ cost, latency: format.duration(one.latency_ms), tokens: formatTokens(one, visit), marks: listMarks(model, aggregate, visit).join(' · ') }, visit)}
  </article>`;
}

function listMarks(model: string, aggregate: Comparison['summary'], { text }: Visit): string[] {
  return [
    ...(model === aggregate?.cheapest ? [text.compare.cheapest] : []),
    ...(model === aggregate?.fastest ? [text.compare.fastest] : []),
  ];
}

function formatTokens({ tokens_in: input, tokens_out: output }: Answer, { text, format }: Visit): string {
  return input === undefined || output === undefined
    ? ''
    : text.compare.tokensOf(format.integer(input), format.integer(output));
}

interface Figures {
  readonly cost: string;
  readonly latency: string;
  readonly tokens: string;
  readonly marks: string;
}

function renderFigures({ cost, latency, tokens, marks }: Figures, { text }: Visit): Html {
  return html`<dl class="figures">
      <div>
        <dt>${text.compare.cost}</dt>
        <dd data-part="cost">${cost}</dd>
      </div>
      <div>
        <dt>${text.compare.latency}</dt>
        <dd data-part="latency">${latency}</dd>
      </div>
      <div>
        <dt>${text.compare.tokens}</dt>
        <dd data-part="tokens">${tokens}</dd>
      </div>
    </dl>
    <p class="marks" data-part="marks">${marks}</p>`;
}

/** The template that the script fills, with the same structure as the server's answers. */
function renderAnswerTemplate(visit: Visit): Html {
  return html`<article class="answer">
    <div class="cardhead">
      <h3></h3>
      <span class="badge in_pipeline" data-part="state"></span>
    </div>
    <div class="text" aria-live="off"></div>
    ${renderFigures({ cost: '', latency: '', tokens: '', marks: '' }, visit)}
  </article>`;
}

function formatSummary({ summary: aggregate }: Comparison, { text, format }: Visit): string {
  if (aggregate === null) return '';
  const { total_cost_usd: total, cost_spread: spread } = aggregate;
  const ratio = /^([\d.∞]+)x /.exec(spread)?.[1];
  return `${text.compare.total}: ${format.money(total)}${ratio === undefined || ratio === '1' ? '' : `, ${text.compare.spread(ratio)}`}`;
}
