// Pages of what the API answers: endpoints, tools, problems, metrics.
import { buildOpenApi } from '../../api/protocols/discovery/openapi.ts';
import { serviceVersion } from '../../api/http/index.ts';
import { buildExampleUrl } from '../../api/tools/list.ts';
import { backingServices } from '../../api/tools/services/backing-services.ts';
import type { Tool } from '../../api/tools/tool.ts';
import { z } from 'zod';
import {
  describeLimits,
  describeType,
  formatCode,
  joinBlocks,
  listFields,
  renderList,
  renderTable,
  renderTableOr,
  type Field,
  type Page,
  type Schema,
} from './page.ts';
import { baseUrl, describeProduct, type Product } from './product.ts';

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>;
}

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content & { readonly description: string }>>;
}

interface EndpointOperation {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

const json = 'application/json';

function renderOperation({ path, method, operation }: EndpointOperation): string {
  const { summary, description, responses } = operation;
  const answer = responses['200'];
  const types = Object.keys(answer?.content ?? {});
  return joinBlocks(
    `### ${method.toUpperCase()} ${path}`,
    `**${summary}.** ${description}`,
    renderTableOr('No input.', ['input', 'in', 'type', 'limits', 'meaning'], buildInputRows(operation)),
    `Returns 200 (${types.map(formatCode).join(', ')}): ${answer?.description ?? ''}`,
    renderAnswerTable(getSchema(answer)),
    renderProblemLine(responses),
  );
}

function getSchema(content: Content | undefined): Schema {
  return content?.content?.[json]?.schema ?? {};
}

function buildInputRows({ parameters, requestBody }: Operation): string[][] {
  const named = parameters.map(({ name, in: part, required, description = '', schema }) =>
    buildInputRow({ path: name, required, schema: { ...schema, description } }, part),
  );
  return [...named, ...listFields(mergeForms(getSchema(requestBody))).map((field) => buildInputRow(field, 'body'))];
}

/** One object with the fields of all forms of a body; required are those that every form requires. */
function mergeForms(schema: Schema): Schema {
  const { oneOf: forms, ...rest } = schema;
  if (forms === undefined) return schema;
  return {
    ...rest,
    properties: Object.assign({}, ...forms.map(({ properties }) => properties)) as NonNullable<Schema['properties']>,
    required: forms
      .map(({ required = [] }) => required)
      .reduce((all, names) => all.filter((name) => names.includes(name))),
  };
}

function buildInputRow(
  { path, schema, required }: Pick<Field, 'path' | 'schema' | 'required'>,
  part: string,
): string[] {
  return [
    formatCode(path) + (required ? ' (required)' : ''),
    part,
    describeType(schema),
    describeLimits(schema),
    schema.description ?? '',
  ];
}

function renderAnswerTable(schema: Schema): string {
  const [items, before] = schema.type === 'array' ? [schema.items ?? {}, '[].'] : [schema, ''];
  const rows = listFields(items).map(({ path, schema: { description = '', enum: choices }, required, schema: one }) => [
    formatCode(before + path) + (required ? '' : ' (optional)'),
    describeType(one),
    choices === undefined
      ? description
      : `${description === '' ? '' : `${description} `}One of ${choices.map((choice) => formatCode(String(choice))).join(', ')}.`,
  ]);
  return renderTableOr('', ['answer', 'type', 'meaning'], rows);
}

/** The slugs, which is what a caller acts on. */
function renderProblemLine(responses: Operation['responses']): string {
  const slugs = Object.entries(responses)
    .filter(([status]) => status !== '200')
    .flatMap(([status, { description }]) =>
      [...description.matchAll(/\(`([a-z-]+)`\)/g)].map(([, slug = '']) => `[${slug}](problems.md#${slug}) ${status}`),
    );
  return slugs.length === 0 ? '' : `Problems: ${slugs.join(', ')}.`;
}

export const httpApi: Page = {
  file: 'http-api.md',
  title: 'HTTP API',
  about: `Every endpoint of interface version ${serviceVersion}; an installation serves the same as \`/openapi.json\`.`,
  sources: ['api/protocols/discovery/openapi.ts'],
  render() {
    const { endpoints, protocols } = describeProduct();
    const { paths } = buildOpenApi(endpoints, baseUrl) as { paths: Paths };
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    );
    const apiOperations = operations.filter(
      ({ path, operation }) => !operation.tags.includes('tools') || !path.startsWith('/t/'),
    );
    const groups = Map.groupBy(apiOperations, ({ operation }) => operation.tags[0] ?? 'other');
    return joinBlocks(
      'Authentication is optional: without a key, calls draw on the daily quota; `Authorization: Bearer sk-…` sends a key of the model router. Errors are [problems](problems.md). [Tools](tools.md) have a separate page.',
      `In addition, ${protocols.map(formatCode).join(' and ')} use other protocols (MCP; requests that are passed to an app unchanged).`,
      ...[...groups].map(([tag, group]) => joinBlocks(`## ${tag}`, ...group.map(renderOperation))),
    );
  },
};

