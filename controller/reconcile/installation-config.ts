// The settings of the installation that apply to every app. config.ts makes them from the environment.
import type { AppsSite } from '../../crds/names.ts';
import type { GitAccess } from '../../lib/git/git.ts';
import type { GitHosts } from '../../lib/repository.ts';
import type { PipelineInput } from '../pipeline/contract.ts';

export interface InstallationConfig {
  readonly site: AppsSite;
  readonly appsNamespace: string;
  readonly buildsNamespace: string;
  /** Where the operator and the API are. */
  readonly systemNamespace: string;
  readonly gitHosts: GitHosts;
  /** What repositories are read with that not everybody may read. */
  readonly gitAccess: GitAccess;
  readonly gateway: {
    readonly name: string;
    readonly namespace: string;
    readonly namespaceLabels: Readonly<Record<string, string>>;
    /** Of Strict-Transport-Security; 0: no such header. */
    readonly hstsSeconds: number;
  };
  /** Own domains of apps; undefined: apps have none. */
  readonly domains?: DomainsConfig | undefined;
  readonly registry: {
    readonly host: string;
    readonly insecure: boolean;
    /** The registry proxy, host and port; builds reach the registry through it only. */
    readonly proxy: string;
    /** Makes the tokens of apps for the registry proxy. */
    readonly tokenSecret: string;
    readonly pullSecret?: string | undefined;
    readonly mirror?: string | undefined;
    /** Registry hosts that the mirror stands in for. */
    readonly mirrorOf: readonly string[];
    /** Base images of plans that the mirror does not have. */
    readonly missingImages?: readonly string[];
    /** Images that are made when an app first needs them. */
    readonly imagesOnDemand?: readonly string[];
  };
  readonly pipeline: {
    readonly image: string;
    readonly limits: PipelineInput['limits'];
    readonly licenses: PipelineInput['licenses'];
    readonly cache: boolean;
    /** Maximum bytes of the layer cache of an app. */
    readonly cacheBytes: number;
    /** Limits of every build, whatever its spec says; quantities. */
    readonly maximum: { readonly cpu: string; readonly memory: string; readonly disk: string };
    readonly maximumMs: number;
    /** Finished Jobs kept an app. */
    readonly historyLimit: number;
    readonly priorityClass?: string | undefined;
    /** Platform faults in a row, on one commit, after which it is not retried until a person asks for it. */
    readonly faultLimit: number;
  };
  readonly run: {
    readonly runtimeClass?: string | undefined;
    readonly storageClass?: string | undefined;
    /** One that never preempts: an app waits for room, it does not throw a build off its node. */
    readonly priorityClass?: string | undefined;
    /** A release that has served this many milliseconds without a crash is good. */
    readonly goodAfterMs: number;
    /** How apps reach models; absent: they do not. */
    readonly models?: { readonly baseUrl: string; readonly tokenSecret: string } | undefined;
    /** Backing services: databases and stores of apps. */
    readonly services: {
      /** Image by type, or by type and version. */
      readonly images: Readonly<Record<string, string>>;
      readonly count: number;
      /** Limits of each, whatever its spec says; quantities. */
      readonly maximum: { readonly memory: string; readonly disk: string };
      /** Makes the passwords. */
      readonly passwordSecret: string;
    };
    /** Addresses that an app must not reach. */
    readonly closedCidrs: readonly string[];
  };
  /** Absent: there is no activator, so no app is put to rest. */
  readonly idle?:
    { /** For apps that do not say themselves: auto or a duration. */ readonly after?: string | undefined } | undefined;
  readonly previews: {
    /** Maximum number of previews of an app; 0: none. */
    readonly limit: number;
    /** Whether there is an activator. Without one, a preview could not sleep, so there are none. */
    readonly canSleep: boolean;
  };
  /** Opens the tokens that prove ownership; absent: none is accepted. */
  readonly ownershipSecret?: string | undefined;
  /** A submitted app that has not gone live after this many milliseconds is deleted; absent: never. */
  readonly expireMs?: number | undefined;
  /** How long the data of a deleted app is kept, unless it is to be retained. */
  readonly keepDataMs: number;
  /** Base URL of the gateway from inside; absent: apps are not probed before they are reported as live. */
  readonly probeUrl?: string | undefined;
  /** Shown to the activator by probes, so that they wake no app. */
  readonly probeToken?: string | undefined;
}

export interface DomainsConfig {
  /** Of their Gateways and certificates. */
  readonly namespace: string;
  /** Of cert-manager, named in an annotation of each Gateway. */
  readonly issuer: { readonly kind: 'ClusterIssuer' | 'Issuer'; readonly name: string };
  readonly gatewayClass: string;
  readonly httpsPort: number;
  /** DNS servers that are asked for proofs; empty: those of the process. */
  readonly resolvers: readonly string[];
  /** Domains of the API and of the apps, which no app gets. */
  readonly platform: readonly string[];
  readonly intervalMs: number;
  readonly graceMs: number;
}
