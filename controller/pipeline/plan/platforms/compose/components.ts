// Turns the built services of a compose file, and those that run their images, into the components of an app.
import { posix } from 'node:path';
import { authorLimits } from '../../../../../crds/app-manifest.ts';
import { type DeclaredComponent, maximumComponents, onlyComponent } from '../../../../../crds/components.ts';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { askedSecret } from '../../../../../crds/values.ts';
import { escapePattern, omitUndefined } from '../../../../../lib/values.ts';
import type { Tree } from '../../../tree.ts';
import type { Part } from '../addresses.ts';
import { assembleComponents, type PartDraft } from '../assemble.ts';
import { createWarning, type Declaration, type DeclaredVariable } from '../declaration.ts';
import { buildEnvironment, reportEnvironment } from './environment.ts';
import { findPort, listPublishedPorts, resolveBuild, resolveCommand } from './process.ts';
import { readProxyConfig } from './proxy.ts';
import { type ComposeFile, type ComposeService, isDevelopmentService, isProxy, type Lookup } from './read.ts';
import { type Chosen, rejectTooMany, reportArguments, reportServices, reportSources } from './report.ts';
import { type BesideResult, isJob, toFolder, toHostName } from './services.ts';
import { describeSource, hasPortVariable, type Source, toSource } from './source.ts';
import { findDisks, toVolumeName } from './volumes.ts';

export type ComponentDeclaration = Required<Pick<Declaration, 'components' | 'env' | 'findings'>>;

interface ComponentInput {
  readonly compose: ComposeFile;
  readonly knownServices: readonly ComposeService[];
  readonly databases: BesideResult;
  readonly tree: Tree;
  /** Values of the sample files next to the compose file. */
  readonly lookup: Lookup;
}

/** Returns undefined if the file starts one process of the app's own, or none. */
export function declareComponents(input: ComponentInput): ComponentDeclaration | undefined {
  const { compose, knownServices, tree } = input;
  const { file, services } = compose;
  const own = services.filter((each) => !knownServices.includes(each));
  const chosen = selectServices(own, tree);
  if (chosen.services.length < 2) return undefined;
  if (chosen.services.length > maximumComponents)
    return { components: [], env: [], findings: [rejectTooMany(file, chosen.services)] };
  const drafts = createDrafts(chosen.services, chosen.proxy, input);
  const wired = assembleComponents(drafts, { file, tree, proxy: chosen.proxy?.config });
  if (wired === undefined) return undefined;
  return {
    components: wired.components,
    env: listSecrets(drafts.flatMap(({ secrets }) => secrets)),
    findings: [
      ...wired.findings,
      ...reportServices(compose, own, chosen),
      ...drafts.flatMap(({ findings }) => findings),
      ...reportEnvironment(
        file,
        drafts.map(({ environment }) => environment),
      ),
      ...reportSources(file, chosen.services, tree),
      ...chosen.services.flatMap((service, index) =>
        reportArguments(
          file,
          service,
          wired.components.find(({ name }) => name === drafts[index]?.name),
        ),
      ),
    ],
  };
}

// Which services are components.

function selectServices(own: readonly ComposeService[], tree: Tree): Chosen {
  const built = own.filter(({ build }) => build !== undefined);
  const images = new Set(built.flatMap(({ image }) => image ?? []));
  const required = listCompleted(own);
  const candidates = own.filter(
    (each) =>
      (each.build !== undefined || images.has(each.image ?? '')) &&
      (!isDevelopmentService(each) || required.has(each.name)),
  );
  const proxies = own.filter(isProxy).flatMap((service) => {
    const config = readProxyConfig(tree, service, own);
    return config === undefined ? [] : [{ service, config }];
  });
  // A proxy that does more than the gateway can is run, if the repository builds it.
  const proxy = proxies.find(({ service, config }) => config.more === undefined || service.build === undefined);
  const isReplaced = (each: ComposeService): boolean =>
    isProxy(each) && (each === proxy?.service || !proxies.some(({ service }) => service === each));
  const processes = candidates.filter((each) => !isReplaced(each));
  const late = processes.filter((each) => isTask(each, required) && isLateJob(each, processes, required));
  return {
    services: processes.filter((each) => !late.includes(each)),
    late,
    ...(proxy === undefined ? {} : { proxy }),
  };
}

