// The tools of an app on its page: how a client connects to them, what each takes, and a form that calls it.
import type { z } from 'zod';
import { mcpEnvironmentHeader } from '../../crds/names.ts';
import type { appToolResult, AppTools, ListedAppTool } from '../apps/index.ts';
import { type Html, html, type RequestFields } from '../http/index.ts';
import { renderAuthored, renderCode, renderEnglish } from './parts.ts';
import { readField, type Visit } from './visit.ts';

type ToolResult = z.output<typeof appToolResult>;

/** A call by the form: what was sent, and what came of it. */
export interface ToolAttempt {
  readonly tool: string;
  readonly fields: RequestFields;
  readonly result?: ToolResult;
  /** Why it was not carried out. */
  readonly fault?: string;
}

/** Renders the section; nothing for an app that offers no tools. */
export function renderTools(tools: AppTools | undefined, attempt: ToolAttempt | undefined, visit: Visit): Html {
  if (tools === undefined || (tools.tools.length === 0 && tools.fault === undefined)) return html``;
  const { text, format } = visit;
  const { fault, answered_at: answered } = tools;
  return html`<section aria-labelledby="tools">
    <h2 id="tools">${text.tools.title}</h2>
    <p>${text.tools.lead}</p>
    ${fault === undefined ? '' : html`<p class="notice rejected">${renderEnglish(fault, visit)}</p>`}
    ${answered === undefined ? '' : html`<p class="meta"><span>${text.tools.answered} ${format.dateTime(answered)}</span></p>`}
    <h3>${text.tools.connect}</h3>
    ${renderCode(formatClientFile(tools), text.tools.connect)}
    ${renderCode(`claude mcp add --transport http ${tools.app} ${tools.mcp_url}`, text.tools.connect)}
    ${renderVariables(tools, visit)} ${tools.tools.map((tool) => renderTool(tool, tools, attempt, visit))}
  </section>`;
}

/** The file in which most clients list their servers. */
function formatClientFile({ app, mcp_url: url, variables }: AppTools): string {
  const values = Object.fromEntries(variables.map(({ name }) => [name, '…']));
  const headers = variables.length === 0 ? {} : { headers: { [mcpEnvironmentHeader]: JSON.stringify(values) } };
  return JSON.stringify({ mcpServers: { [app]: { type: 'http', url, ...headers } } }, undefined, 2);
}

function renderVariables({ variables }: AppTools, { text }: Visit): Html {
  if (variables.length === 0) return html``;
  return html`<p>${text.tools.variables}</p>
    <ul>
      ${variables.map(
        ({ name, description, required }) =>
          html`<li>
            <code>${name}</code>${required ? html` <small>${text.tools.required}</small>` : ''}
            ${description === undefined ? '' : renderAuthored(description)}
          </li>`,
      )}
    </ul>`;
}

function renderTool(tool: ListedAppTool, { app }: AppTools, attempt: ToolAttempt | undefined, visit: Visit): Html {
  const { text, link } = visit;
  const own = attempt?.tool === tool.name ? attempt : undefined;
  return html`<details id="tool-${tool.name}" ${own === undefined ? '' : html`open`}>
    <summary><code>${tool.name}</code> ${renderAuthored(tool.title)}</summary>
    ${tool.description === '' ? '' : html`<p>${renderAuthored(tool.description)}</p>`}
    <form method="post" action="${link(`/apps/${encodeURIComponent(app)}`)}#tool-${tool.name}">
      <input type="hidden" name="tool" value="${tool.name}" />
      ${listArguments(tool).map((argument) => renderArgument(argument, tool.name, own, visit))}
      <button type="submit">${text.tools.call}</button>
    </form>
    ${own === undefined ? '' : renderAttempt(own, visit)}
    <details>
      <summary>${text.tools.schema}</summary>
      ${renderCode(JSON.stringify(tool.input_schema, undefined, 2), text.tools.schema)}
    </details>
  </details>`;
}

