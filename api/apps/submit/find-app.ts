// The app of a repository that a path names as owner/name, or a problem that says what to do.
import { Problem } from '../../../lib/problem.ts';
import { parseRepository, RepositoryError, type GitHosts } from '../../../lib/repository.ts';
import { notSubmitted } from './problems.ts';
import { createValidationProblem } from '../../http/index.ts';
import { type App, type AppIndex, repositoryOf } from '../hosted-apps.ts';

/** Names a repository; `host` distinguishes namesakes on several hosts. */
export interface RepositoryName {
  readonly owner: string;
  readonly name: string;
  readonly host?: string | undefined;
}

/** The app of this repository. @throws Problem (invalid-request, not-submitted) */
export function findApp(apps: AppIndex, hosts: GitHosts, wanted: RepositoryName): App {
  const { owner, name } = checked(hosts, wanted);
  const found = apps.byPath(owner, name);
  const host = wanted.host?.toLowerCase() ?? preferredHost(found, hosts);
  const app = found.find((candidate) => repositoryOf(candidate).host === host);
  if (app !== undefined) return app;
  const where = host === undefined ? '' : ` on ${host}`;
  throw new Problem(
    notSubmitted,
    `${owner}/${name}${where} has not been submitted. To submit it, send POST /api/submit with {"repo": "${owner}/${name}"}.`,
  );
}

/** The first allowed host that has it, else the only one that has it. */
function preferredHost(found: readonly App[], hosts: GitHosts): string | undefined {
  const having = new Set(found.map((app) => repositoryOf(app).host));
  const allowed = hosts.allowed[0];
  if (allowed !== undefined && having.has(allowed)) return allowed;
  if (having.size < 2) return [...having][0] ?? allowed;
  throw createValidationProblem([
    {
      in: 'query',
      field: 'host',
      message: `is required, because repositories with this name are hosted from several git hosts: ${[...having].join(', ')}`,
      fix: `Add ?host= with one of them, such as ?host=${[...having][0] ?? ''}.`,
    },
  ]);
}

function checked(hosts: GitHosts, { owner, name, host }: RepositoryName): { owner: string; name: string } {
  if (host !== undefined && !hosts.allowed.includes(host.toLowerCase())) {
    throw createValidationProblem([
      {
        in: 'query',
        field: 'host',
        message: `must be an allowed git host; ${host} is not`,
        fix: `Use one of: ${hosts.allowed.join(', ')}.`,
      },
    ]);
  }
  try {
    return parseRepository(`${owner}/${name}`, hosts);
  } catch (error) {
    if (!(error instanceof RepositoryError)) throw error;
    throw createValidationProblem([
      { in: 'path', field: 'owner, name', message: `is not accepted: ${error.message}`, fix: error.fix },
    ]);
  }
}
