// Judges whether a new release counts as live by what its URL answers: a page or an API description, at two probes half a minute
// apart. Pure.
import type { HostedApp, HostedAppStatus } from '../../../crds/hosted-app.ts';
import type { Answer } from '../../../crds/status.ts';
import { omitUndefined } from '../../../lib/values.ts';
import { formatTimestamp } from '../../objects/kinds.ts';
import type { Rejection } from '../../reconcile/outcome.ts';
import type { ProbeResult } from '../../reconcile/snapshot.ts';
import { computeStartupMs } from '../deploy/components.ts';
import { suggestCrashFix } from '../deploy/crash-fixes.ts';
import { isMissing } from './probe.ts';

/** What is known of a release, and what a probe has just found. */
export interface AnswerInput {
  readonly known: Answer | undefined;
  readonly probe: ProbeResult | undefined;
  readonly release: Pick<Answer, 'template' | 'commit'>;
  /** When the release was seen to work before, such as by an earlier version of the operator. */
  readonly workedAt: string | undefined;
  /** Another release that works can serve. */
  readonly hasFallback: boolean;
  /** For messages and times. */
  readonly app: HostedApp;
  readonly port: number;
  readonly now: Date;
}

/** A release that works is probed again after this long, since a worker may die after its first response. */
export const secondProbeMs = 30_000;

/** Judges the newest probe. Once a second probe has confirmed that the release works, nothing rejects it any more. */
export function judgeAnswer(input: AnswerInput): Answer {
  const { probe, release, workedAt, now } = input;
  const fresh: Answer =
    workedAt === undefined ? { ...release } : { ...release, answeredAt: workedAt, confirmedAt: workedAt };
  const known = input.known?.template === release.template ? input.known : fresh;
  if (probe === undefined) return known;
  const failure = findFailure(probe);
  if (failure === undefined) return recordSuccess(known, probe, now);
  // A gateway that is away says nothing about the app.
  if (failure === 'unreachable' || known.confirmedAt !== undefined) return known;
  const failing = { ...known, failingSince: known.failingSince ?? formatTimestamp(now) };
  const failedMs = now.getTime() - Date.parse(failing.failingSince);
  if (failedMs < choosePatienceMs(failure, input, known)) return failing;
  const rejection = explainFailure(failure, probe, { port: input.port, seconds: Math.round(failedMs / 1000) });
  // The first explanation stays: the time, and details of an error page, would change the status at each probe.
  return { ...failing, rejection: known.rejection?.rule === rejection.rule ? known.rejection : rejection };
}

/** Whether visitors get something: the release has answered, and has not been rejected since. */
export function isAnswering(answer: Answer | undefined): boolean {
  return answer?.answeredAt !== undefined && answer.rejection === undefined;
}

/** Whether this template is known not to work. */
export function isRejected(answer: HostedAppStatus['answer'], template: string | undefined): boolean {
  return answer !== undefined && answer.template === template && answer.rejection !== undefined;
}

/** Milliseconds until the second probe is due; undefined if it was made. */
export function computeSecondProbeMs({ answeredAt, confirmedAt }: Answer, now: Date): number | undefined {
  if (answeredAt === undefined || confirmedAt !== undefined) return undefined;
  return Math.max(0, Date.parse(answeredAt) + secondProbeMs - now.getTime());
}

/** Why a status at / says that the app does not work for visitors. */
type Failure = 'errors' | 'refused' | 'missing' | 'busy' | 'silent' | 'unreachable';

/** What frameworks say to every visitor if the app's host name is not in their settings: Vite, webpack, Rails, Starlette, Django. */
const hostRefusal =
  /\bhost\b[^\n]{0,120} is not allowed\b|\bInvalid host header\b|\bBlocked hosts?: |\bInvalid HTTP_HOST header\b|^Bad Request \(400\)$/i;

function findFailure({ status, responds, isDoubtful, instead, text = '' }: ProbeResult): Failure | undefined {
  if (status === undefined) return responds ? undefined : isDoubtful === true ? 'silent' : 'unreachable';
  if ([502, 503, 504].includes(status)) return 'busy';
  if (status >= 500) return 'errors';
  if ((status === 400 || status === 403) && hostRefusal.test(text)) return 'refused';
  return isMissing(status) && instead === undefined ? 'missing' : undefined;
}

