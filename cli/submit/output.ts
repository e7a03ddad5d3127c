// Terminal output of a submission: its stages with the time of each, the log below them, and the outcome.
import { harmless } from '../../api/apps/submit/log/log-text.ts';
import type { Finding, LogEvent, Reason, Status } from './api-client.ts';

/** Shows a submission to a person. */
export interface Output {
  say(text: string): void;
  event(event: LogEvent): void;
  /** The outcome: the URL, or the reason of the rejection. */
  verdict(status: Status, reason: Reason | undefined): void;
}

const indent = ' '.repeat(12);

/** Makes an output. @param write takes a whole line; @param now milliseconds of some clock */
export function createOutput(write: (line: string) => void, now: () => number = () => performance.now()): Output {
  const start = now();
  let shown = '';
  let logged = '';
  let reached = '';
  const at = (text: string): void => {
    write(`${((now() - start) / 1000).toFixed(1).padStart(8)} s  ${harmless(text)}`);
  };
  return {
    say: at,
    event(event) {
      if (event.type === 'gone') {
        write(`${indent}(the log of this build is no longer kept)`);
      } else if (event.type === 'log') {
        const heading = event.stage === logged ? '' : `${event.stage}:`;
        if (heading !== '') write(`${indent}${heading}`);
        logged = event.stage;
        write(`${indent}  ${harmless(event.line)}`);
      } else if (event.type === 'stage' && event.stage !== undefined) {
        const text = `${event.stage}${event.position === undefined ? '' : `, position ${event.position}`}`;
        if (text !== shown) at(startsOver(reached, event.stage) ? `${text} again: ${event.message}` : text);
        shown = text;
        reached = event.stage;
      }
    },
    verdict(status, reason) {
      if (reason === undefined) {
        at(status.status === 'live' ? 'live' : status.message);
        for (const line of wellLines(status)) write(line);
        return;
      }
      at(status.status === 'live' ? 'rejected; the last good commit is still live' : 'rejected');
      for (const line of [...reasonLines(reason), ...(isBuilt(reason) ? planLines(status) : [])]) write(line);
      for (const line of otherFindings(status.findings ?? [], reason)) write(line);
    },
  };
}

const stages = ['queued', 'cloning', 'reviewing', 'building'];

/** A fault of the platform sends a commit back to an earlier stage; the output says why then. */
function startsOver(before: string, now: string): boolean {
  return stages.indexOf(now) >= 0 && stages.indexOf(now) < stages.indexOf(before);
}

function reasonLines({ rule, file, line, message, fix, log }: Reason): string[] {
  const tail = (log ?? '')
    .split(/[\r\n]+/)
    .filter((text) => text !== '')
    .slice(-20)
    .map((text) => `    ${harmless(text)}`);
  return [
    `  rule   ${harmless(rule)}`,
    ...locationOf(file, line).map((location) => `  at     ${location}`),
    ...paragraphs('  why    ', message),
    ...paragraphs('  fix    ', fix),
    ...(tail.length === 0 ? [] : ['  log', ...tail]),
  ];
}

/** The URL, how the image was made, what was seen of the page, and what there is to improve. */
function wellLines(status: Status): string[] {
  const { url, findings = [], warning } = status;
  return [
    ...(status.status === 'live' ? [url] : []),
    ...planLines(status),
    ...pageLines(status),
    ...otherFindings(findings),
    ...(warning === undefined ? [] : [`  warning  the app ${harmless(warning)}`]),
  ];
}

/** A plan says something about what came after it, and nothing about a review that stopped before. */
function isBuilt({ rule }: Reason): boolean {
  return /^(?:build|run)\//.test(rule);
}

/** How the image was made, and why so. */
function planLines({ plan }: Status): string[] {
  if (plan === undefined) return [];
  const kind = plan.framework === undefined ? plan.strategy : `${plan.strategy}, ${plan.framework}`;
  return paragraphs('  plan   ', `${kind}. ${plan.reason}`);
}

/** What was seen of the page; what does not work in it comes as the warning. */
function pageLines({ page }: Status): string[] {
  return page?.status === undefined
    ? []
    : [`  page   responds with ${page.status} and loads ${page.assets ?? 0} files of its own.`];
}

function otherFindings(findings: readonly Finding[], reason?: Reason): string[] {
  const others = findings.filter(
    ({ rule, file, line }) => rule !== reason?.rule || file !== reason.file || line !== reason.line,
  );
  return others.map(({ severity, rule, file, line, message, fix }) =>
    harmless(
      `  ${severity}  ${[rule, ...locationOf(file, line)].join(' at ')}: ${message} ${fix}`
        .replaceAll(/\s+/g, ' ')
        .replace(/^ /, '  '),
    ),
  );
}

function locationOf(file: string | null | undefined, line: number | null | undefined): string[] {
  if (file === undefined || file === null) return [];
  return [harmless(line === undefined || line === null ? file : `${file}:${line}`)];
}

function paragraphs(heading: string, text: string): string[] {
  return text
    .split(/[\r\n]+/)
    .map((line, index) => `${index === 0 ? heading : ' '.repeat(heading.length)}${harmless(line)}`);
}
