// How an app finds its backing services: usual variables, what its own values may name of them, and host names.
import { createHash, createHmac } from 'node:crypto';
import type { V1EnvVar, V1HostAlias, V1LabelSelector, V1NetworkPolicyEgressRule } from '@kubernetes/client-node';
import type { BackingService } from '../../../../crds/backing-services.ts';
import type { HostedApp } from '../../../../crds/hosted-app.ts';
import { annotations, labels, trialComponent } from '../../../../crds/names.ts';
import type { Wire } from '../../../../lib/kubernetes/index.ts';
import type { Service } from '../../../objects/kinds.ts';
import { readDataKey } from '../data.ts';
import { serviceKinds } from './kinds.ts';

/** What an author may name of a service, as Kubernetes takes it. */
export function readServiceField(service: BackingService, field: string): string {
  const kind = serviceKinds[service.type];
  const login = resolveLogin(service, kind.login);
  switch (field) {
    case 'url':
      return kind.url(login);
    case 'port':
      return String(kind.ports[0]);
    case 'host':
      return login.host;
    case 'user':
      return login.user;
    case 'password':
      return login.password;
    default:
      return login.database;
  }
}

/** The passwords of the services, which come before every variable that names one. */
export function buildPasswordVariables(app: HostedApp): Wire<V1EnvVar>[] {
  return app.spec.services.map((service) => buildPasswordReference(app, service));
}

/** The usual variables: of the first service of each type, and never one that the app sets itself. */
export function buildServiceVariables(app: HostedApp): Wire<V1EnvVar>[] {
  const { env, secrets } = app.spec.run;
  const taken = new Set([...env, ...secrets].map(({ name }) => name));
  return app.spec.services.flatMap((service) => {
    const kind = serviceKinds[service.type];
    return Object.entries(kind.variables(resolveLogin(service, kind.login))).flatMap(([name, value]) => {
      if (taken.has(name)) return [];
      taken.add(name);
      return value === '' ? [{ name }] : [{ name, value }];
    });
  });
}

/** The generated password as a variable, to be named by those that come after it. */
export function buildPasswordReference(app: HostedApp, service: BackingService): Wire<V1EnvVar> {
  return {
    name: formatPasswordVariable(service.name),
    valueFrom: { secretKeyRef: { name: formatServiceName(app, service), key: 'password' } },
  };
}

/** Address of each service inside the cluster, by its name. */
export type ServiceAddresses = ReadonlyMap<string, string>;

/** The addresses that the cluster has given. */
export function readServiceAddresses(objects: readonly Service[]): ServiceAddresses {
  return new Map(
    objects.flatMap(({ metadata, spec }) => {
      const name = metadata.annotations?.[annotations.service];
      const address = spec?.clusterIP;
      return name === undefined || address === undefined || address === 'None' ? [] : [[name, address] as const];
    }),
  );
}

/** Lines of /etc/hosts by which the app finds its services under their names: many apps share the names of a namespace. */
export function buildHostAliases(app: HostedApp, addresses: ServiceAddresses): Wire<V1HostAlias>[] {
  return app.spec.services.flatMap(({ name }) => {
    const ip = addresses.get(name);
    return ip === undefined ? [] : [{ ip, hostnames: [name] }];
  });
}

/** The opening in the app's NetworkPolicy towards its own services. */
export function buildServiceEgress(app: HostedApp): Wire<V1NetworkPolicyEgressRule>[] {
  const { services } = app.spec;
  if (services.length === 0) return [];
  const ports = [...new Set(services.flatMap(({ type }) => serviceKinds[type].ports))].sort((a, b) => a - b);
  return [
    {
      to: [{ podSelector: { matchLabels: buildServicesSelector(app) } }],
      ports: ports.map((port) => ({ port, protocol: 'TCP' })),
    },
  ];
}

// Who a backing service lets in: user, password and database, from its settings or made by the platform.

/** Values as they stand in an environment: of texts literally, of a generated password by reference. */
export interface Login {
  readonly host: string;
  readonly user: string;
  /** Empty: none is asked for. */
  readonly password: string;
  readonly database: string;
  /** user:password@ of a URL; empty where no password is asked for. */
  readonly credentials: string;
  /** Value of a variable of the service, if its settings give one. */
  readonly readSetting: (name: string) => string | undefined;
  /** The generated password, also where the settings give another. */
  readonly generated: string;
}

/** Which variables of the service say so, the first that is set; and what holds when none is. */
export interface LoginRules {
  readonly user?: { readonly names: readonly string[]; readonly usual: string };
  readonly password?: { readonly names: readonly string[]; readonly mayBeEmpty: boolean };
  readonly database?: { readonly names: readonly string[]; readonly usual?: string };
}

/** Variable that holds the generated password, in the service and in the app. */
export function formatPasswordVariable(service: string): string {
  return `MOORAGE_${service.toUpperCase().replaceAll('-', '_')}_PASSWORD`;
}

/**
 * The password that is put into a new Secret. Made of the app's identity, so that a second try makes the same; once the
 * Secret is there it stays as it is, also when the platform's secret is another.
 */
export function derivePassword(app: HostedApp, service: BackingService, secret: string): string {
  return createHmac('sha256', secret)
    .update(`moorage service password 1\n${app.metadata.name}\n${readDataKey(app)}\n${service.name}\n${service.type}`)
    .digest('hex')
    .slice(0, 40);
}

