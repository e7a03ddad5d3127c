// Reports what of a compose file is not done: services that are not run, what they ask for and do not get, and proxies that the
// gateway replaces.
import { type DeclaredComponent, maximumComponents } from '../../../../../crds/components.ts';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import type { Tree } from '../../../tree.ts';
import { createWarning } from '../declaration.ts';
import { isPageVariable } from '../page-calls.ts';
import type { ProxyConfig } from './proxy.ts';
import { type ComposeFile, type ComposeService, isDevelopmentService } from './read.ts';
import { toFolder } from './services.ts';

/** Which services of a file are components. */
export interface Chosen {
  readonly services: readonly ComposeService[];
  /** A proxy that the platform's gateway replaces. */
  readonly proxy?: { readonly service: ComposeService; readonly config: ProxyConfig };
  /** Jobs that need a component to run: here they would run before it. */
  readonly late: readonly ComposeService[];
}

/** Rejects a file with more services than an app may have components. */
export function rejectTooMany(file: string, services: readonly ComposeService[]): Finding {
  return {
    rule: 'compose/too-many-services',
    severity: 'error',
    file,
    message: `This file starts ${services.length} services of the app itself (${services
      .slice(0, 12)
      .map(({ name }) => name)
      .join(', ')}); an app here has at most ${maximumComponents} components.`,
    fix: 'Put those that the app can do without into a profile of the compose file, or list the components in moorage.yaml.',
  };
}

/** Reports what is not run, and why. */
export function reportServices(
  { file, inactive }: ComposeFile,
  own: readonly ComposeService[],
  { services, proxy, late }: Chosen,
): Finding[] {
  const isRun = (each: ComposeService): boolean =>
    services.includes(each) || each === proxy?.service || late.includes(each);
  const others = own.filter((each) => !isRun(each) && !isDevelopmentService(each)).map(({ name }) => name);
  const powerful = services
    .filter(({ privileged, network_mode: mode }) => privileged === true || mode === 'host')
    .map(({ name }) => name);
  const missing = findMissingServices(services, own);
  const report = (names: readonly string[], rule: string, message: (list: string) => string, fix: string): Finding[] =>
    names.length === 0 ? [] : [createWarning(rule, file, message(names.slice(0, 8).join(', ')), fix)];
  return [
    ...(proxy === undefined
      ? []
      : [
          createWarning(
            'compose/proxy',
            file,
            `The proxy ${proxy.service.name} is not run: the gateway of the platform has its routes (${proxy.config.file}).${proxy.config.more === undefined ? '' : ` It also ${proxy.config.more}, which is not done here.`}`,
            proxy.config.more === undefined ? 'Nothing has to be changed.' : 'Have a component of the app do that.',
          ),
        ]),
    ...missing.map(({ name, needed }) => rejectMissing(file, name, needed)),
    ...report(
      others,
      'compose/not-run',
      (list) => `Not run here, since the repository does not build them: ${list}.`,
      'If the app needs one of them, build it in the repository, use a service of moorage.yaml, or reach it by its public URL.',
    ),
    ...report(
      late.map(({ name }) => name),
      'compose/late-job',
      (list) =>
        `Not run here: ${list}. A task runs before the components of a release start, and these need one that runs.`,
      'Have the app do that when it starts.',
    ),
    ...report(
      inactive,
      'compose/profiles',
      (list) => `Not run here, since they belong to profiles that are not started by default: ${list}.`,
      'If the app needs one of them, remove its profiles, or list the components in moorage.yaml.',
    ),
    ...report(
      powerful,
      'compose/privileged',
      (list) => `Privileges and the network of the host are not given to: ${list}.`,
      'Remove privileged and network_mode from the service, or list the components in moorage.yaml without it.',
    ),
  ];
}

/** Servers that an app which waits for them cannot do without, and that no backing service here replaces. */
const indispensable =
  /(?:^|\/)(?:rabbitmq|kafka|cp-kafka|redpanda|zookeeper|cp-zookeeper|clickhouse(?:-server)?|elasticsearch|opensearch|cassandra|scylla|neo4j|memcached|weaviate|milvus|supertokens-\w{1,20}|keycloak|auto-setup|temporal\w{0,20}|nats|eclipse-mosquitto|couchdb|mssql|server\/mssql|cockroach|gotrue|hasura\/graphql-engine|graphql-engine)(?::|@|$)/i;

function findMissingServices(
  services: readonly ComposeService[],
  own: readonly ComposeService[],
): { name: string; needed: ComposeService }[] {
  const found = services.flatMap(({ name, depends_on: dependencies = [] }) =>
    dependencies.flatMap((each) => {
      const needed = own.find((other) => other.name === each.name && other.build === undefined);
      return needed !== undefined && indispensable.test(needed.image ?? '') ? [{ name, needed }] : [];
    }),
  );
  return [...new Map(found.toReversed().map((each) => [each.needed, each])).values()];
}

function rejectMissing(file: string, name: string, { name: needed, image = '' }: ComposeService): Finding {
  return {
    rule: 'compose/missing-service',
    severity: 'error',
    file,
    message: `The service ${name} waits for ${needed} (${image.slice(0, 100)}), which the repository does not build and Moorage does not offer.`,
    fix: `Build ${needed} in the repository, use one of the services of moorage.yaml instead, or list the components in moorage.yaml if the app works without it.`,
  };
}

/** Reports what pages should be built with, and neither the repository nor the routes of the app say. */
export function reportArguments(
  file: string,
  { name, build: declared }: ComposeService,
  component: DeclaredComponent | undefined,
): Finding[] {
  const { build: { args = [], env = [] } = {} } = component ?? {};
  const known = new Set([...args, ...env].map((each) => each.name));
  const missing = (declared?.args ?? [])
    .map(([each]) => each)
    .filter((each) => isPageVariable(each) && !known.has(each));
  const [first] = missing;
  if (component === undefined || component.image !== undefined || first === undefined) return [];
  return [
    createWarning(
      'compose/unset-arguments',
      file,
      `The pages of ${name} are built without ${missing.slice(0, 8).join(', ')}, which has no value in the repository.`,
      `Set it in moorage.yaml (build.args of the component ${component.name}); \${{app.url}} stands for the address of the app, and \${{app.api.url}} for that of a component with the subdomain api.`,
    ),
  ];
}

/** Reports folders of the repository that the file mounts into its containers. */
export function reportSources(file: string, services: readonly ComposeService[], tree: Tree): Finding[] {
  const mounts = services.flatMap(({ name, volumes = [] }) =>
    volumes
      .filter(({ source }) => /^\.{1,2}(?:\/|$)/.test(source) && tree.getEntry(toFolder(source))?.kind !== 'file')
      .filter(
        ({ source }) =>
          toFolder(source) === '.' ||
          tree
            .getSubtree(toFolder(source))
            .entries.some(({ kind, path }) => kind === 'file' && !path.startsWith('.git')),
      )
      .map(({ source, target }) => `${source}:${target} of ${name}`),
  );
  if (mounts.length === 0) return [];
  return [
    createWarning(
      'compose/mounted-source',
      file,
      `Folders of the repository are not mounted (${mounts.slice(0, 5).join(', ')}): each image has the files that its build copies.`,
      'Nothing has to be changed if the Dockerfile copies them.',
    ),
  ];
}
