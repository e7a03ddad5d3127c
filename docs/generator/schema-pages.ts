// Pages of what is set: fields of HostedApp, moorage.yaml, values of the chart.
import { renderSchema } from '../../charts/generate.ts';
import { authorLimits, appManifest, manifestFile } from '../../crds/app-manifest.ts';
import { buildDefinition, describeSpec } from '../../crds/definition.ts';
import { z } from 'zod';
import { defaultOf, fieldsOf, limitsOf, rulesOf, typeOf, type Field, type Schema } from './fields.ts';
import { blocks, code, list, table, type Page } from './markdown.ts';

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

function row(field: Field): string[] {
  const { path, schema } = field;
  return [code(path), typeOf(schema), defaultOf(field), limitsOf(schema), schema.description ?? ''];
}

const header = ['field', 'type', 'default', 'limits', 'meaning'];

/** One table for each first part of a path, so that each has a heading to link to. */
function sections(fields: readonly Field[], level: string): string {
  const groups = Map.groupBy(fields, ({ path }) => path.split(/[.[]/)[0] ?? '');
  const single = [...groups.values()].filter((group) => group.length === 1).flat();
  const parts = [...groups].filter(([, group]) => group.length > 1);
  return blocks(
    single.length === 0 ? '' : table(header, single.map(row)),
    ...parts.map(([name, [first, ...fields]]) =>
      blocks(`${level} ${name}`, first?.schema.description ?? '', table(header, fields.map(row))),
    ),
  );
}

/** What else the API server checks, with the message that it answers. */
function ruleList(fields: readonly Field[]): string {
  return list(
    fields.flatMap(({ path, schema }) => [...new Set(rulesOf(schema))].map((message) => `${code(path)}: ${message}.`)),
  );
}

function hostedAppVersion(): Definition['spec']['versions'][number] {
  const [version] = (buildDefinition() as unknown as Definition).spec.versions;
  if (version === undefined) throw new TypeError('the CRD has no version');
  return version;
}

function statusSchema(): Schema {
  const schema = hostedAppVersion().schema.openAPIV3Schema.properties?.['status'];
  if (schema === undefined) throw new TypeError('the CRD has no status');
  return schema;
}

export const hostedApp: Page = {
  file: 'hosted-app.md',
  title: 'HostedApp fields',
  about: 'Every field of the `HostedApp` resource (`kubectl explain happ.spec` shows the same).',
  sources: ['crds/hosted-app.ts'],
  body() {
    const { group } = (buildDefinition() as unknown as Definition).spec;
    const { name: version, schema, additionalPrinterColumns: columns } = hostedAppVersion();
    const spec = fieldsOf(describeSpec());
    return blocks(
      `\`apiVersion: ${group}/${version}\`, \`kind: HostedApp\`, short name \`happ\`, namespaced. Only \`spec.source.repo\` is required.`,
      '## spec',
      `What the author or the operator of this installation wants. A field that [${manifestFile}](app-manifest.md) has too is stored only if someone sets it, and then it overrides the file, even at its default. If no one sets it, the file decides, or else the default.`,
      sections(spec, '###'),
      '### Rules',
      'A value that breaks one of these rules is rejected with its message.',
      list(rulesOf(schema.openAPIV3Schema).map((message) => `${message}.`)),
      ruleList(spec),
      '## status',
      'Only the operator writes it.',
      sections(fieldsOf(statusSchema()), '###'),
      '## Columns of kubectl get',
      table(
        ['column', 'meaning'],
        columns.map(({ name, description = '' }) => [name, description]),
      ),
    );
  },
};

/** The limits of an author, by the path of the field. */
function authorMaxima(): ReadonlyMap<string, string> {
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
  body() {
    const fields = fieldsOf(z.toJSONSchema(appManifest, { io: 'input', unrepresentable: 'any' }) as Schema);
    const known = new Map(fieldsOf(describeSpec() as Schema).map((field) => [field.path, field]));
    const maxima = authorMaxima();
    const missing = [...maxima.keys()].filter((path) => !fields.some((field) => field.path === path));
    if (missing.length > 0) throw new Error(`authorLimits name what is no field: ${missing.join(', ')}`);
    return blocks(
      'Each field has the meaning and rules of the [HostedApp field](hosted-app.md) with the same name. An omitted field has its default. A value set in the HostedApp overrides the file.',
      table(
        ['field', 'type', 'default', 'maximum', 'meaning'],
        fields.map(({ path, schema }) => {
          const original = known.get(path);
          return [
            code(path),
            typeOf(schema),
            original === undefined ? '' : defaultOf({ ...original, required: false }),
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
  body: () => sections(fieldsOf(JSON.parse(renderSchema()) as Schema), '##'),
};
