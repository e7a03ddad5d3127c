// Defines previews: what an author asks for in moorage.yaml, which references of the repository get one, and what a HostedApp
// that is a preview of another one may have.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { previewMark, toDnsLabel } from './names.ts';
import { addRules, createPatternRule, makeImmutable, parseQuantityValue, toCelString, type Rule } from './values.ts';

/** Previews that an author can ask for, and that the operator of the installation can set. */
export const maximumPreviews = 5;

const branchPattern = addRules(
  z.string().max(100),
  createPatternRule(
    '^[A-Za-z0-9_*][A-Za-z0-9._/*-]*$',
    'a pattern is the name of a branch, in which * stands for any characters, such as feature/*',
  ),
);

export const previews = z.strictObject({
  pullRequests: z
    .boolean()
    .default(false)
    .describe('Whether each open pull or merge request gets a preview, also those of strangers.'),
  branches: z
    .array(branchPattern)
    .max(10)
    .default([])
    .describe('Branches that get a preview. `*` stands for any characters, such as feature/*.'),
  limit: z
    .int()
    .min(1)
    .max(maximumPreviews)
    .default(3)
    .describe(
      `Maximum number of previews at a time, from 1 to ${maximumPreviews}. Branches come first, then the newest pull requests.`,
    ),
});
export type Previews = z.output<typeof previews>;

/** Whether an app asks for any previews. */
export function shouldHavePreviews({ pullRequests, branches }: Pick<Previews, 'pullRequests' | 'branches'>): boolean {
  return pullRequests || branches.length > 0;
}

export const previewOf = makeImmutable(
  z.strictObject({
    app: z.string().min(1).max(40).describe('Name of the HostedApp.'),
    reference: z.string().min(1).max(250).describe('Git reference that it shows, such as refs/pull/12/head.'),
  }),
  'previewOf is immutable; delete the preview, and the operator creates it again',
);
export type PreviewOf = z.output<typeof previewOf>;

interface Owned {
  readonly metadata: {
    readonly ownerReferences?:
      readonly { readonly uid: string; readonly controller?: boolean | undefined }[] | undefined;
  };
  readonly spec: { readonly previewOf?: { readonly app: string } | undefined };
}

/** Whether a HostedApp is a preview of this app, and not of an earlier one with its name. */
export function isOwnedBy(
  { metadata: { ownerReferences = [] }, spec }: Owned,
  { metadata: { name, uid } }: { readonly metadata: { readonly name: string; readonly uid: string } },
): boolean {
  const isOwned = ownerReferences.some((owner) => owner.controller === true && owner.uid === uid);
  return isOwned && spec.previewOf?.app === name;
}

/** Fields that {@link previewRule} checks. */
interface PreviewFields {
  readonly previewOf?: PreviewOf | undefined;
  readonly control?: object | undefined;
  readonly deletionPolicy?: string | undefined;
  readonly run: { readonly secrets: readonly unknown[]; readonly replicas: number };
  readonly components: readonly unknown[];
  readonly tasks: readonly unknown[];
  readonly models: { readonly enabled: boolean; readonly dailyBudgetUsd: string };
  readonly agents: { readonly enabled: boolean };
  readonly author: { readonly share: string };
  readonly review: { readonly waivers: readonly unknown[] };
  readonly source: { readonly revision?: string | undefined };
}

const commitPattern = '^[0-9a-f]{40}([0-9a-f]{24})?$';
const commitExpression = new RegExp(commitPattern);

/**
 * What the API server itself refuses in a preview: its code may be a stranger's. It has no secrets, no models, no share, no
 * settings of the author, no waiver, and shows one commit.
 */
export const previewRule: Rule<PreviewFields> = {
  cel: [
    '!has(self.previewOf) || (!has(self.control)',
    '(!has(self.run.secrets) || self.run.secrets.size() == 0)',
    '(!has(self.components) || self.components.size() == 0) && (!has(self.tasks) || self.tasks.size() == 0)',
    'self.run.replicas <= 1',
    '!self.models.enabled && self.models.dailyBudgetUsd == "0"',
    'has(self.agents) && has(self.agents.enabled) && !self.agents.enabled',
    'self.author.share == "0"',
    'self.review.waivers.size() == 0',
    'self.deletionPolicy == "Delete"',
    `has(self.source.revision) && self.source.revision.matches(${toCelString(commitPattern)}))`,
  ].join(' && '),
  isValid: (spec) => spec.previewOf === undefined || isHarmless(spec),
  message:
    'a preview has no secrets, components, tasks, models, agents, share, waivers and control, at most one replica, and a commit as its revision; leave them to the operator',
};

