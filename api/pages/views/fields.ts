// Fields of forms with their labels, help and errors, and the summary of what is wrong.
import { type Html, html } from '../../http/index.ts';
import type { FieldError, Problem } from '../../../lib/problem.ts';
import { english } from '../parts.ts';
import type { Visit } from '../visit.ts';

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

export function textField(field: FieldDefinition, errors: readonly FieldError[], visit: Visit): Html {
  const { name, label, help, value, maxLength, type = 'text', autocomplete = 'off' } = field;
  const error = errors.find((one) => one.field === name);
  const described = `${name}-help${error === undefined ? '' : ` ${name}-error`}`;
  return html`<div class="field">
    <label for="${name}"
      >${label}${field.isRequired === true ? '' : html` <small>${visit.text.submit.optional}</small>`}</label
    >
    <p class="help" id="${name}-help">${help}</p>
    ${error === undefined ? '' : html`<p class="error" id="${name}-error">${errorWords(error, visit)}</p>`}
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

/** The words of the problem, as a sentence: they are those of the API. */
export function errorWords({ message, fix }: FieldError, visit: Visit): Html {
  const sentence = `${message.charAt(0).toUpperCase()}${message.slice(1).replace(/\.$/, '')}. ${fix}`;
  return english(sentence, visit);
}

/** What stands above a form that was refused, with links to its fields. */
export function errorSummary(title: string, problem: Problem, fields: readonly string[], visit: Visit): Html {
  const known = problem.errors.filter(({ field }) => fields.includes(field));
  const others = problem.errors.filter(({ field }) => !fields.includes(field));
  const detail = problem.errors.length === 0 ? html`<p>${english(problem.message, visit)}</p>` : '';
  return html`<div class="notice rejected" role="alert" id="errors" tabindex="-1">
    <h2>${title}</h2>
    ${detail}
    <ul>
      ${known.map((error) => html`<li><a href="#${error.field}">${errorWords(error, visit)}</a></li>`)}
      ${others.map((error) => html`<li>${error.field === '' ? '' : html`<code>${error.field}</code>: `}${errorWords(error, visit)}</li>`)}
    </ul>
  </div>`;
}
