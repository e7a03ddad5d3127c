// The table of a run: figures, then a row a repository.
import { markdownTable, shorten } from '../table.ts';
import { verdicts, type Result } from './results.ts';

export function runTable(results: readonly Result[]): string {
  const rows = results.toSorted((one, other) => one.repo.toLowerCase().localeCompare(other.repo.toLowerCase()));
  const versions = [...new Set(rows.map(({ version }) => version))].join(', ');
  const closed = rows.filter(({ fair }) => fair === 'network').length;
  const brought = rows.filter(({ verdict }) => verdict !== 'not brought in').length;
  const working = rows.filter(({ verdict }) => verdict === 'live and works').length;
  const open = brought - closed;
  const fair = rows.filter((row) => row.fair === 'yes').length;
  const licensed = rows.filter((row) => row.licensed === true).length;
  return [
    `# The corpus on a cluster${rows.every(({ hidden }) => hidden === true) ? ', Dockerfiles hidden' : ''}, version ${versions}`,
    "*Live with a warning* means that the page does not work and the app's status says so. *Falsely live* means that the status does not say so.",
    ...(licensed === 0 ? [] : [`Submitted with a licence file that the repository does not have: ${licensed}.`]),
    markdownTable(
      ['verdict', 'repositories'],
      verdicts.map((verdict) => [verdict, rows.filter((row) => row.verdict === verdict).length]),
    ),
    markdownTable(
      ['rejections', 'repositories'],
      ['yes', 'no', 'network', 'unjudged'].map((fair) => [words[fair], rows.filter((row) => row.fair === fair).length]),
    ),
    `The network did not stop ${open}: ${share(working, open)} of these are live and work. Without those that were fairly rejected, it is ${share(working, open - fair)} of ${open - fair}.`,
    markdownTable(
      ['repository', 'stack', 'verdict', 'fair', 'why', 'seconds', 'image', 'plan', 'elsewhere'],
      rows.map((row) => [
        row.repo,
        row.stack,
        row.verdict,
        row.fair,
        shorten(row.why, 400),
        row.seconds,
        row.imageBytes === undefined ? undefined : `${Math.round(row.imageBytes / 1e6)} MB`,
        shorten(row.plan ?? '', 200),
        (row.elsewhere ?? []).join(' '),
      ]),
    ),
    '',
  ].join('\n\n');
}

const share = (part: number, whole: number): string =>
  whole === 0 ? `${part}` : `${part} (${Math.round((100 * part) / whole)} %)`;

const words: Readonly<Record<string, string>> = {
  yes: 'fair',
  no: 'not fair',
  network: 'stopped by the closed network',
  unjudged: 'to be judged by a person',
};
