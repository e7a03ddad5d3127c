// Pages of what is set: fields of HostedApp, moorage.yaml, values of the chart.
import { renderSchema } from '../../charts/generate.ts';
import { authorLimits, appManifest, manifestFile } from '../../crds/app-manifest.ts';
import { buildDefinition, describeSpec } from '../../crds/definition.ts';
import { operatorFields, submittedFields, submittedModelFields } from '../../crds/field-access.ts';
import { z } from 'zod';
import {
  formatDefault,
  listFields,
  describeLimits,
  listRuleMessages,
  describeType,
  type Field,
  type Schema,
  joinBlocks,
  formatCode,
  renderList,
  renderTable,
  type Page,
} from './page.ts';

interface Definition {
  readonly spec: {
    readonly group: string;
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
      readonly additionalPrinterColumns: readonly { readonly name: string; readonly description?: string }[];
    }[];
  };
}

function buildRow(field: Field): string[] {
  const { path, schema } = field;
  return [
    formatCode(path),
    describeType(schema),
    formatDefault(field),
    describeLimits(schema),
    schema.description ?? '',
  ];
}

const header = ['field', 'type', 'default', 'limits', 'meaning'];

/** One table for each first part of a path, so that each has a heading to link to. */
function renderSections(fields: readonly Field[], level: string): string {
  const groups = Map.groupBy(fields, ({ path }) => path.split(/[.[]/)[0] ?? '');
  const single = [...groups.values()].filter((group) => group.length === 1).flat();
  const parts = [...groups].filter(([, group]) => group.length > 1);
  return joinBlocks(
    single.length === 0 ? '' : renderTable(header, single.map(buildRow)),
    ...parts.map(([name, [first, ...fields]]) =>
      joinBlocks(`${level} ${name}`, first?.schema.description ?? '', renderTable(header, fields.map(buildRow))),
    ),
  );
}

/** What else the API server checks, with the message that it answers. */
function renderRuleList(fields: readonly Field[]): string {
  return renderList(
    fields.flatMap(({ path, schema }) =>
      [...new Set(listRuleMessages(schema))].map((message) => `${formatCode(path)}: ${message}.`),
    ),
  );
}

function getHostedAppVersion(): Definition['spec']['versions'][number] {
  const [version] = (buildDefinition() as unknown as Definition).spec.versions;
  if (version === undefined) throw new TypeError('the CRD has no version');
  return version;
}

function getStatusSchema(): Schema {
  const schema = getHostedAppVersion().schema.openAPIV3Schema.properties?.['status'];
  if (schema === undefined) throw new TypeError('the CRD has no status');
  return schema;
}

export const hostedApp: Page = {
  file: 'hosted-app.md',
  title: 'HostedApp fields',
  about: 'Every field of the `HostedApp` resource (`kubectl explain happ.spec` shows the same).',
  sources: ['crds/hosted-app.ts', 'crds/field-access.ts'],
  render() {
    const { group } = (buildDefinition() as unknown as Definition).spec;
    const { name: version, schema, additionalPrinterColumns: columns } = getHostedAppVersion();
    const spec = listFields(describeSpec());
    return joinBlocks(
      `\`apiVersion: ${group}/${version}\`, \`kind: HostedApp\`, short name \`happ\`, namespaced. Only \`spec.source.repo\` is required.`,
      '## spec',
      `What the author or the operator of this installation wants. A field that [${manifestFile}](app-manifest.md) has too is stored only if someone sets it, and then it overrides the file, even at its default. If no one sets it, the file decides, or else the default.`,
      renderSections(spec, '###'),
      '### Who sets which field',
      renderList([
        `The API, for a submission: ${formatCodes(submittedFields)}, and ${formatCodes(submittedModelFields)} if \`submissions.modelsUsd\` of the chart is set. An admission policy rejects any other field.`,
        `Only the operator of this installation, with kubectl: ${formatCodes(operatorFields)}.`,
        `The author, in [${manifestFile}](app-manifest.md): all others.`,
      ]),
      '### Rules',
      'A value that breaks one of these rules is rejected with its message.',
      renderList(listRuleMessages(schema.openAPIV3Schema).map((message) => `${message}.`)),
      renderRuleList(spec),
      '## status',
      'Only the operator writes it.',
      renderSections(listFields(getStatusSchema()), '###'),
      '## Columns of kubectl get',
      renderTable(
        ['column', 'meaning'],
        columns.map(({ name, description = '' }) => [name, description]),
      ),
    );
  },
};

function formatCodes(fields: readonly string[]): string {
  return fields.map(formatCode).join(', ');
}

/** The limits of an author, by the path of the field. */
function collectAuthorMaxima(): ReadonlyMap<string, string> {
  const { build, run, volumes } = authorLimits;
  return new Map([
    ['build.resources.cpu', build.cpu],
    ['build.resources.memory', build.memory],
    ['build.resources.disk', build.disk],
    ['build.timeout', build.timeout],
    ['run.resources.cpu', run.cpu],
    ['run.resources.memory', run.memory],
    ['run.resources.disk', run.disk],
    ['run.startupTime', run.startupTime],
    ['run.volumes', `${volumes.count} volumes`],
    ['run.volumes[].size', volumes.size],
  ]);
}

export const appManifestPage: Page = {
  file: 'app-manifest.md',
  title: `${manifestFile}: settings of the author`,
  about: `Every field that an author can set in \`${manifestFile}\` at the top of the repository; all are optional.`,
  sources: ['crds/app-manifest.ts'],
  render() {
    const fields = listFields(z.toJSONSchema(appManifest, { io: 'input', unrepresentable: 'any' }) as Schema);
    const known = new Map(listFields(describeSpec() as Schema).map((field) => [field.path, field]));
    const maxima = collectAuthorMaxima();
    const missing = [...maxima.keys()].filter((path) => !fields.some((field) => field.path === path));
    if (missing.length > 0) throw new Error(`authorLimits name what is no field: ${missing.join(', ')}`);
    return joinBlocks(
      'Each field has the meaning and rules of the [HostedApp field](hosted-app.md) with the same name. An omitted field has its default. A value set in the HostedApp overrides the file.',
      renderTable(
        ['field', 'type', 'default', 'maximum', 'meaning'],
        fields.map(({ path, schema }) => {
          const original = known.get(path);
          return [
            formatCode(path),
            describeType(schema),
            original === undefined ? '' : formatDefault({ ...original, required: false }),
            maxima.get(path) ?? '',
            original?.schema.description ?? schema.description ?? '',
          ];
        }),
      ),
    );
  },
};

export const chartValues: Page = {
  file: 'chart-values.md',
  title: 'Values of the Helm chart',
  about: 'Every value of `charts/moorage`; `helm` rejects an unknown or invalid one.',
  sources: ['charts/values.ts'],
  render: () => renderSections(listFields(JSON.parse(renderSchema()) as Schema), '##'),
};
