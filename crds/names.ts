// Defines every name that Moorage writes into a cluster, registry or URL, and the names that no app can have.

/** API group and version of HostedApp. */
export const group = 'moorage.dev';
export const version = 'v1alpha1';
export const kind = 'HostedApp';
export const plural = 'hostedapps';

/** Server-side apply field manager of everything the operator writes. */
export const fieldManager = 'moorage';

/** Kept on a HostedApp until its pipeline Jobs (in another namespace) are gone. */
export const finalizer = 'moorage.dev/pipelines';

export const labels = {
  /** Name of the HostedApp that an object belongs to. */
  app: 'moorage.dev/app',
  /** Namespace of that HostedApp; needed where the object lives in another one. */
  appNamespace: 'moorage.dev/app-namespace',
  /** On a HostedApp: short hash of its normalized repository, to find it by repository. */
  repository: 'moorage.dev/repository',
  /** On a HostedApp: keyed hash of the submitter, to limit submissions. */
  caller: 'moorage.dev/caller',
  /** On a HostedApp: keyed hash of the network it was submitted from, to share apps and builds among networks. */
  network: 'moorage.dev/network',
  /** On a pipeline Job: full commit id. */
  commit: 'moorage.dev/commit',
  /** On the objects of a backing service of an app: name of that service. */
  service: 'moorage.dev/service',
  /** On what holds data of an app (claims, generated Secrets): its owner, as the operator's dataIdentity makes it. */
  data: 'moorage.dev/data',
  /** On the HTTPRoute and the Gateway of an app's own domain. Its value only says that it is one. */
  domain: 'moorage.dev/domain',
  /** On a namespace whose HTTPRoutes the Gateway accepts. */
  routes: 'moorage.dev/routes',
  /** Its pod may reach git servers over SSH. */
  ssh: 'moorage.dev/ssh',
  /** Standard labels. */
  name: 'app.kubernetes.io/name',
  instance: 'app.kubernetes.io/instance',
  component: 'app.kubernetes.io/component',
  partOf: 'app.kubernetes.io/part-of',
  managedBy: 'app.kubernetes.io/managed-by',
} as const;

export const annotations = {
  /** On a HostedApp: change its value to build the same commit again. One that ends with .no-cache ignores the layer cache. */
  rebuild: 'moorage.dev/rebuild',
  /** On a HostedApp: change its value to look for a new commit now. */
  poll: 'moorage.dev/poll',
  /** On a HostedApp: the number of the rest (status.idle.number) that is to end. Written by the activator. */
  wake: 'moorage.dev/wake',
  /** On a HostedApp: states of the images of status.neededImages, JSON. Written by the installation's image maker. */
  preparedImages: 'moorage.dev/prepared-images',
  /** On a HostedApp: its title and its description in Chinese, for the catalog. */
  titleZh: 'moorage.dev/title-zh',
  descriptionZh: 'moorage.dev/description-zh',
  /** On a pipeline Job and on app pods: full commit id, which may be longer than a label. */
  commit: 'moorage.dev/commit',
  /** On a pipeline Job: counts up with each pipeline of the app. */
  number: 'moorage.dev/number',
  /** On a pipeline Job: when it was queued, in milliseconds; creationTimestamp has whole seconds. */
  queuedAt: 'moorage.dev/queued-at',
  /** On a pipeline Job: why it was started. */
  reason: 'moorage.dev/reason',
  /** On a pipeline Job: hash of each build input, to report later which of them changed. */
  inputs: 'moorage.dev/inputs',
  /** On a pipeline Job: UID of the HostedApp that it builds. */
  appUid: 'moorage.dev/app-uid',
  /** On a pipeline Job: the submitter of the app, whose concurrent builds are limited. */
  submitter: 'moorage.dev/submitter',
  /** On a pipeline Job: when and why its pod found no room, JSON. */
  noRoom: 'moorage.dev/no-room',
  /** On app pods: bytes of temporary disk, for container runtimes that can enforce it. */
  disk: 'moorage.dev/disk',
  /** On app pods: image by digest, as it was built. */
  image: 'moorage.dev/image',
  /** On pods of an app with several components: hash of the images of all, also of those that run no container of the pod. */
  imagesHash: 'moorage.dev/images-hash',
  /** On app pods: port that they listen on. */
  port: 'moorage.dev/port',
  /** On pods of an app with several components: these, with their ports and routes, JSON (crds/routes.ts). */
  components: 'moorage.dev/components',
  /** On what runs a backing service of an app: name of that service. */
  service: 'moorage.dev/service',
  /** On a claim: what the names of the app's data are made from (status.dataKey of its HostedApp). */
  dataKey: 'moorage.dev/data-key',
  /** On a claim: spec.deletionPolicy of its HostedApp. */
  deletionPolicy: 'moorage.dev/deletion-policy',
  /** On a claim: names of the generated Secrets that belong to it, separated by commas. */
  dataSecrets: 'moorage.dev/data-secrets',
  /** On a claim whose HostedApp was deleted: when it is deleted too, RFC 3339, or never. */
  deleteAfter: 'moorage.dev/delete-after',
  /** On objects that start a new image of an app while the old one serves, before it replaces it. */
  trial: 'moorage.dev/trial',
  /** On what runs a task or cron component of an app: name of that component. */
  task: 'moorage.dev/task',
  /** On app pods: hash of the template that they were made from. */
  template: 'moorage.dev/template',
  /** On a Deployment: the release that it runs, JSON. */
  release: 'moorage.dev/release',
  /** On a Deployment: the release that a rollback would run, JSON. */
  before: 'moorage.dev/before',
  /** On a Deployment: templates, separated by commas, evicted for disk usage too often to be started again. */
  stopped: 'moorage.dev/stopped',
  /** On a Deployment: template that failed repeatedly and is not started again, and why, JSON. */
  halted: 'moorage.dev/halted',
} as const;

