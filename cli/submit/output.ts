// Prints a submission on the terminal: its stages with their times, the log below them, and the outcome.
import { toHarmlessText } from '../../lib/harmless-text.ts';
import type { Finding, LogEvent, Reason, Status } from './api-client.ts';

/** Shows a submission to a person. */
export interface Output {
  printLine(text: string): void;
  writeEvent(event: LogEvent): void;
  /** The outcome: the URL, or the reason of the rejection. */
  writeVerdict(status: Status, reason: Reason | undefined): void;
}

const indent = ' '.repeat(12);

/** Creates an output. @param write receives whole lines; @param now milliseconds of some clock */
export function createOutput(write: (line: string) => void, now: () => number = () => performance.now()): Output {
  const start = now();
  let printedStage = '';
  let printedWait = '';
  let logged = '';
  let reached = '';
  const printLine = (text: string): void => {
    write(`${((now() - start) / 1000).toFixed(1).padStart(8)} s  ${toHarmlessText(text)}`);
  };
  return {
    printLine,
    writeEvent(event) {
      if (event.type === 'gone') {
        write(`${indent}(the log of this build is no longer kept)`);
      } else if (event.type === 'log') {
        const heading = event.stage === logged ? '' : `${event.stage}:`;
        if (heading !== '') write(`${indent}${heading}`);
        logged = event.stage;
        write(`${indent}  ${toHarmlessText(event.line)}`);
      } else if (event.type === 'stage' && event.stage !== undefined) {
        const text = `${event.stage}${event.position === undefined ? '' : `, position ${event.position}`}`;
        if (text !== printedStage)
          printLine(isRestarted(reached, event.stage) ? `${text} again: ${event.message}` : text);
        printedStage = text;
        reached = event.stage;
        const wait = readWait(event.message);
        if (wait !== printedWait && wait !== '') printLine(wait);
        printedWait = wait;
      }
    },
    writeVerdict(status, reason) {
      if (reason === undefined) {
        printLine(status.status === 'live' ? 'live' : status.message);
        for (const line of formatSuccess(status)) write(line);
        return;
      }
      printLine(status.status === 'live' ? 'rejected; the last good commit is still live' : 'rejected');
      for (const line of [...formatReason(reason, status), ...(isBuilt(reason) ? formatPlan(status) : [])]) write(line);
      for (const line of formatFindings(status.findings ?? [], reason)) write(line);
    },
  };
}

const stages = ['queued', 'cloning', 'reviewing', 'building'];

/** Whether a fault of the platform sent the commit back to an earlier stage. The output then says why. */
function isRestarted(previousStage: string, stage: string): boolean {
  return stages.indexOf(stage) >= 0 && stages.indexOf(stage) < stages.indexOf(previousStage);
}

/** What a stage waits for, such as an image that is made on first use, without the step that it is at. */
function readWait(message: string): string {
  return /\bWaiting for [^;]{1,300}?(?=;|\. |\.?$)/.exec(message)?.[0] ?? '';
}

function formatReason({ rule, file, line, message, fix, log }: Reason, { license }: Status): string[] {
  const tail = (log ?? '')
    .split(/[\r\n]+/)
    .filter((text) => text !== '')
    .slice(-20)
    .map((text) => `    ${toHarmlessText(text)}`);
  return [
    `  rule   ${toHarmlessText(rule)}`,
    ...formatLocation(file, line).map((location) => `  at     ${location}`),
    ...formatParagraphs('  why    ', message),
    ...formatParagraphs('  fix    ', fix),
    ...(license?.links ?? []).map(({ title, url }) => toHarmlessText(`  add    ${title}: ${url}`)),
    ...(tail.length === 0 ? [] : ['  log', ...tail]),
  ];
}

/** The URL, how the image was built, what the page loads, and what to improve. */
function formatSuccess(status: Status): string[] {
  const { url, findings = [], warning } = status;
  return [
    ...(status.status === 'live' ? [url] : []),
    ...formatPlan(status),
    ...formatPage(status),
    ...formatFindings(findings),
    ...(warning === undefined ? [] : [`  warning  the app ${toHarmlessText(warning)}`]),
  ];
}

/** A plan explains failures of the build and the run, and nothing about a review that stopped before it. */
function isBuilt({ rule }: Reason): boolean {
  return /^(?:build|run)\//.test(rule);
}

/** How the image was built, and why. */
function formatPlan({ plan }: Status): string[] {
  if (plan === undefined) return [];
  const kind = plan.framework === undefined ? plan.strategy : `${plan.strategy}, ${plan.framework}`;
  const doubt = plan.certainty === 'guessed' ? ' This is a guess.' : '';
  return formatParagraphs('  plan   ', `${kind}. ${plan.reason}${doubt}`);
}

/** What the page loads. Its faults are in the warning. */
function formatPage({ page }: Status): string[] {
  return page?.status === undefined
    ? []
    : [`  page   responds with ${page.status} and loads ${page.assets ?? 0} files of its own.`];
}

function formatFindings(findings: readonly Finding[], reason?: Reason): string[] {
  const otherFindings = findings.filter(
    ({ rule, file, line }) => rule !== reason?.rule || file !== reason.file || line !== reason.line,
  );
  return otherFindings.map(({ severity, rule, file, line, message, fix }) =>
    toHarmlessText(
      `  ${severity}  ${[rule, ...formatLocation(file, line)].join(' at ')}: ${message} ${fix}`
        .replaceAll(/\s+/g, ' ')
        .replace(/^ /, '  '),
    ),
  );
}

function formatLocation(file: string | null | undefined, line: number | null | undefined): string[] {
  if (file === undefined || file === null) return [];
  return [toHarmlessText(line === undefined || line === null ? file : `${file}:${line}`)];
}

function formatParagraphs(heading: string, text: string): string[] {
  return text
    .split(/[\r\n]+/)
    .map((line, index) => `${index === 0 ? heading : ' '.repeat(heading.length)}${toHarmlessText(line)}`);
}