function isCompletion({ condition }: { readonly condition: string }): boolean {
  return condition === 'service_completed_successfully';
}

function isTask(service: ComposeService, required: ReadonlySet<string>): boolean {
  return required.has(service.name) || (isJob(service) && (service.ports ?? []).length === 0);
}

function isLateJob(job: ComposeService, all: readonly ComposeService[], required: ReadonlySet<string>): boolean {
  return (job.depends_on ?? []).some((each) =>
    all.some((other) => other.name === each.name && !isCompletion(each) && !isTask(other, required)),
  );
}

// One draft for each.

interface Draft extends PartDraft {
  readonly secrets: readonly string[];
  readonly environment: ReturnType<typeof buildEnvironment>;
  readonly findings: readonly Finding[];
}

function createDrafts(services: readonly ComposeService[], proxy: Chosen['proxy'], input: ComponentInput): Draft[] {
  const { compose, databases, tree, lookup } = input;
  const { file, services: all } = compose;
  const names = nameServices(services, databases);
  const owners = findOwners(services);
  const environments = new Map(services.map((each) => [each, buildEnvironment(each, tree, databases, lookup)]));
  const sources = new Map(
    [...new Set(owners.values())].map((owner) => {
      const build = resolveBuild(file, owner, tree, lookup);
      return [owner, { build, source: describeSource(build.build, owner, tree, lookup) }] as const;
    }),
  );
  const targets = [...sources.values()].flatMap(({ source }) => source.pages.calls?.server ?? []);
  const volumes = limitVolumes(
    file,
    services.map((each) => [each, findDisks(file, each, tree, lookup)]),
  );
  const known: ServiceFacts = {
    ...{ file, names, owners, databases, lookup, proxy, volumes },
    renames: new Map(services.flatMap((each) => listHosts(each, all).map((host) => [host, names.get(each) ?? host]))),
    required: listCompleted(all),
    addresses: [
      ...[...environments.values()].flatMap(({ env }) => env.map(({ value }) => value)),
      ...targets.map(({ target }) => target),
    ],
    all,
  };
  return services.map((service) => {
    const { build, source } = sources.get(owners.get(service) ?? service) ?? failMissing(service);
    return createDraft(service, { ...known, build, source, environment: environments.get(service) ?? noEnvironment });
  });
}

const noEnvironment = { env: [], unset: [], open: [], outside: [] };

/** What is known about all services. */
interface ServiceFacts {
  readonly file: string;
  readonly all: readonly ComposeService[];
  readonly names: ReadonlyMap<ComposeService, string>;
  readonly owners: ReadonlyMap<ComposeService, ComposeService>;
  readonly databases: BesideResult;
  readonly lookup: Lookup;
  readonly proxy: Chosen['proxy'];
  readonly volumes: LimitedVolumes;
  /** Names of components, by all host names of their services. */
  readonly renames: ReadonlyMap<string, string>;
  /** Services that others wait for until they have ended. */
  readonly required: ReadonlySet<string>;
  /** Addresses that variables and proxies name. */
  readonly addresses: readonly string[];
}

interface DraftInput extends ServiceFacts {
  readonly build: ReturnType<typeof resolveBuild>;
  readonly source: Source;
  readonly environment: ReturnType<typeof buildEnvironment>;
}

