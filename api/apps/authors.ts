// Whose an app is: the owner of its repository, what of its uses he accrues, and whether he holds a key.
import { readSettings, resolveSpec } from '../../crds/effective-settings.ts';
import { labels } from '../../crds/names.ts';
import { repositoryOf, type App } from './hosted-apps.ts';

export interface Authorship {
  readonly app: string;
  /** Git host and owner of its repository, in lower case: who accrues. */
  readonly author: string;
  /** Host, owner and name of its repository, like github.com/octo/hello: what the line of a key is bound to. */
  readonly repository: string;
  /** The author's share in parts per million. */
  readonly sharePpm: number;
  /** Hash of the caller who submitted it, as payers are named; undefined where it was not submitted through the API. */
  readonly submitter: string | undefined;
  /** Hash in each line of a key in the repository with which its author reads statements. */
  readonly keys: readonly string[];
}

export function authorshipOf(app: App): Authorship {
  const { host, owner, name } = repositoryOf(app);
  const { author } = resolveSpec(app, readSettings(app.status?.built?.settings));
  return {
    app: app.metadata.name,
    author: `${host}/${owner}`.toLowerCase(),
    repository: `${host}/${owner}/${name}`,
    sharePpm: Math.round(Number(author.share) * 1_000_000),
    submitter: app.metadata.labels?.[labels.caller],
    keys: app.status?.authorKeys ?? [],
  };
}
