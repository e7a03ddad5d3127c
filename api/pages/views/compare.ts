// The comparison: one prompt to several models, their answers side by side with cost and latency.
import { type Html, html, trustHtml } from '../../http/index.ts';
import type { z } from 'zod';
import type { Problem } from '../../../lib/problem.ts';
import type { comparisonResult, Model } from '../../models/index.ts';
import type { Page } from '../page.ts';
import { code, english } from '../parts.ts';
import type { Visit } from '../visit.ts';
import { errorSummary, errorWords, textField } from './fields.ts';

type Comparison = z.output<typeof comparisonResult>;
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

export function comparePage(content: CompareContent, visit: Visit): Page {
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
      ${problem === undefined ? '' : errorSummary(text.compare.errors, problem, ['prompt'], visit)}
      ${compareForm(content, visit)}
      <section id="answers" aria-labelledby="answers-title" ${result === undefined ? html` hidden` : ''}>
        <h2 id="answers-title">${text.compare.answers}</h2>
        <p role="status" id="summary">${result === undefined ? '' : summary(result, visit)}</p>
        <div class="answers" id="columns">
          ${result === undefined ? '' : result.results.map((one) => answer(one, result, content, visit))}
        </div>
      </section>
      <template id="answer">${emptyAnswer(visit)}</template>
      <section aria-labelledby="api">
        <h2 id="api">${text.compare.api}</h2>
        ${code(`curl ${site.baseUrl}/api/compare --json '{"prompt": "${form.prompt === '' ? 'Why is the sky blue?' : '…'}"}'`, text.compare.api)}
      </section>`,
  };
}

/** The words that the script needs stand in attributes: it knows no language. */
function compareForm({ form, models, maximum, problem }: CompareContent, visit: Visit): Html {
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
      ${error === undefined ? '' : html`<p class="error" id="prompt-error">${errorWords(error, visit)}</p>`}
      <textarea id="prompt" name="prompt" rows="4" maxlength="200000" required${error === undefined ? '' : html` aria-invalid="true" aria-describedby="prompt-error"`}>${trustHtml('\n')}${form.prompt}</textarea>
    </div>
    <fieldset>
      <legend>${text.compare.models}</legend>
      <p class="help" id="models-help">${text.compare.modelsHelp(String(maximum))}</p>
      <ul class="choices">
        ${models.map((model) => choice(model, form.models.includes(model.id), visit))}
      </ul>
      <p class="error" id="models-error" role="alert"></p>
    </fieldset>
    <details${isOpen ? html` open` : ''}>
      <summary>${text.compare.key}</summary>
      ${textField(key, [], visit)}
    </details>
    <p class="actions">
      <button type="submit">${text.compare.send}</button>
      <button type="button" class="quiet" id="stop" hidden>${text.compare.stop}</button>
    </p>
    <p class="help">${text.compare.quota}</p>
  </form>`;
}

function choice({ id, label, tier, inPrice, outPrice }: ListedModel, isChosen: boolean, { text, format }: Visit): Html {
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

function answer(one: Answer, { summary: aggregate }: Comparison, { models }: CompareContent, visit: Visit): Html {
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
    <div class="text">${error === undefined ? one.answer : english(error, visit)}</div>
    ${figures({ cost, latency: format.duration(one.latency_ms), tokens: tokensOf(one, visit), marks: listMarks(model, aggregate, visit).join(' · ') }, visit)}
  </article>`;
}

function listMarks(model: string, aggregate: Comparison['summary'], { text }: Visit): string[] {
  return [
    ...(model === aggregate?.cheapest ? [text.compare.cheapest] : []),
    ...(model === aggregate?.fastest ? [text.compare.fastest] : []),
  ];
}

function tokensOf({ tokens_in: input, tokens_out: output }: Answer, { text, format }: Visit): string {
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

function figures({ cost, latency, tokens, marks }: Figures, { text }: Visit): Html {
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

/** What the script fills: the same as the server writes. */
function emptyAnswer(visit: Visit): Html {
  return html`<article class="answer">
    <div class="cardhead">
      <h3></h3>
      <span class="badge in_pipeline" data-part="state"></span>
    </div>
    <div class="text" aria-live="off"></div>
    ${figures({ cost: '', latency: '', tokens: '', marks: '' }, visit)}
  </article>`;
}

function summary({ summary: aggregate }: Comparison, { text, format }: Visit): string {
  if (aggregate === null) return '';
  const { total_cost_usd: total, cost_spread: spread } = aggregate;
  const ratio = /^([\d.∞]+)x /.exec(spread)?.[1];
  return `${text.compare.total}: ${format.money(total)}${ratio === undefined || ratio === '1' ? '' : `, ${text.compare.spread(ratio)}`}`;
}
