// Chooses how to build the image: with the author's Dockerfile, or else a plan for the language of the files.
import type { Finding } from '../../../crds/hosted-app.ts';
import { Rejected } from '../contract.ts';
import { keepHead, toOneLine } from '../text.ts';
import type { Tree } from '../tree.ts';
import { isAuthoredDockerfile } from './dockerfile/text.ts';
import { listAppFolders } from './folder.ts';
import { deno } from './deno/deno.ts';
import { dotnet } from './dotnet/dotnet.ts';
import { elixir } from './elixir/elixir.ts';
import { go } from './go/go.ts';
import { java } from './java/java.ts';
import { findMarkers, type FoundMarker } from './markers.ts';
import { node } from './node/node.ts';
import { php } from './php/php.ts';
import { python } from './python/python.ts';
import type { Language, PlanInput, Recipe } from './recipe.ts';
import { ruby } from './ruby/ruby.ts';
import { rust } from './rust/rust.ts';
import { staticSite } from './static/static.ts';

const languages: readonly Language[] = [python, go, deno, rust, java, php, ruby, dotnet, elixir, node, staticSite];

const understood =
  'a Dockerfile; Python (requirements.txt, pyproject.toml, uv.lock, setup.py); Node (package.json); Go (go.mod); Deno (deno.json); Rust (Cargo.toml); Java (pom.xml, or Gradle with its wrapper); PHP (index.php, composer.json); Ruby (Gemfile, config.ru); .NET (a solution or project); Elixir (mix.exs); a static site (index.html at the top or in public, dist, site, docs)';

/**
 * Plans a tree (that of source.path). @throws Rejected, rule plan/unknown if no language matches, or with what is
 * missing
 */
export function makePlan(tree: Tree, input: PlanInput): Recipe {
  return limitReason(choose(tree, input));
}

function choose(tree: Tree, input: PlanInput): Recipe {
  return isAuthoredDockerfile(tree, input.build) ? toAuthoredRecipe(input) : planLanguage(tree, input);
}

function toAuthoredRecipe({ build: { strategy, dockerfile }, port }: PlanInput): Recipe {
  const reason =
    strategy === 'dockerfile'
      ? `build.strategy asks for ${dockerfile}.`
      : `The repository has a ${dockerfile}, which is built as is.`;
  return { plan: { strategy: 'dockerfile', reason, ...(port === undefined ? {} : { port }) }, findings: [] };
}

function planLanguage(tree: Tree, input: PlanInput): Recipe {
  const isAuto = input.build.strategy === 'auto';
  const { recipes, problems } = collectAnswers(tree, input);
  const markers = isAuto ? findMarkers(tree) : [];
  // Pages next to a server that cannot be planned are only half of an app.
  const isHalf =
    isAuto &&
    (markers.some((each) => !isSiteBuiltFrom(each, recipes)) || problems.some(({ language }) => language !== 'static'));
  const whole = recipes.filter((recipe) => !isHalf || recipe.filesOnly !== true);
  const best = whole.toSorted((one, other) => rankRecipe(one) - rankRecipe(other))[0];
  if (best !== undefined) return mentionOther(best, recipes);
  throw new Rejected([
    rejectUnplanned(markers, recipes) ?? addHint(tree, problems[0]?.problem) ?? rejectUnknown(tree, input),
  ]);
}

/** Returns whether this language generates the files, so that they are the whole app. */
function isSiteBuiltFrom({ language }: FoundMarker, recipes: readonly Recipe[]): boolean {
  const strategy = language === '.NET' ? 'dotnet' : language.toLowerCase();
  return recipes.some(({ filesOnly, plan }) => filesOnly === true && plan.strategy === strategy);
}

interface Answers {
  readonly recipes: readonly Recipe[];
  readonly problems: readonly { readonly language: string; readonly problem: Finding }[];
}

/** Tries every language that the author's settings allow. */
function collectAnswers(tree: Tree, input: PlanInput): Answers {
  const { strategy } = input.build;
  const asked = languages.filter(({ name }) => strategy === 'auto' || name === strategy);
  const answers = asked.map((each) => ({ language: each.name, answer: each.plan(tree, input) }));
  return {
    recipes: answers.flatMap(({ answer }) => (answer !== undefined && 'plan' in answer ? [answer] : [])),
    problems: answers.flatMap(({ language, answer }) =>
      answer !== undefined && 'problem' in answer ? [{ language, problem: answer.problem }] : [],
    ),
  };
}

function addHint(tree: Tree, problem: Finding | undefined): Finding | undefined {
  return problem === undefined ? undefined : { ...problem, fix: `${problem.fix}${suggestFolders(tree)}` };
}

/**
 * A Python web framework is the strongest evidence; a package.json next to another language is often only for styles.
 */
function rankRecipe(recipe: Recipe): number {
  const { strategy, framework } = recipe.plan;
  if (strategy === 'static') return 5;
  if (recipe.filesOnly === true) return 4;
  if (strategy === 'python') return framework === undefined ? 3 : 0;
  return strategy === 'node' ? 2 : 1;
}

/** Rejects a language that Moorage recognizes but does not plan. */
function rejectUnplanned(markers: readonly FoundMarker[], recipes: readonly Recipe[]): Finding | undefined {
  const marker = markers.find((each) => !each.planned);
  if (marker === undefined) return undefined;
  const files = recipes.find((recipe) => recipe.filesOnly === true)?.plan.strategy;
  return {
    rule: 'plan/unknown',
    severity: 'error',
    file: marker.file,
    message: `${marker.file} makes this ${chooseArticle(marker.language)} ${marker.language} app, which Moorage cannot plan yet.`,
    fix: `Add a Dockerfile at the top level that builds it and starts it on 0.0.0.0 and $PORT.${files === undefined ? '' : ` If its files alone are to be served, set build.strategy: ${files} in moorage.yaml.`}`,
  };
}

function mentionOther(best: Recipe, recipes: readonly Recipe[]): Recipe {
  const other = recipes.find((each) => each !== best && each.plan.strategy !== 'static');
  if (other === undefined || other.plan.strategy === best.plan.strategy) return best;
  const reason = `${best.plan.reason} It could also be built as ${other.plan.strategy}: set build.strategy in moorage.yaml to choose that.`;
  return { ...best, plan: { ...best.plan, reason } };
}

function rejectUnknown(tree: Tree, input: PlanInput): Finding {
  const where = input.path === '.' ? 'the repository' : `folder ${input.path}`;
  const what = input.build.strategy === 'auto' ? 'Nothing' : `Nothing for build.strategy ${input.build.strategy}`;
  return {
    rule: 'plan/unknown',
    severity: 'error',
    message: `${what} that can be built was found at the top level of ${where}.`,
    fix: `Add one of: ${understood}.${suggestFolders(tree)}`,
  };
}

function suggestFolders(tree: Tree): string {
  const folders = listAppFolders(tree);
  return folders.length === 0
    ? ''
    : ` There is something to build in ${folders.slice(0, 5).join(', ')}${folders.length > 5 ? ', …' : ''}: put source.path with that folder in moorage.yaml.`;
}

function limitReason(recipe: Recipe): Recipe {
  return { ...recipe, plan: { ...recipe.plan, reason: keepHead(toOneLine(recipe.plan.reason), 390) } };
}

function chooseArticle(language: string): string {
  return language === 'R' || /^[AEIO]/.test(language) ? 'an' : 'a';
}
