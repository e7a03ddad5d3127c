// Parses a Dockerfile far enough to see whether it builds an app, and decides whether to use the author's own.
import type { Tree } from '../../tree.ts';
import type { PlanInput } from '../recipe.ts';

export interface Stage {
  /** The argument of FROM: an image, or an earlier stage. */
  readonly from: string;
  readonly name: string | undefined;
  /** Whether it has CMD or ENTRYPOINT. */
  readonly starts: boolean;
  /** Paths that it copies from the build context, as written. */
  readonly copies: readonly string[];
}

const maximumInstructions = 2_000;

/** Lists the stages in order; none if the text is not a Dockerfile. */
export function readStages(text: string): Stage[] {
  const stages: Draft[] = [];
  for (const [word, rest] of parseInstructions(text)) {
    if (word === 'FROM') stages.push(createDraft(rest));
    else extend(stages.at(-1), word, rest);
  }
  return stages;
}

interface Draft {
  from: string;
  name: string | undefined;
  starts: boolean;
  copies: string[];
}

function createDraft(rest: string): Draft {
  const [from = '', as, name] = splitWords(rest);
  return { from, name: as?.toUpperCase() === 'AS' ? name?.toLowerCase() : undefined, starts: false, copies: [] };
}

function extend(stage: Draft | undefined, word: string, rest: string): void {
  if (stage === undefined) return;
  if (word === 'CMD' || word === 'ENTRYPOINT') stage.starts = true;
  else if (word === 'COPY' || word === 'ADD') stage.copies.push(...listCopiedSources(rest));
}

/** Returns whether the last stage, or a stage that it is based on, starts a program. */
export function hasStartCommand(stages: readonly Stage[]): boolean {
  let stage = stages.at(-1);
  for (let stagesLeft = stages.length; stage !== undefined && stagesLeft > 0; stagesLeft -= 1) {
    if (stage.starts) return true;
    const from = stage.from.toLowerCase();
    stage = stages.find((each) => each.name === from);
  }
  return false;
}

/** Splits text into instructions: joins continued lines, and skips comments and here-document bodies. */
function parseInstructions(text: string): (readonly [string, string])[] {
  const joined = text
    .replace(/^\ufeff/, '')
    .replace(/\r/g, '')
    .replace(/^[ \t]*#.*\n?/gm, '')
    .replace(/[\\`][ \t]*\n/g, ' ');
  return joined
    .split('\n', maximumInstructions)
    .map((line) => /^\s*([A-Za-z]+)\s+(.*)$/.exec(line.slice(0, 20_000)))
    .flatMap((match) => (match === null ? [] : [[(match[1] ?? '').toUpperCase(), match[2] ?? ''] as const]));
}

function splitWords(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '' && !word.startsWith('--'));
}

/** Lists the sources of COPY and ADD that come from the build context. */
function listCopiedSources(rest: string): string[] {
  if (/(?:^|\s)--from=/.test(rest) || rest.includes('<<')) return [];
  const list = /\[(.*)\]/.exec(rest)?.[1];
  const paths =
    list === undefined ? splitWords(rest) : [...list.matchAll(/"([^"]{0,300})"/g)].map((match) => match[1] ?? '');
  return paths.slice(0, -1).filter((each) => !/^(?:https?|git):|\$/.test(each));
}

/**
 * Returns true if the author requests it, or provides a Dockerfile and requests nothing else. The tree is that of
 * source.path.
 */
export function isAuthoredDockerfile(tree: Tree, build: PlanInput['build']): boolean {
  if (build.strategy === 'dockerfile') return true;
  return (
    build.strategy === 'auto' && (tree.getEntry(build.dockerfile) !== undefined || build.dockerfile !== 'Dockerfile')
  );
}
