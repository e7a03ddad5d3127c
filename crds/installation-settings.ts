// Settings of an installation that several of its processes read.
import { z } from 'zod';
import { list } from '../lib/config.ts';
import { defineSetting, kinds, valueTypes } from '../lib/settings.ts';
import { subnets } from '../lib/subnets.ts';

const hosts = list.transform((names) => names.map((name) => name.toLowerCase()));

export const installationSettings = {
  domainsIssuer: defineSetting(kinds.optional(kinds.text(valueTypes.name, z.string())), {
    value: 'domains.issuer',
    description:
      'Issuer of cert-manager that signs the certificates of own domains of apps. If empty, authors cannot add domains.',
    omitEmpty: true,
  }),
  externalPort: defineSetting(kinds.port, {
    value: 'externalPort',
    default: 443,
    description: 'Port in the public URLs.',
  }),
  appsNamespace: defineSetting(kinds.text(valueTypes.name, z.string()), {
    value: 'namespaces.apps',
    default: 'moorage-apps',
    description: 'Namespace of the HostedApps and of the objects that run them.',
  }),
  buildsNamespace: defineSetting(kinds.text(valueTypes.name, z.string()), {
    value: 'namespaces.builds',
    default: 'moorage-builds',
    description: 'Namespace of the pipeline Jobs.',
  }),
  gitAllowedHosts: defineSetting(
    {
      ...kinds.list(
        valueTypes.host,
        hosts.refine((names) => names.length > 0, 'must name at least one git host, like github.com'),
      ),
      value: z.array(valueTypes.host).min(1),
    },
    {
      value: 'git.allowedHosts',
      default: ['github.com'],
      // An installation serves strangers, who use the other large hosts too. A process alone allows only what it must.
      chartDefault: ['github.com', 'gitlab.com', 'codeberg.org', 'npmjs.com', 'pypi.org'],
      description:
        'Allowed git hosts, and registries whose packages can be hosted: npmjs.com and pypi.org. The first one is the default host of owner/name.',
    },
  ),
  gitInsecureHosts: defineSetting(
    kinds.list(z.string().regex(/^([a-z0-9.-]+[.])?(localhost|svc[.]cluster[.]local)(:[0-9]{1,5})?$/), hosts),
    {
      value: 'git.insecureHosts',
      default: [],
      description: 'Allowed git hosts that are reached over plain HTTP; only hosts inside the cluster.',
    },
  ),
  trustedProxies: defineSetting(kinds.list(valueTypes.cidr, subnets), {
    value: 'api.trustedProxies',
    default: [],
    description: 'Addresses whose X-Forwarded-For header is trusted: those of the pods of the gateway.',
  }),
} as const;