/** A request for another build of a commit, as the annotation moorage.dev/rebuild has it. */
export interface RebuildRequest {
  /** When it was requested; undefined if the value is no time, as kubectl users may write anything. */
  readonly at: Date | undefined;
  /** Whether the layer cache is ignored. */
  readonly noCache: boolean;
}

const noCacheSuffix = '.no-cache';

/** Formats a rebuild request. The admission policy accepts short values of letters, digits, `:`, `.` and `-`. */
export function formatRebuildRequest(at: Date, noCache: boolean): string {
  return `${at.toISOString()}${noCache ? noCacheSuffix : ''}`;
}

/** Parses the value of the annotation moorage.dev/rebuild; undefined if it is absent. */
export function parseRebuildRequest(value: string | undefined): RebuildRequest | undefined {
  if (value === undefined) return undefined;
  const noCache = value.endsWith(noCacheSuffix);
  const at = new Date(noCache ? value.slice(0, -noCacheSuffix.length) : value);
  return { at: Number.isNaN(at.getTime()) ? undefined : at, noCache };
}

/** Component of pods that only try a new image: no request reaches them. */
export const trialComponent = 'trial';

/** Component of pods that run a task or cron component of an app: no request reaches them. */
export const taskComponent = 'task';

/** Header of the platform's own requests to an app. They wake no app and are not counted as uses. */
export const probeHeader = 'moorage-probe';

/**
 * Header with the values of a caller for variables of an MCP server: a JSON object. The bridge in the app sets them for the
 * process of the session that starts with the message, and they are neither stored nor logged.
 */
export const mcpEnvironmentHeader = 'Moorage-Mcp-Environment';

/** Service of the activator in the namespace of the installation, and the ports of its pods. */
export const activator = { name: 'moorage-activator', component: 'activator', port: 8080, controlPort: 8082 } as const;

const maximumSlugLength = 40;

/** The form of an app's slug, which is the name of its HostedApp and its subdomain. */
export const slugPattern = '^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$';

/**
 * Turns any text into a DNS label (RFC 1123) of lower-case letters, digits and inner hyphens. At most 40 characters, so
 * that names derived from it (Jobs, pods) still fit in 63. Empty if nothing usable is left.
 */
export function toDnsLabel(text: string): string {
  return text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, maximumSlugLength)
    .replace(/-+$/, '');
}

