// The answer of a guide with its evidence as it stands: what supports its claims, what does not any more, and what
// nobody has measured yet.
import type { Reading } from './benchmark.ts';
import { checkClaim, type ClaimCheck, type Verdict } from './claims.ts';
import type { Claim, SourceGuide } from './source.ts';

/** A claim with what the benchmark of each app says of it. */
export interface CheckedClaim {
  readonly kind: Claim['kind'];
  readonly says: string;
  readonly says_zh: string;
  readonly checks: readonly (ClaimCheck & { readonly app: string })[];
}

export interface Answer {
  readonly answer: string;
  readonly answer_zh: string;
  readonly claims: readonly CheckedClaim[];
}

type Readings = ReadonlyMap<string, Reading>;

/** `readings`: of every app in the evidence of the guide. */
export function answerOf(guide: Pick<SourceGuide, 'answer' | 'answer_zh' | 'claims'>, readings: Readings): Answer {
  const claims = guide.claims.map((claim) => checked(claim, readings));
  const sentences = [...claims.flatMap(sentencesOf), ...missing(readings)];
  return {
    answer: [guide.answer, ...sentences.map(({ en }) => en)].join(' '),
    answer_zh: [guide.answer_zh, ...sentences.map(({ zh }) => zh)].join(''),
    claims,
  };
}

function checked(claim: Claim, readings: Readings): CheckedClaim {
  const { kind, says, says_zh } = claim;
  const checks = [...readings].flatMap(([app, reading]) =>
    typeof reading === 'string' ? [] : [{ app, ...checkClaim(claim, reading) }],
  );
  return { kind, says, says_zh, checks };
}

interface Sentence {
  readonly en: string;
  readonly zh: string;
}

/** How each verdict is said; a claim that is supported stands by itself. */
const frames: Readonly<Record<Verdict, (claim: CheckedClaim) => Sentence>> = {
  supported: ({ says, says_zh }) => ({ en: says, zh: says_zh }),
  contradicted: ({ says, says_zh }) => ({
    en: `The measurements do not support "${says}"`,
    zh: `现有测量不支持“${says_zh}”`,
  }),
  undecided: ({ says, says_zh }) => ({
    en: `The measurements do not decide yet whether "${says}"`,
    zh: `现有测量还不能判断“${says_zh}”是否成立`,
  }),
};

function sentencesOf(claim: CheckedClaim): Sentence[] {
  return (['supported', 'contradicted', 'undecided'] as const).flatMap((verdict) => {
    const apps = claim.checks.filter((check) => check.verdict === verdict);
    if (apps.length === 0) return [];
    const { en, zh } = frames[verdict](claim);
    return [
      {
        en: `${en}: ${apps.map(({ app, en: figures }) => `${app}, ${figures}`).join('; ')}.`,
        zh: `${zh}：${apps.map(({ app, zh: figures }) => `${app}，${figures}`).join('；')}。`,
      },
    ];
  });
}

/** What the evidence does not say. */
function missing(readings: Readings): Sentence[] {
  const slugs = (kind: Reading): string[] =>
    [...readings].flatMap(([slug, reading]) => (reading === kind ? [slug] : []));
  const [none, unreadable] = [slugs('none'), slugs('unreadable')];
  return [
    ...(none.length === 0 ? [] : [notMeasured(none, readings.size)]),
    ...(unreadable.length === 0
      ? []
      : [
          {
            en: `The measurements of ${unreadable.join(', ')} cannot be read right now.`,
            zh: `目前无法读取 ${unreadable.join('、')} 的测量结果。`,
          },
        ]),
  ];
}

function notMeasured(slugs: readonly string[], all: number): Sentence {
  if (slugs.length < all)
    return { en: `Not measured here yet: ${slugs.join(', ')}.`, zh: `本站尚未测量：${slugs.join('、')}。` };
  return {
    en: `Nothing has been measured here yet for ${slugs.join(', ')}, so this answer names no winner.`,
    zh: `本站尚未对 ${slugs.join('、')} 做过任何测量，因此这里不评出优胜者。`,
  };
}