function listFacts({ price, asksModels, needs, artifacts, long, aliases }: Tool): string[] {
  const others = Object.entries(aliases).map(([alias, field]) => `${formatCode(alias)} for ${formatCode(field)}`);
  return [
    `Price: ${price} USD per call${asksModels === true ? ', plus its model calls as billed' : ''}.`,
    needs === undefined ? '' : `Needs ${backingServices[needs].title} (\`${backingServices[needs].value}\`).`,
    artifacts === undefined
      ? ''
      : `Creates a file: ${artifacts.map(formatCode).join(', ')}. \`raw=1\` returns its bytes.`,
    long === true ? 'Runs as a job: poll `poll_url`, or send `wait`.' : '',
    others.length === 0 ? '' : `Other names of its fields: ${others.join(', ')}.`,
  ].filter((fact) => fact !== '');
}

function renderTool(tool: Tool): string {
  const input = z.toJSONSchema(tool.input, { io: 'input' }) as Schema;
  const result = z.toJSONSchema(tool.output, { io: 'output' }) as Schema;
  return joinBlocks(
    `## ${tool.name}`,
    `**${tool.title}.** ${tool.description}`,
    renderList(listFacts(tool)),
    ['```sh', `curl '${buildExampleUrl(tool, baseUrl)}'`, '```'].join('\n'),
    renderTableOr(
      'No input.',
      ['input', 'type', 'limits', 'meaning'],
      listFields(input).map((field) => buildInputRow(field, '').filter((_, index) => index !== 1)),
    ),
    renderTableOr(
      '',
      ['result', 'type', 'meaning'],
      listFields(result).map(({ path, schema, required }) => [
        formatCode(path) + (required ? '' : ' (optional)'),
        describeType(schema),
        schema.description ?? '',
      ]),
    ),
  );
}

export const toolsPage: Page = {
  file: 'tools.md',
  title: 'Tools',
  about: 'Every tool, available at `/t/<tool>` (GET with a query, POST with JSON), on `/mcp` and through `/a2a`.',
  sources: ['api/tools/builtin/all.ts'],
  render() {
    const { tools } = describeProduct();
    return joinBlocks(
      'Each returns `{"tool", "result", "artifact"?, "cost_usd", "cost_source", "latency_ms", "request_id"}`.',
      renderTable(
        ['tool', 'what it does', 'price, USD'],
        tools.map(({ name, title, price, asksModels }) => [
          `[${name}](#${name})`,
          title,
          `${price}${asksModels === true ? ' + models' : ''}`,
        ]),
      ),
      ...tools.map(renderTool),
    );
  },
};

export const problemsPage: Page = {
  file: 'problems.md',
  title: 'Problems',
  about:
    'Every kind of error that the API returns, and the activator at the address of an app (RFC 9457); `type` is `<base URL>/problems/<slug>`.',
  sources: ['api/http/problems.ts', 'api'],
  render() {
    const sorted = describeProduct().problems.toSorted((one, other) => one.slug.localeCompare(other.slug, 'en'));
    return joinBlocks(
      ...sorted.map(({ slug, status, title, description }) =>
        joinBlocks(`## ${slug}`, `${status} **${title}**`, description),
      ),
    );
  },
};

type Metric = Product['metrics']['API'][number] & { readonly labelNames?: readonly string[] };

export const metricsPage: Page = {
  file: 'metrics.md',
  title: 'Metrics',
  about:
    'Every metric of the operator, the API, the workers and the activator, at `/metrics` of the internal port (9090).',
  sources: ['lib/kubernetes/observability.ts', 'lib/telemetry.ts', 'api'],
  render() {
    const { metrics } = describeProduct();
    return joinBlocks(
      "All processes also have the usual metrics of a Node.js process (`process_*`, `nodejs_*`). The API also has the operator's metrics, because it watches HostedApps with the same code (only `moorage_lists_total`, `moorage_watch_restarts_total` and `moorage_cached_objects` change there). The pipeline has none: its results are in the HostedApp's status.",
      ...Object.entries(metrics).map(([process, all]) =>
        joinBlocks(
          `## ${process}`,
          renderTable(
            ['metric', 'type', 'labels', 'meaning'],
            all.map((metric: Metric) => [
              formatCode(metric.name),
              String(metric.type),
              (metric.labelNames ?? []).map(formatCode).join(', '),
              metric.help,
            ]),
          ),
        ),
      ),
    );
  },
};