/** Containers of a pipeline pod, in order. */
export const containers = ['clone', 'review', 'build'] as const;
export type PipelineContainer = (typeof containers)[number];

/** The domain of the apps, and the port in the URLs that people see. */
export interface AppsSite {
  /** Each app answers at <app>.<domain>, and nothing else does. */
  readonly domain: string;
  readonly port: number;
}

/** Host name of an app. */
export function formatAppHost(app: string, { domain }: AppsSite): string {
  return `${app}.${domain}`;
}

/** Separates an app from a subdomain of it in a host name, which stays one label: a certificate for *.<domain> covers it. */
const subdomainMark = '--';

/** Separates an app from the reference that a preview of it shows, in the name of the preview. */
export const previewMark = '--';

/** The second part of a preview's name: of a pull request, a merge request or a branch. No component has such a subdomain. */
export const previewLabelPattern = '((pr|mr)-[1-9][0-9]*|br-[a-z0-9]+(-[a-z0-9]+)*)';

/** The form of a preview's name, which no app can have. */
export const previewNamePattern = `^[a-z][a-z0-9]*(-[a-z0-9]+)*--${previewLabelPattern}$`;

/** First label of the host name of a component that has its own. */
export function formatSubdomainLabel(app: string, subdomain: string): string {
  return `${app}${subdomainMark}${subdomain}`;
}

/** Turns the host name or the URL of an app into that of one of its subdomains. */
export function addSubdomain(address: string, subdomain: string | undefined): string {
  if (subdomain === undefined) return address;
  return address.replace(/^([a-z]+:\/\/)?([^./:]+)/, (_whole, scheme: string | undefined, label: string) => {
    return `${scheme ?? ''}${formatSubdomainLabel(label, subdomain)}`;
  });
}

const previewHostExpression = new RegExp(`^.+?--${previewLabelPattern}(?=--|$)`);

/**
 * The app or preview, and the subdomain, in the first label of a host name. An app of an earlier version may have a name
 * with "--".
 */
export function parseHostLabel(label: string): { readonly app: string; readonly subdomain: string | undefined } {
  const preview = previewHostExpression.exec(label)?.[0];
  const at = preview === undefined ? label.indexOf(subdomainMark) : label.indexOf(subdomainMark, preview.length);
  return at < 0
    ? { app: label, subdomain: undefined }
    : { app: label.slice(0, at), subdomain: label.slice(at + subdomainMark.length) };
}

/** URL of an app, as people see it. The operator and the API both use this. */
export function formatAppUrl(app: string, site: AppsSite): string {
  return new URL(`https://${formatAppHost(app, site)}:${site.port}`).href;
}

/** The app that a registry repository belongs to. */
export interface RepositoryOwner {
  readonly name: string;
  readonly uid: string;
}

/**
 * Repository of an app's images, without the registry's host. It includes the UID, so that a later app of the same name
 * never sees what this one left there.
 */
export function formatImageRepository({ name, uid }: RepositoryOwner): string {
  return `apps/${name}.${uid}`;
}

/** Repository of an app's layer cache, without the registry's host. */
export function formatCacheRepository({ name, uid }: RepositoryOwner): string {
  return `cache/${name}.${uid}`;
}

/** First part of the name of each repository that the platform writes to. An app's build must not read these. */
export const platformFolders = ['apps', 'cache', 'moorage'] as const;

/** Tag of the image that a pipeline pushes: its number, so that images no release refers to can be found and removed. */
export function formatImageTag(number: number): string {
  return `build-${number}`;
}

/** Number of the pipeline that pushed a tag, of whichever component; undefined for any other tag. */
export function parseImageTag(tag: string): number | undefined {
  const number = Number(/^build-([1-9][0-9]{0,9})(?:-[a-z][-a-z0-9]*)?$/.exec(tag)?.[1]);
  return Number.isNaN(number) ? undefined : number;
}

/**
 * Tags of the layer cache: of all steps, or, for an app whose cache of all steps exceeds its limit, of the image's layers
 * alone, which take no additional space.
 */
export const cacheTags = { all: 'steps', image: 'image' } as const;

/** The tag of an image or a cache for one component of an app that has several: all of them share two repositories. */
export function formatComponentTag(tag: string, component: string | undefined): string {
  return component === undefined ? tag : `${tag}-${component}`;
}

