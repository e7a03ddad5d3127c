// Formats a container's output: log lines, and a termination message without secrets that fits Kubernetes' size limit.
import { z } from 'zod';
import { finding, type Finding, type Plan } from '../../crds/hosted-app.ts';
import { createSecretMask, isSecretName, type SecretMask } from '../../lib/secret-mask.ts';
import {
  type PipelineConfig,
  buildResult,
  cloneResult,
  fault,
  rejection,
  reviewResult,
  terminationMessageLimit,
  unprepared,
} from './contract.ts';
import { packSettings } from './settings-report.ts';
import { clean, keepHead, keepTail, toOneLine } from './text.ts';

export const stageMessage = z.union([rejection, unprepared, reviewResult, buildResult, cloneResult, fault]);
export type StageMessage = z.infer<typeof stageMessage>;

const logBytes = 2_500;
const textBudgets = [2_000, 600, 300, 160, 80, 40] as const;

/**
 * Formats JSON of at most 4096 bytes. If it does not fit, its settings are packed, and it is shortened in this order: the
 * start of the log, the last warnings, the last errors (a final finding counts the omitted ones), the texts of the rest, the
 * other reading of a plan, what it says of the variables of an MCP server, its paths, its reason.
 */
export function formatTermination(message: StageMessage): string {
  const tidied = tidy(message);
  const plain = JSON.stringify(tidied);
  if (Buffer.byteLength(plain) <= terminationMessageLimit) return plain;
  const packed = pack(tidied);
  for (const candidate of listShortenings(tidied)) {
    const text = JSON.stringify({ ...candidate, ...packed });
    if (Buffer.byteLength(text) <= terminationMessageLimit) return text;
  }
  return JSON.stringify({ fault: 'the result of this stage is too large to report; see its log' });
}

function tidy(message: StageMessage): StageMessage {
  const copy = { ...message };
  if ('fault' in copy) copy.fault = keepHead(toOneLine(copy.fault), textBudgets[0]);
  if ('findings' in copy) copy.findings = sortErrorsFirst(copy.findings.map((each) => shorten(each, textBudgets[0])));
  if ('log' in copy && copy.log !== undefined) copy.log = keepTail(clean(copy.log).trimEnd(), logBytes);
  return copy;
}

/** Replaces the settings of a review by their packed form, if that is shorter. */
function pack(message: StageMessage): { readonly settings?: string } {
  if (!('plan' in message) || message.settings === undefined) return {};
  const packed = packSettings(message.settings);
  return packed.length < JSON.stringify(message.settings).length ? { settings: packed } : {};
}

function* listShortenings(message: StageMessage): Generator<StageMessage> {
  yield message;
  if ('fault' in message) {
    for (const budget of textBudgets) yield { ...message, fault: keepHead(message.fault, budget) };
    return;
  }
  if (!('findings' in message)) return;
  for (const logLimit of [1_500, 800]) yield trimLog(message, logLimit);
  for (let count = message.findings.length - 1; count >= 1; count -= 1)
    yield trimLog({ ...message, findings: takeFirst(message.findings, count) }, 800);
  for (const budget of textBudgets) {
    yield trimLog(
      { ...message, findings: takeFirst(message.findings, 1).map((each) => shorten(each, budget)) },
      budget === 40 ? 0 : budget / 2,
    );
  }
  if ('plan' in message) {
    const findings = takeFirst(message.findings, 1).map((each) => shorten(each, 40));
    const { otherwise: _, ...plan } = message.plan;
    const plans = [plan, ...shortenServer(plan)];
    for (const each of plans) yield { ...message, plan: each, findings };
    const { paths: __, ...brief } = plans.at(-1) ?? plan;
    for (const budget of [390, 160, 80])
      yield { ...message, plan: { ...brief, reason: keepHead(brief.reason, budget) }, findings };
  }
}

/** Plans of an MCP server without the descriptions of its variables, then without the variables, then with short texts. */
function shortenServer(plan: Plan): Plan[] {
  const { mcp } = plan;
  if (mcp === undefined) return [];
  const { environment = [], ...start } = mcp;
  const names = environment.map(({ name, secret, required }) => ({ name, secret, required }));
  return [{ ...start, environment: names }, start, shortenStart(start)].map((each) => ({ ...plan, mcp: each }));
}

function shortenStart(start: NonNullable<Plan['mcp']>): NonNullable<Plan['mcp']> {
  return {
    ...start,
    file: keepHead(start.file, 24),
    command: keepHead(start.command, 24),
    path: keepHead(start.path, 24),
  };
}

function trimLog<Message extends object>(message: Message, bytes: number): Message {
  if (!('log' in message) || typeof message.log !== 'string') return message;
  return { ...message, log: keepTail(message.log, bytes) };
}

function sortErrorsFirst(findings: readonly Finding[]): Finding[] {
  return [
    ...findings.filter((each) => each.severity === 'error'),
    ...findings.filter((each) => each.severity === 'warning'),
  ];
}

function takeFirst(findings: readonly Finding[], count: number): Finding[] {
  const omitted = findings.length - count;
  if (omitted <= 0) return [...findings];
  const more: Finding = {
    rule: 'findings/more',
    severity: 'warning',
    message: `${omitted} more findings are not shown here.`,
    fix: 'Fix the findings shown; the log of this stage contains all of them.',
  };
  return [...findings.slice(0, count), more];
}

/** Shortens a finding to the contract's limits, with texts of at most `budget` bytes. */
function shorten(each: Finding, budget: number): Finding {
  const short: Finding = {
    rule: keepHead(toOneLine(each.rule), 60),
    severity: each.severity,
    message: keepHead(clean(each.message).trim(), Math.min(budget, 2_000)),
    fix: keepHead(clean(each.fix).trim(), Math.min(budget, 600)),
  };
  if (each.file !== undefined) short.file = keepHead(toOneLine(each.file), Math.min(budget, 300));
  if (each.line !== undefined) short.line = each.line;
  return finding.parse(short);
}

/** Masks the tokens for registry and git server, the deploy key, and build arguments of all components whose names look like secrets. */
export function createPipelineMask({
  input,
  pushToken,
  gitToken,
  deployKey,
}: Pick<PipelineConfig, 'input' | 'pushToken' | 'gitToken' | 'deployKey'>): SecretMask {
  const builds = [input.build, ...(input.components ?? []).map((component) => component.build)];
  const secretVariables = builds.flatMap(({ env, args }) => [...env, ...args]).filter(({ name }) => isSecretName(name));
  return createSecretMask({ values: [pushToken, gitToken, deployKey, ...secretVariables.map(({ value }) => value)] });
}

/** Masks the texts of a message. Identifiers, digests and addresses stay unchanged. */
export function maskMessage(message: StageMessage, mask: SecretMask): StageMessage {
  const copy = { ...message };
  if ('fault' in copy) copy.fault = mask(copy.fault);
  if ('log' in copy && copy.log !== undefined) copy.log = mask(copy.log);
  if ('findings' in copy)
    copy.findings = copy.findings.map((each) => ({ ...each, message: mask(each.message), fix: mask(each.fix) }));
  return copy;
}

export function formatFinding(finding: Finding): string {
  const where = [finding.file, finding.line].filter((part) => part !== undefined).join(':');
  return `${finding.severity}: ${finding.rule}${where === '' ? '' : ` at ${where}`}: ${finding.message} ${finding.fix}`;
}