function renderAttempt({ result, fault }: ToolAttempt, visit: Visit): Html {
  const { text, format } = visit;
  if (result === undefined)
    return html`<p class="notice rejected" role="status">${renderEnglish(fault ?? '', visit)}</p>`;
  const cost = result.cost_usd === undefined ? '' : format.money(result.cost_usd);
  return html`<p role="status">
      ${result.is_error ? text.tools.failed : text.tools.answer}
      <small>${cost}, ${format.duration(result.latency_ms)}</small>
    </p>
    ${renderCode(JSON.stringify(result.result, undefined, 2), text.tools.answer)}`;
}

// The fields of the form: one for each property at the top of a schema.

interface ToolArgument {
  readonly name: string;
  readonly description: string;
  readonly isRequired: boolean;
  readonly kind: 'text' | 'number' | 'choice' | 'json';
  /** JSON of each value that is allowed. */
  readonly choices: readonly string[];
}

function listArguments({ input_schema: schema }: ListedAppTool): ToolArgument[] {
  const required = Array.isArray(schema['required']) ? (schema['required'] as unknown[]) : [];
  return Object.entries(toObject(schema['properties'])).map(([name, value]): ToolArgument => {
    const { type, enum: values, description } = toObject(value);
    const listed = Array.isArray(values) ? values : type === 'boolean' ? [true, false] : [];
    const choices = listed.map((each: unknown) => JSON.stringify(each));
    return {
      name,
      description: typeof description === 'string' ? description : '',
      isRequired: required.includes(name),
      kind: choices.length > 0 ? 'choice' : type === 'string' ? 'text' : isNumeric(type) ? 'number' : 'json',
      choices,
    };
  });
}

function isNumeric(type: unknown): boolean {
  return type === 'number' || type === 'integer';
}

function toObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}

function toFieldName(argument: string): string {
  return `argument.${argument}`;
}

function renderArgument(argument: ToolArgument, tool: string, attempt: ToolAttempt | undefined, visit: Visit): Html {
  const { name, description, isRequired } = argument;
  const id = `${tool}-${name}`;
  const label = html`<label for="${id}"
      ><code>${name}</code>${isRequired ? '' : html` <small>${visit.text.submit.optional}</small>`}</label
    >
    ${description === '' ? '' : html`<p class="help">${renderAuthored(description)}</p>`}`;
  const value = readField(attempt?.fields ?? {}, toFieldName(name)) ?? '';
  return html`<div class="field">${label} ${renderInput(argument, id, value)}</div>`;
}

function renderInput({ name, kind, isRequired, choices }: ToolArgument, id: string, value: string): Html {
  const field = toFieldName(name);
  const required = isRequired ? html`required` : '';
  if (kind === 'choice')
    return html`<select id="${id}" name="${field}" ${required}>
      ${isRequired ? '' : html`<option value=""></option>`}
      ${choices.map((each) => html`<option value="${each}" ${each === value ? html`selected` : ''}>${each}</option>`)}
    </select>`;
  if (kind === 'number')
    return html`<input id="${id}" name="${field}" type="number" step="any" value="${value}" ${required} />`;
  return html`<textarea id="${id}" name="${field}" rows="${kind === 'json' ? '3' : '1'}" spellcheck="false" ${required}>
${value}</textarea>`;
}

/**
 * Reads the arguments of a call from the form. An empty field that is not required is left out.
 *
 * @returns the name of a field whose text is not JSON as `invalid`
 */
export function readToolArguments(
  tool: ListedAppTool,
  fields: RequestFields,
): { readonly values: Readonly<Record<string, unknown>>; readonly invalid?: string } {
  const values: Record<string, unknown> = {};
  for (const { name, kind, isRequired } of listArguments(tool)) {
    const text = (readField(fields, toFieldName(name)) ?? '').replaceAll('\r\n', '\n');
    if (text.trim() === '' && !(isRequired && kind === 'text')) continue;
    const value = kind === 'text' ? text : parseValue(text);
    if (value === notJson) return { values, invalid: name };
    values[name] = value;
  }
  return { values };
}

const notJson = Symbol('not JSON');

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return notJson;
  }
}