/** What a tag of the layer cache is of, of whichever component; undefined for a tag that no build makes. */
export function parseCacheTag(tag: string): keyof typeof cacheTags | undefined {
  const [, name] = /^([a-z]+)(?:-[a-z][-a-z0-9]*)?$/.exec(tag) ?? [];
  return (['all', 'image'] as const).find((kind) => cacheTags[kind] === name);
}

// Reserved names: a kept list, with the source of each part.

/** Subdomains of the platform itself, now or later. */
const ownNames = `
  a2a admin api app apps assets auth docs gateway git login mail mcp models moorage registry static status t
  tools well-known www
`;

/**
 * Names that programs look up and then trust: proxies (WPAD, ISATAP: RFC 5214), mail (autoconfig,
 * autodiscover, MTA-STS: RFC 8461, RFC 6186), keys (OpenPGP), calendars (RFC 6764), telephony and directories.
 */
const lookedUpNames = `
  acme acme-challenge autoconfig autodiscover bimi broadcasthost caldav carddav dkim dmarc domainkey
  enterpriseenrollment enterpriseregistration imaps isatap kerberos ldap ldaps localdomain localhost loopback
  lyncdiscover lyncdiscoverinternal msoid mta-sts ntp openpgpkey pop3 pop3s sip sipexternal sipinternal sips
  smtps submission time wpad
`;

/** Mailboxes and roles that prove or address a domain (RFC 2142, CA/Browser Forum), and places where people log in. */
const trustedNames = `
  abuse account accounts admin auth0 bank banking console ftp helpdesk hostmaster id identity idp mailer-daemon
  mfa mx no-reply noc noreply ns password passwords postmaster proxy root saml secure security ssladmin
  ssladministrator sslwebmaster sso support trouble usenet verification verify vpn wallet webmaster
`;

/**
 * From The Big Username Blacklist 1.5.2 by Martin Sandström (MIT, https://github.com/marteinn/The-Big-Username-Blacklist):
 * its names of systems, accounts and law, without ordinary words that an app may well be called (chat, search, wiki).
 */
const listedNames = `
  about access ad administration administrator ads authentication authorize backup beta billing billings cdn
  checkout com config connect copyright db dev developer developers dns documentation domain download downloads
  email file files forgot forgot-password forgotpassword help home host hosting http httpd https imap info
  invitations invite invites invoice legal license licensing local logout lost-password mailerdaemon media
  metrics moderator net network oauth oauth2 openid partners passwd pay payment payments policies policy pop
  postfix poweruser preferences press privacy privacy-policy private prod production register registration
  request-password reset reset-password rootuser services session sessions settings setup signin signup smtp ssh
  ssl stage staging subscribe sudo super superuser sysadmin system terms terms-of-use webmail www-data
`;

/** Slugs that an app can never have. */
export const reservedSlugs: ReadonlySet<string> = new Set(
  [ownNames, lookedUpNames, trustedNames, listedNames].flatMap((names) => names.trim().split(/\s+/)),
);

/**
 * The same names with a number, as servers have them; and labels with two hyphens, which stand for other scripts (RFC 5891)
 * or for a component of another app.
 */
export const reservedPattern = '^((dns|ftp|imap|mail|mx|ns|pop|smtp|vpn|web|www?)[0-9]+|.*--.*)$';

const reservedExpression = new RegExp(reservedPattern);

/** Whether no app can have this name. */
export function isReserved(name: string): boolean {
  return reservedSlugs.has(name) || reservedExpression.test(name);
}

/** The eight apps that every installation knows (section 2.7 of the interface), whether it runs them or not. */
export const catalogSlugs = [
  'chat-ui-1',
  'chat-ui-2',
  'academic-assistant',
  'research-agent',
  'chat-ui-3',
  'chat-ui-4',
  'pdf-translate',
  'slide-generator',
] as const;

const catalogSlugSet: ReadonlySet<string> = new Set(catalogSlugs);

/** Whether the name is one of theirs, which no submitted repository gets. */
export function isCatalogSlug(name: string): boolean {
  return catalogSlugSet.has(name);
}