function createDraft(service: ComposeService, input: DraftInput): Draft {
  const { file, names, owners, lookup, renames, build, source, environment, volumes } = input;
  const owner = owners.get(service) ?? service;
  const isOwner = owner === service;
  const isShared = [...owners.values()].filter((each) => each === owner).length > 1;
  const { command, findings } = resolveCommand(file, service, lookup, { dockerfile: source.text, isShared });
  const reached = describeReach(service, input);
  const component = createComponent(service, owner, { ...input, command, reached });
  const { name } = component;
  const isSecret = ({ value }: DeclaredVariable): boolean => value === askedSecret;
  return {
    ...{ name, component, folder: source.folder, unset: environment.unset, environment },
    ...reached,
    hosts: [...new Set([...listHosts(service, input.all), name])],
    env: environment.env.filter((each) => !isSecret(each)).map((each) => renameHosts(each, renames)),
    args: (build.build?.args ?? []).map((each) => renameHosts(each, renames)),
    dependsOn: listDependencies(service, names),
    ...source.pages,
    ...(source.isAuthored ? { buildArguments: source.buildArguments } : {}),
    canBePlanned: source.canBePlanned && command === undefined,
    isSecondary: !isOwner,
    isFixed: source.isAuthored && !hasPortVariable(service, source.text),
    secrets: environment.env.filter(isSecret).map((each) => each.name),
    findings: [...(isOwner ? build.findings : []), ...findings, ...volumes.findingsOf(service)],
  };
}

interface ComponentFields extends DraftInput {
  readonly command: readonly string[] | undefined;
  readonly reached: Pick<Part, 'kind' | 'port'>;
}

function createComponent(service: ComposeService, owner: ComposeService, input: ComponentFields): DeclaredComponent {
  const { names, build, source, lookup, command, renames, databases, reached, volumes } = input;
  return omitUndefined({
    name: names.get(service) ?? service.name,
    ...(owner === service ? toSource(build.build, owner, source, lookup) : { image: names.get(owner) ?? owner.name }),
    command: command?.map((word) => renameWord(word, renames, databases.hosts)),
    healthPath: reached.kind === 'task' ? undefined : findHealthPath(service, reached.port),
    volumes: volumes.of(service),
  });
}

/** Describes what a service is, and at which ports it is reached. */
function describeReach(service: ComposeService, input: DraftInput): Pick<Part, 'kind' | 'port' | 'published'> {
  const { lookup, required } = input;
  const port = choosePort(service, input);
  const kind = isTask(service, required) ? 'task' : isWeb(service, port) ? 'web' : 'worker';
  const published = listPublishedPorts(service, findPort(service, lookup), lookup);
  const isRandom = kind === 'web' && published.length === 0 && port !== undefined;
  return { kind, port, published: isRandom ? [port] : published };
}

function listCompleted(all: readonly ComposeService[]): ReadonlySet<string> {
  return new Set(all.flatMap(({ depends_on = [] }) => depends_on.filter(isCompletion).map(({ name }) => name)));
}

function listDependencies(
  { depends_on: dependencies = [] }: ComposeService,
  names: ReadonlyMap<ComposeService, string>,
): string[] {
  return dependencies.flatMap((each) => [...names].find(([other]) => other.name === each.name)?.[1] ?? []);
}

/** Services whose images are the same run that of the first one, or of the one that a visitor reaches. */
function findOwners(services: readonly ComposeService[]): Map<ComposeService, ComposeService> {
  const toKey = ({ build, image }: ComposeService): string => {
    const of = build ?? services.find((each) => each.image === image && each.build !== undefined)?.build;
    const { context = '.', dockerfile = 'Dockerfile', target, args } = of ?? {};
    return JSON.stringify([toFolder(context), posix.normalize(dockerfile), target, args]);
  };
  const groups = Map.groupBy(services, toKey);
  return new Map(
    [...groups.values()].flatMap((group) => {
      const builders = group.filter(({ build }) => build !== undefined);
      const owner = builders.find(({ ports = [] }) => ports.length > 0) ?? builders[0] ?? group[0];
      return owner === undefined ? [] : group.map((each): [ComposeService, ComposeService] => [each, owner]);
    }),
  );
}

