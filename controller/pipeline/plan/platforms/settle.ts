// Puts what platform files say beneath moorage.yaml, within what an author may set and what can be reported.
import {
  appManifest,
  maximumManifestBytes,
  type AppManifest,
  type ReportedSettings,
} from '../../../../crds/app-manifest.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Combined } from './combine.ts';
import type { DeclaredBuild } from './declaration.ts';

/** Room of what stands around the settings in a report. */
const noteBytes = 300;

/** What of it is good as settings; the rest is left out, and of variables it is said. */
export function bounded(given: Combined, own: AppManifest | undefined): { settings: AppManifest; findings: Finding[] } {
  const { port, healthPath, command } = given;
  const base = [
    ...buildOf(given.build),
    ...(own?.services === undefined && given.services.length > 0 ? [{ services: given.services }] : []),
    ...(given.volumes.length === 0 ? [] : [{ run: { volumes: given.volumes } }]),
    ...(port === undefined ? [] : [{ run: { port } }]),
    ...(healthPath === undefined ? [] : [{ run: { healthPath } }]),
    ...(command === undefined ? [] : [{ run: { command } }]),
  ].reduce<AppManifest>((settings, part) => added(settings, part), {});
  const room = maximumManifestBytes - bytesOf(own ?? {}) - noteBytes;
  const taken = new Set((own?.run?.env ?? []).map(({ name }) => name));
  const left: string[] = [];
  const settings = given.env
    .filter(({ name }) => !taken.has(name))
    .toSorted((one, other) => weight(one.value) - weight(other.value))
    .reduce<AppManifest>((current, variable) => {
      const next = added(current, { run: { env: [...(current.run?.env ?? []), variable] } });
      if (next !== current && bytesOf(next) <= room) return next;
      if (variable.name !== 'PORT') left.push(variable.name);
      return current;
    }, base);
  return { settings, findings: left.length === 0 ? [] : [tooMany(left)] };
}

/** Path, Dockerfile and how it is built, of which one that is at its default need not be said. */
function buildOf(build: DeclaredBuild | undefined): { [name: string]: unknown }[] {
  if (build === undefined) return [];
  const { path, dockerfile, target, args } = build;
  const said = {
    ...(dockerfile === 'Dockerfile' ? {} : { dockerfile }),
    ...(target === undefined ? {} : { target }),
    ...(args === undefined ? {} : { args }),
  };
  return [
    ...(path === '.' ? [] : [{ source: { path } }]),
    ...(Object.keys(said).length === 0 ? [] : [{ build: said }]),
  ];
}

/** The settings with that part, if they are still good then. */
function added(settings: AppManifest, part: { readonly run?: object; readonly [name: string]: unknown }): AppManifest {
  const together = {
    ...settings,
    ...part,
    ...(part.run === undefined ? {} : { run: { ...settings.run, ...part.run } }),
  };
  const read = appManifest.safeParse(JSON.parse(JSON.stringify(together)));
  return read.success ? read.data : settings;
}

/** Addresses of services first; long texts last. */
function weight(value: string): number {
  return /:\/\/|\$\{\{services\./.test(value) ? 0 : value.length;
}

function bytesOf(settings: AppManifest): number {
  return Buffer.byteLength(JSON.stringify(settings));
}

function tooMany(names: readonly string[]): Finding {
  return {
    rule: 'platform/variables',
    severity: 'warning',
    message: `Variables of other platforms' files that do not fit in the settings are not set: ${names.slice(0, 10).join(', ')}${names.length > 10 ? `, and ${names.length - 10} more` : ''}.`,
    fix: 'Give those that the app needs in moorage.yaml (run.env), or as defaults in the code.',
  };
}

/** moorage.yaml over the others. */
export function settle(own: AppManifest | undefined, given: AppManifest, file: string): ReportedSettings | undefined {
  const ofOthers = leaves(given).filter((field) => field === 'run.env' || !leaves(own ?? {}).includes(field));
  if (ofOthers.length === 0 || file === '') return own;
  const run = { ...given.run, ...own?.run };
  const names = new Set((own?.run?.env ?? []).map(({ name }) => name));
  const env = [...(own?.run?.env ?? []), ...(given.run?.env ?? []).filter(({ name }) => !names.has(name))];
  const build = { ...given.build, ...own?.build };
  return {
    ...given,
    ...own,
    ...(Object.keys(build).length === 0 ? {} : { build }),
    ...(Object.keys(run).length + env.length === 0 ? {} : { run: { ...run, ...(env.length === 0 ? {} : { env }) } }),
    platform: { file, fields: ofOthers.filter((field) => !(field === 'run.env' && names.size > 0)).slice(0, 32) },
  };
}

function leaves(value: object, path = ''): string[] {
  return Object.entries(value).flatMap(([name, inner]: [string, unknown]) => {
    if (inner === undefined) return [];
    const field = path === '' ? name : `${path}.${name}`;
    return typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? leaves(inner, field) : [field];
  });
}
