// What built-in tools depend on: given to each of them once, at start.
import type { Database } from '../../billing/index.ts';
import type { Catalog, ModelServices } from '../../models/index.ts';
import type { ServiceUrls } from '../services/backing-services.ts';
import type { Fetcher } from '../fetch/fetcher.ts';
import type { ArtifactStore } from './artifacts/artifact-store.ts';
import type { Workers } from './workers/workers.ts';

export interface ToolDependencies {
  /** Where this API answers, like https://moorage.localhost. */
  readonly baseUrl: string;
  /** Base URLs of the backing services that are enabled. */
  readonly urls: ServiceUrls;
  /** Model that the speech server transcribes with. */
  readonly speechModel: string;
  /** Fetches what strangers name, and nothing inside. */
  readonly fetcher: Fetcher;
  /** Files that tools created, for calls that go on from them. */
  readonly artifacts: Pick<ArtifactStore, 'get'>;
  /** Handles hostile input in separate processes, with limits. */
  readonly workers: Workers;
  /** The models that can be asked. */
  readonly catalog: Catalog;
  /** Tokens of an answer: the default and the maximum. */
  readonly maxTokens: ModelServices['maxTokens'];
  /** Hosted apps that are live now. */
  readonly apps: () => readonly HostedAppSummary[];
  /** @throws Problem (ledger-unavailable, models-unconfigured) while there is none */
  readonly database: () => Database;
}

export interface HostedAppSummary {
  readonly slug: string;
  readonly title: string;
  readonly description: string;
  readonly category: string | undefined;
  readonly url: string;
  /** Address of its source repository. */
  readonly repo: string;
}