function recordSuccess({ template, commit, ...known }: Answer, { instead }: ProbeResult, now: Date): Answer {
  const answeredAt = known.answeredAt ?? formatTimestamp(now);
  const isConfirmed = now.getTime() - Date.parse(answeredAt) >= secondProbeMs;
  const confirmedAt = known.confirmedAt ?? (isConfirmed ? formatTimestamp(now) : undefined);
  return omitUndefined({ template, commit, answeredAt, confirmedAt, instead });
}

/**
 * How long a failure may last. The gateway says 503 of an app that loads a model too, which may take its startup time. If
 * another release can serve, visitors do not wait for an error to pass: the probe has repeated it already.
 */
function choosePatienceMs(failure: Failure, { hasFallback, app }: AnswerInput, { answeredAt }: Answer): number {
  const isCertain = failure === 'errors' || failure === 'refused';
  if (isCertain && (hasFallback || answeredAt !== undefined)) return 0;
  const isStarting = answeredAt === undefined && (failure === 'busy' || failure === 'silent');
  return isStarting ? Math.max(secondProbeMs, computeStartupMs(app)) : secondProbeMs;
}

function explainFailure(
  failure: Exclude<Failure, 'unreachable'>,
  probe: ProbeResult,
  { port, seconds }: { readonly port: number; readonly seconds: number },
): Rejection {
  const { status = 0, path, text = '' } = probe;
  const place = path === undefined ? 'at /' : `at ${path}, to which / redirects`;
  switch (failure) {
    case 'errors':
      return {
        rule: 'run/server-error',
        message: `The app responds with HTTP ${status} ${place}.${quotePage(text)}`,
        fix: suggestErrorFix(text),
      };
    case 'refused':
      return {
        rule: 'run/host-refused',
        message: `The app rejects requests for its own host name with HTTP ${status} ${place}.${quotePage(text)}`,
        fix: 'Allow the host in its settings: put ${{app.host}} into a variable of run.env in moorage.yaml and read it there (ALLOWED_HOSTS of Django, config.hosts of Rails, TrustedHostMiddleware of Starlette). A development server such as Vite is not for visitors: build the pages and serve them.',
      };
    case 'missing':
      return {
        rule: 'run/no-page',
        message: `The app responds with HTTP ${status} ${place}, and none of the usual paths of an API description (/docs, /openapi.json, …) responds.`,
        fix: 'Serve a page at /, or name the path of one that responds in moorage.yaml: run.healthPath, or agents.openapi for an API. If the server serves built files, check that the build makes them and that the server finds them in the image.',
      };
    case 'busy':
      return {
        rule: 'run/server-error',
        message: `The app accepts connections on port ${port}, but the response ${place} has been HTTP ${status} for ${seconds} s.${quotePage(text)}`,
        fix: `Check its log: a worker process that exits right after its start is the usual cause. ${slowStart}`,
      };
    case 'silent':
      return {
        rule: 'run/no-response',
        message: `The app accepts connections on port ${port}, but has not responded ${place} for ${seconds} s.`,
        fix: `Check its log: a worker process that exits or waits, such as for a database, while its main process keeps the port open is the usual cause. ${slowStart}`,
      };
  }
}

const slowStart =
  'If it only starts slowly, set run.healthPath in moorage.yaml to a path that responds when it is ready, and increase run.startupTime.';

function suggestErrorFix(text: string): string {
  return text === ''
    ? 'Check its log for the error of this request. Missing configuration, a missing database table and a file that an installer writes are the usual causes.'
    : suggestCrashFix(text);
}

const cause =
  /error|exception|fatal|failed|failure|undefined|missing|cannot|not found|not set|no such|denied|refused|unable|invalid/i;
/** What servers write if they hide the error. */
const generic =
  /^(?:HTTP )?(?:Error )?(?:500:?)?\s*[-:|(]?\s*(?:Internal )?Server Error[.)]?(?:\s*\(?500\)?)?$|^500$|^Oops|^An error occurred|^Something went wrong/i;
const longestQuote = 200;

/** Quotes the line of an error page that says why. The app wrote it, so it is marked as a quotation. */
function quotePage(text: string): string {
  const lines = text.split('\n').filter((line) => !generic.test(line));
  const found = lines.find((line) => cause.test(line) && line.length > 15) ?? '';
  const line = found.replace(/[.:\s]{1,20}$/, '');
  return line === ''
    ? ''
    : ` Its page says "${line.length > longestQuote ? `${line.slice(0, longestQuote)}…` : line}".`;
}