/** Names the components like the services, or like their containers if only these are host names. */
function nameServices(
  services: readonly ComposeService[],
  { services: databases }: BesideResult,
): Map<ComposeService, string> {
  const names = new Map<ComposeService, string>();
  const taken = new Set<string>(databases.map(({ name }) => name));
  for (const each of services) {
    const { name, container_name: container = '' } = each;
    const isHost = (text: string): boolean => /^[a-z][a-z0-9-]{0,28}[a-z0-9]$/.test(text) && text !== onlyComponent;
    const wanted = isHost(name) ? name : isHost(container) ? container : toHostName(name);
    const usual = wanted === onlyComponent ? ['web', 'main', 'app-main'] : [wanted];
    const numbered = Array.from({ length: 20 }, (_, index) => `${(usual.at(-1) ?? '').slice(0, 27)}-${index + 2}`);
    const free = [...usual, ...numbered].find(
      (one) => !taken.has(one) && !services.some((other) => other !== each && other.name === one),
    );
    names.set(each, free ?? wanted);
    taken.add(free ?? wanted);
  }
  return names;
}

/** Lists the host names at which other services reach this one. */
function listHosts(
  { name, container_name: container, hostname, networks = {} }: ComposeService,
  all: readonly ComposeService[],
): string[] {
  const aliases = Object.values(networks).flatMap((network) => {
    const list: unknown =
      typeof network === 'object' && network !== null && 'aliases' in network ? network.aliases : [];
    return Array.isArray(list) ? list.filter((each) => typeof each === 'string') : [];
  });
  const links = all
    .flatMap((each) => each.links ?? [])
    .flatMap((link) => (link.startsWith(`${name}:`) ? [link.slice(name.length + 1)] : []));
  return [...new Set([name, container ?? name, hostname ?? name, ...aliases, ...links])];
}

/** Replaces names of services in addresses. Anywhere else, a word such as app is no host. */
function renameHosts({ name, value }: DeclaredVariable, renames: ReadonlyMap<string, string>): DeclaredVariable {
  const isHostName = /(?:HOST|HOSTS|SERVER|ADDR|ADDRESS|URL|URI|UPSTREAM|ENDPOINT)$/i.test(name);
  const renamed = [...renames].reduce((text, [from, to]) => {
    if (from === to) return text;
    if (text === from && isHostName) return to;
    const escaped = escapePattern(from);
    return text.replaceAll(
      new RegExp(String.raw`(//|@|^|,)${escaped}(?=:\d)|(//|@)${escaped}(?=[/?,]|$)`, 'g'),
      (_whole, one: string | undefined, two: string | undefined) => `${one ?? two ?? ''}${to}`,
    );
  }, value);
  return { name, value: renamed };
}

/** Replaces names of services in a word of a command: `wait-for-it my_db:5432`, `--host my_db`. */
function renameWord(word: string, ...renames: readonly ReadonlyMap<string, string>[]): string {
  return renames
    .flatMap((each) => [...each])
    .reduce((text, [from, to]) => {
      if (from === to) return text;
      // A word such as app alone is no host, and one with an underscore nothing else.
      if (text === from) return /[_A-Z]/.test(from) ? to : text;
      const escaped = escapePattern(from);
      return text.replaceAll(
        new RegExp(String.raw`(^|[/@=, ])${escaped}(?=:\d)`, 'g'),
        (_whole, before: string) => `${before}${to}`,
      );
    }, word);
}

/** Ports of protocols that a browser does not speak. */
const notOfPages: ReadonlySet<number> = new Set([
  ...[
    22, 25, 53, 110, 143, 389, 465, 554, 587, 636, 993, 1025, 1433, 1883, 1935, 2525, 3306, 3478, 4317, 5432, 5672,
    5678,
  ],
  ...[6379, 7687, 8883, 9092, 9229, 11_211, 27_017, 50_051, 50_052],
]);