/** The login of a service. */
export function resolveLogin(service: BackingService, rules: LoginRules): Login {
  const readSetting = (name: string): string | undefined => service.env.find((each) => each.name === name)?.value;
  const said = (rule: { readonly names: readonly string[]; readonly usual?: string } | undefined): string | undefined =>
    rule?.names.map(readSetting).find((value) => value !== undefined) ?? rule?.usual;
  const generated = `$(${formatPasswordVariable(service.name)})`;
  const user = said(rules.user) ?? '';
  const { shown, inUrl } = resolvePassword(said(rules.password), generated, rules.password);
  return {
    host: service.name,
    user: toLiteral(user),
    password: shown,
    database: toLiteral(said(rules.database) ?? user),
    credentials: shown === '' ? '' : `${toLiteral(encodeURIComponent(user))}:${inUrl}@`,
    readSetting,
    generated,
  };
}

/** The password as it is, and as it stands in a URL. */
function resolvePassword(
  said: string | undefined,
  generated: string,
  rule: LoginRules['password'],
): { shown: string; inUrl: string } {
  if (rule === undefined) return { shown: '', inUrl: '' };
  const isGiven = said !== undefined && (said !== '' || rule.mayBeEmpty);
  return isGiven
    ? { shown: toLiteral(said), inUrl: toLiteral(encodeURIComponent(said)) }
    : { shown: generated, inUrl: generated };
}

// Names and labels of what runs the backing services of an app.

type Identity = Pick<HostedApp, 'metadata'>;

/**
 * Name of the Deployment, Service, policy, Secret and claim of a service. Longer than any name of an app, so that no
 * app can be called like it; another type under the same name has a disk of its own.
 */
export function formatServiceName(app: HostedApp, { name, type }: Pick<BackingService, 'name' | 'type'>): string {
  const readable = `${app.metadata.name}-${name}`.slice(0, 24).replace(/-+$/, '');
  const identity = createHash('sha256').update([readDataKey(app), app.metadata.name, name, type].join('\n'));
  return `service-${readable}-${identity.digest('hex').slice(0, 30)}`;
}

/** What the pods of a service are chosen by. */
export function buildServiceSelector({ metadata }: Identity, service: string): Record<string, string> {
  return { [labels.app]: metadata.name, [labels.component]: 'service', [labels.service]: service };
}

/** What the pods of all services of an app are chosen by. */
export function buildServicesSelector({ metadata }: Identity): Record<string, string> {
  return { [labels.app]: metadata.name, [labels.component]: 'service' };
}

/** The pods of an app, for policies: with a volume, also the one that tries a new image. */
export function buildAppPodsSelector({ metadata, spec }: HostedApp): Wire<V1LabelSelector> {
  const app = { [labels.app]: metadata.name };
  return spec.run.volumes.length === 0
    ? { matchLabels: { ...app, [labels.component]: 'app' } }
    : {
        matchLabels: app,
        matchExpressions: [{ key: labels.component, operator: 'In', values: ['app', trialComponent] }],
      };
}

// Writes texts into environment values, where Kubernetes replaces $(NAME) and reads $$ as one dollar.

/** A part of a value that others follow, which must not form a reference with it. */
export function escapeDollars(part: string): string {
  return part.replaceAll('$', '$$$$');
}

/** A text that comes out of the expansion as it went in. */
export function toLiteral(text: string): string {
  return text.includes('$(') || text.includes('$$') ? escapeDollars(text) : text;
}

// Values of an author that name what an app has: ${{services.<name>.url}} of its services, ${{models.url}} of models, its
// own ${{app.host}}.

/** Base URL that the app asks models at, and the variable that holds its token. */
export interface ModelAccess {
  readonly url: string;
  readonly keyVariable: string;
}

/** What can be named; without models, or without that service, a reference stays as it is written. */
export interface ReferenceTargets {
  readonly services: readonly BackingService[];
  readonly models?: ModelAccess | undefined;
  /** Where the app answers: like chat.apps.example.org, and https://chat.apps.example.org:8443 without a slash at the end. */
  readonly app: { readonly host: string; readonly url: string };
}

const reference =
  /\$\{\{ {0,3}(?:services\.([a-z][-a-z0-9]{0,29})\.(url|host|port|user|password|database)|models\.(url|origin|key)|app\.(host|url)) {0,3}\}\}/g;
const keyReference = /\$\{\{ {0,3}models\.key {0,3}\}\}/;

/** A value of the author as Kubernetes takes it: literal, but for what it names. */
export function expandReferences(value: string, targets: ReferenceTargets): string {
  const parts: string[] = [];
  let at = 0;
  for (const match of value.matchAll(reference)) {
    const [whole] = match;
    const found = resolveReference(match, targets);
    if (found === undefined) continue;
    parts.push(escapeDollars(value.slice(at, match.index)), found);
    at = match.index + whole.length;
  }
  return parts.length === 0 ? toLiteral(value) : [...parts, escapeDollars(value.slice(at))].join('');
}

/** Whether a value needs the variable of the token. */
export function hasModelKeyReference(value: string): boolean {
  return keyReference.test(value);
}

/** What a match of `reference` stands for; undefined when there is no such thing. */
function resolveReference(
  [, service, field = '', ofModels, ofApp]: readonly (string | undefined)[],
  targets: ReferenceTargets,
): string | undefined {
  if (ofApp !== undefined) return escapeDollars(ofApp === 'host' ? targets.app.host : targets.app.url);
  return ofModels === undefined ? resolveServiceField(service, field, targets) : resolveModelField(ofModels, targets);
}

function resolveServiceField(
  name: string | undefined,
  field: string,
  { services }: ReferenceTargets,
): string | undefined {
  const service = services.find((each) => each.name === name);
  return service === undefined ? undefined : readServiceField(service, field);
}

function resolveModelField(field: string, { models }: ReferenceTargets): string | undefined {
  if (models === undefined) return undefined;
  if (field === 'key') return `$(${models.keyVariable})`;
  return escapeDollars(field === 'url' ? models.url : new URL(models.url).origin);
}
