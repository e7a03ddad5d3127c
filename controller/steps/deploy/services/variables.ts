// How an app finds its backing services: usual variables, what its own values may name of them, and host names.
import type { V1EnvVar, V1HostAlias, V1NetworkPolicyEgressRule } from '@kubernetes/client-node';
import type { BackingService } from '../../../../crds/backing-services.ts';
import type { HostedApp } from '../../../../crds/hosted-app.ts';
import type { Service } from '../../../objects/kinds.ts';
import { annotations } from '../../../../crds/names.ts';
import type { Wire } from '../../../../lib/kubernetes/index.ts';
import { serviceKinds } from './kinds.ts';
import { loginOf } from './login.ts';
import { allBackingSelector } from './names.ts';
import { passwordReference } from './objects.ts';

/** What an author may name of a service, as Kubernetes takes it. */
export function fieldOf(service: BackingService, field: string): string {
  const kind = serviceKinds[service.type];
  const login = loginOf(service, kind.login);
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
export function passwordVariables(app: HostedApp): Wire<V1EnvVar>[] {
  return app.spec.services.map((service) => passwordReference(app, service));
}

/** The usual variables: of the first service of each type, and never one that the app sets itself. */
export function serviceVariables(app: HostedApp): Wire<V1EnvVar>[] {
  const { env, secrets } = app.spec.run;
  const taken = new Set([...env, ...secrets].map(({ name }) => name));
  return app.spec.services.flatMap((service) => {
    const kind = serviceKinds[service.type];
    return Object.entries(kind.variables(loginOf(service, kind.login))).flatMap(([name, value]) => {
      if (taken.has(name)) return [];
      taken.add(name);
      return value === '' ? [{ name }] : [{ name, value }];
    });
  });
}

/** Address of each service inside the cluster, by its name. */
export type ServiceAddresses = ReadonlyMap<string, string>;

/** The addresses that the cluster has given. */
export function addressesOf(objects: readonly Service[]): ServiceAddresses {
  return new Map(
    objects.flatMap(({ metadata, spec }) => {
      const name = metadata.annotations?.[annotations.service];
      const address = spec?.clusterIP;
      return name === undefined || address === undefined || address === 'None' ? [] : [[name, address] as const];
    }),
  );
}

/** Lines of /etc/hosts by which the app finds its services under their names: many apps share the names of a namespace. */
export function hostAliases(app: HostedApp, addresses: ServiceAddresses): Wire<V1HostAlias>[] {
  return app.spec.services.flatMap(({ name }) => {
    const ip = addresses.get(name);
    return ip === undefined ? [] : [{ ip, hostnames: [name] }];
  });
}

/** The opening in the app's NetworkPolicy towards its own services. */
export function serviceEgress(app: HostedApp): Wire<V1NetworkPolicyEgressRule>[] {
  const { services } = app.spec;
  if (services.length === 0) return [];
  const ports = [...new Set(services.flatMap(({ type }) => serviceKinds[type].ports))].sort((a, b) => a - b);
  return [
    {
      to: [{ podSelector: { matchLabels: allBackingSelector(app) } }],
      ports: ports.map((port) => ({ port, protocol: 'TCP' })),
    },
  ];
}