function isHarmless(spec: PreviewFields): boolean {
  const { control, run, components, tasks, models, agents, author, review, deletionPolicy, source } = spec;
  const lists = [run.secrets, components, tasks, review.waivers];
  const hasNothing = control === undefined && lists.every(({ length }) => length === 0);
  const earnsNothing = author.share === '0' && !agents.enabled && !models.enabled && models.dailyBudgetUsd === '0';
  return (
    hasNothing &&
    earnsNothing &&
    run.replicas <= 1 &&
    deletionPolicy === 'Delete' &&
    commitExpression.test(source.revision ?? '')
  );
}

/** Maximum size of each disk of a preview. */
const previewDisk = '1Gi';

export function limitPreviewDisk(size: string): string {
  return (parseQuantityValue(size) ?? Infinity) <= (parseQuantityValue(previewDisk) ?? 0) ? size : previewDisk;
}

// References: which of them get a preview, and what it is called.

/** A reference that may get a preview. */
export interface PreviewReference {
  /** Full name, such as refs/heads/feature/login or refs/pull/12/head. */
  readonly name: string;
  readonly commit: string;
}

/** The pull or merge request that a reference belongs to. */
export interface PullReference {
  readonly kind: 'pr' | 'mr';
  readonly number: number;
}

/** Parses the reference of a pull request (GitHub, Gitea, Forgejo) or merge request (GitLab); undefined for any other. */
export function parsePullReference(reference: string): PullReference | undefined {
  const [, folder, digits = ''] = /^refs\/(pull|merge-requests)\/([1-9][0-9]{0,8})\/head$/.exec(reference) ?? [];
  if (folder === undefined) return undefined;
  return { kind: folder === 'pull' ? 'pr' : 'mr', number: Number(digits) };
}

/** Name of the reference that GitHub has for each open pull request and removes when it is closed. */
export function formatMergeReference(reference: string): string {
  return reference.replace(/\/head$/, '/merge');
}

const branchPrefix = 'refs/heads/';

/**
 * The references that get a preview, the most important first: branches by name, whose patterns the author chose, then the
 * newest pull requests. At most `limit`, so that strangers cannot have more by opening more.
 *
 * @param tracked reference that the app itself is built from
 */
export function choosePreviews(
  references: readonly PreviewReference[],
  { pullRequests, branches, limit }: Previews,
  tracked: string | undefined,
): PreviewReference[] {
  const chosenBranches = references
    .filter(({ name }) => name !== tracked && name.startsWith(branchPrefix) && isChosenBranch(name, branches))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const pulls = pullRequests
    ? references
        .flatMap((reference) => {
          const pull = parsePullReference(reference.name);
          return pull === undefined ? [] : [{ reference, pull }];
        })
        .toSorted((one, other) => other.pull.number - one.pull.number)
        .map(({ reference }) => reference)
    : [];
  return [...chosenBranches, ...pulls].slice(0, limit);
}

/** Whether one of the patterns is about this branch. */
export function isChosenBranch(reference: string, patterns: readonly string[]): boolean {
  const branch = reference.slice(branchPrefix.length);
  return reference.startsWith(branchPrefix) && patterns.some((pattern) => matchPattern(branch, pattern));
}

/** Matches in time that grows with the product of both lengths: a regular expression with many * could take much longer. */
function matchPattern(text: string, pattern: string): boolean {
  const parts = pattern.split('*');
  const [first = '', last = ''] = [parts[0], parts.at(-1)];
  if (parts.length === 1) return text === pattern;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - at >= last.length && text.endsWith(last);
}

const longestName = 40;

/**
 * Name of the preview of a reference, such as hello--pr-12 or hello--br-login. Names that had to be changed or shortened end
 * with a hash, so that two references never have the same one.
 */
export function formatPreviewName(app: string, reference: string): string {
  const pull = parsePullReference(reference);
  const branch = reference.replace(/^refs\/heads\//, '');
  const label = pull === undefined ? formatBranchLabel(branch) : `${pull.kind}-${pull.number}`;
  const room = longestName - previewMark.length - label.length;
  const head = app.length <= room ? app : `${trimHyphens(app.slice(0, room - 7))}-${hashText(app, 6)}`;
  return `${head}${previewMark}${label}`;
}

function formatBranchLabel(branch: string): string {
  const label = toDnsLabel(branch);
  const isSame = label === branch && label.length <= 15;
  return `br-${isSame ? label : `${trimHyphens(label.slice(0, 8))}-${hashText(branch, 6)}`.replace(/^-/, '')}`;
}

function trimHyphens(text: string): string {
  return text.replace(/-+$/, '');
}

function hashText(text: string, length: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, length);
}

/** What a reference is called by people: #12, !12, or the name of the branch. */
export function formatReference(reference: string): string {
  const pull = parsePullReference(reference);
  if (pull === undefined) return reference.replace(/^refs\/heads\//, '');
  return `${pull.kind === 'pr' ? '#' : '!'}${pull.number}`;
}
