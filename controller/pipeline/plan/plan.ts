// Chooses how the image is made: the author's Dockerfile, else the language that the files speak.
import type { Finding } from '../../../crds/hosted-app.ts';
import { Rejected } from '../outcome.ts';
import { head, oneLine } from '../text.ts';
import type { Tree } from '../tree.ts';
import { authoredDockerfile } from './authored.ts';
import { appFolders } from './below.ts';
import { deno } from './deno/deno.ts';
import { go } from './go/go.ts';
import { java } from './java/java.ts';
import { node } from './node/node.ts';
import { php } from './php/php.ts';
import { python } from './python/python.ts';
import type { Language, PlanInput, Problem, Recipe } from './recipe.ts';
import { rust } from './rust/rust.ts';
import { staticSite } from './static/static.ts';

const languages: readonly Language[] = [python, go, deno, rust, java, php, node, staticSite];

const understood =
  'a Dockerfile; Python (requirements.txt, pyproject.toml, uv.lock, setup.py); Node (package.json); Go (go.mod); Deno (deno.json); Rust (Cargo.toml); Java (pom.xml, or Gradle with its wrapper); PHP (index.php, composer.json); a static site (index.html at the top or in public, dist, site, docs)';

/**
 * Plans a tree (that of source.path).
 * @throws Rejected, rule plan/unknown when no language fits, or what the language misses.
 */
export function makePlan(tree: Tree, input: PlanInput): Recipe {
  return bounded(choose(tree, input));
}

function choose(tree: Tree, input: PlanInput): Recipe {
  const { strategy, dockerfile } = input.build;
  if (authoredDockerfile(tree, input.build)) {
    const reason =
      strategy === 'dockerfile'
        ? `build.strategy asks for ${dockerfile}.`
        : `The repository has a ${dockerfile}, which is built as is.`;
    return {
      plan: { strategy: 'dockerfile', reason, ...(input.port === undefined ? {} : { port: input.port }) },
      findings: [],
    };
  }
  const asked = languages.filter((language) => strategy === 'auto' || strategy === language.name);
  const answers = asked.map((language) => language.plan(tree, input)).filter((answer) => answer !== undefined);
  const recipes = answers.filter((answer): answer is Recipe => 'plan' in answer);
  const best = recipes.toSorted((one, other) => rank(one) - rank(other))[0];
  if (best !== undefined) return mention(best, recipes);
  const problem = answers.find((answer): answer is Problem => 'problem' in answer)?.problem;
  throw new Rejected([
    problem === undefined ? unknown(tree, input) : { ...problem, fix: `${problem.fix}${hint(tree)}` },
  ]);
}

/** A Python web framework says most; a package.json beside it is often only for styles. */
function rank(recipe: Recipe): number {
  const { strategy, framework } = recipe.plan;
  if (strategy === 'python') return framework === undefined ? 2 : 0;
  return strategy === 'node' ? 1 : 3;
}

function mention(best: Recipe, recipes: readonly Recipe[]): Recipe {
  const other = recipes.find((each) => each !== best && each.plan.strategy !== 'static');
  if (other === undefined || other.plan.strategy === best.plan.strategy) return best;
  const reason = `${best.plan.reason} It could also be built as ${other.plan.strategy}: set build.strategy in moorage.yaml to choose that.`;
  return { ...best, plan: { ...best.plan, reason } };
}

function unknown(tree: Tree, input: PlanInput): Finding {
  const where = input.path === '.' ? 'the repository' : `folder ${input.path}`;
  const what = input.build.strategy === 'auto' ? 'Nothing' : `Nothing for build.strategy ${input.build.strategy}`;
  return {
    rule: 'plan/unknown',
    severity: 'error',
    message: `${what} that can be built was found at the top level of ${where}.`,
    fix: `Add one of: ${understood}.${hint(tree)}`,
  };
}

function hint(tree: Tree): string {
  const folders = appFolders(tree);
  return folders.length === 0
    ? ''
    : ` There is something to build in ${folders.slice(0, 5).join(', ')}${folders.length > 5 ? ', …' : ''}: put source.path with that folder in moorage.yaml.`;
}

function bounded(recipe: Recipe): Recipe {
  return { ...recipe, plan: { ...recipe.plan, reason: head(oneLine(recipe.plan.reason), 390) } };
}