function isWeb({ ports = [] }: ComposeService, port: number | undefined): boolean {
  return ports.length > 0 && port !== undefined && !notOfPages.has(port);
}

/** The port of the file; that of an image for visitors where the file is for development; or the one that others name. */
function choosePort(
  service: ComposeService,
  { all, addresses, proxy, source, lookup }: DraftInput,
): number | undefined {
  const port = findPort(service, lookup);
  if (source.isReplaced && source.exposed !== undefined) return source.exposed;
  if (port !== undefined) return port;
  const hosts = listHosts(service, all);
  const route = proxy?.config.routes.find((each) => hosts.includes(each.host));
  if (route !== undefined) return route.port ?? source.exposed ?? 80;
  const named = addresses.flatMap((value) => {
    const [, host = '', number] = /\/\/([\w.-]{1,100}):([0-9]{2,5})\b/.exec(value) ?? [];
    return hosts.includes(host) ? [Number(number)] : [];
  });
  return named[0];
}

function failMissing({ name }: ComposeService): never {
  throw new Error(`the service ${name} has no source`);
}

/** The path of a check by HTTP: /health of `curl -f http://localhost:8000/health`. */
function findHealthPath({ healthcheck }: ComposeService, port: number | undefined): string | undefined {
  const test = (healthcheck?.test ?? []).join(' ');
  const [, number, path = '/'] =
    /https?:\/\/(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?::([0-9]{1,5}))?(\/[\x21\x23-\x26\x2a-\x7e]{0,199})?/.exec(
      test,
    ) ?? [];
  const isOwn = test !== '' && healthcheck?.disable !== true && port !== undefined && Number(number ?? 80) === port;
  return isOwn && path !== '/' ? path : undefined;
}

// Volumes.

interface LimitedVolumes {
  of(service: ComposeService): DeclaredComponent['volumes'];
  findingsOf(service: ComposeService): readonly Finding[];
}

/** Names volumes by their source, so that services with the same one share it, and keeps as many as an author may have. */
function limitVolumes(
  file: string,
  disks: readonly (readonly [ComposeService, ReturnType<typeof findDisks>])[],
): LimitedVolumes {
  const named = disks.map(([service, { volumes, findings }]) => {
    const list = volumes.map(({ path, source }) => ({
      path,
      name: toVolumeName(source === '' ? `${service.name}-${path}` : source),
    }));
    return {
      service,
      findings,
      list: list.filter(({ path }, index) => list.findIndex((each) => each.path === path) === index),
    };
  });
  const names = [...new Set(named.flatMap(({ list }) => list.map(({ name }) => name)))];
  const kept = names.slice(0, authorLimits.volumes.count);
  const lost = named.flatMap(({ list }) => list.filter(({ name }) => !kept.includes(name)));
  const warning = createWarning(
    'data/too-many-volumes',
    file,
    `The app declares ${names.length} volumes; ${kept.length} get a disk. What is written to ${lost
      .slice(0, 5)
      .map(({ path }) => path)
      .join(', ')} does not last.`,
    'Choose the folders that have to last with volumes of the components in moorage.yaml.',
  );
  return {
    of: (service) => {
      const list = named.find((each) => each.service === service)?.list.filter(({ name }) => kept.includes(name)) ?? [];
      return list.length === 0 ? undefined : list;
    },
    findingsOf: (service) => [
      ...(named.find((each) => each.service === service)?.findings ?? []),
      ...(lost.length > 0 && service === named[0]?.service ? [warning] : []),
    ],
  };
}

/** Secrets of the app are the same in all components, so all of them have them. */
function listSecrets(names: readonly string[]): DeclaredVariable[] {
  return [...new Set(names)].map((name) => ({ name, value: askedSecret }));
}
