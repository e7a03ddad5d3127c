// Plans static sites that a gem builds: Jekyll, Middleman, nanoc. Their files are served without Ruby.
import { readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import {
  renderArguments,
  defaultPort,
  renderDockerfile,
  type PlanInput,
  type Recipe,
  quoteShellWord,
  renderStep,
} from '../recipe.ts';
import { parseYaml } from '../platforms/declaration.ts';
import { serveFiles } from '../static/server.ts';
import { type Bundle, bundleEnvironment, installGems } from './bundle.ts';
import { renderSystemPackages } from './system-packages.ts';
import type { RubyChoice } from './version.ts';

export interface RubySite {
  readonly framework: string;
  readonly file: string;
  readonly command: string;
  /** Output folder of the command. */
  readonly output: string;
  /** No Gemfile lists the generator. */
  readonly isBare: boolean;
}

export function findSite(tree: Tree, bundle: Bundle): RubySite | undefined {
  const jekyll = detectJekyllSite(tree, bundle);
  if (jekyll !== undefined) return jekyll;
  if (bundle.has('middleman') && tree.has('config.rb'))
    return { framework: 'Middleman', file: 'config.rb', command: 'middleman build', output: 'build', isBare: false };
  if (bundle.has('nanoc') && tree.has('nanoc.yaml'))
    return { framework: 'nanoc', file: 'nanoc.yaml', command: 'nanoc compile', output: 'output', isBare: false };
  return undefined;
}

/** Accepts a site without a Gemfile too, as GitHub Pages does. */
function detectJekyllSite(tree: Tree, bundle: Bundle): RubySite | undefined {
  const file = ['_config.yml', '_config.yaml'].find((name) => tree.has(name));
  const isBare = !tree.has('Gemfile');
  const isJekyll = isBare
    ? tree.entries.some((each) => /^_(?:layouts|posts|includes)\/./.test(each.path))
    : bundle.has('jekyll', 'github-pages');
  if (file === undefined || !isJekyll) return undefined;
  const destination =
    readText(parseYaml(tree.readFile(file)), 'destination')?.replace(/^(?:\.?\/)+|\/+$/g, '') ?? '_site';
  const output =
    /^[\w.-]{1,60}(?:\/[\w.-]{1,60}){0,3}$/.test(destination) && !destination.includes('..') ? destination : '_site';
  // The site is served from the root of its own address, even if it is served from a subpath elsewhere.
  return {
    framework: 'Jekyll',
    file,
    command: `jekyll build --destination ${quoteShellWord(output)} --baseurl ""`,
    output,
    isBare,
  };
}

export function createSiteRecipe(
  tree: Tree,
  input: PlanInput,
  bundle: Bundle,
  site: RubySite,
  { image, because }: RubyChoice,
): Recipe {
  const port = input.port ?? defaultPort;
  const reason = [
    `${site.file} makes this a site of ${site.framework}, which is built, and its folder ${site.output} served.`,
    site.isBare ? 'It has no Gemfile, so it is built with the gems of GitHub Pages.' : '',
    because ?? '',
  ]
    .join(' ')
    .trim();
  return {
    plan: { strategy: 'ruby', framework: site.framework, reason, port },
    dockerfile: renderDockerfile(reason, [
      `FROM ${image.build} AS build`,
      `ENV ${bundleEnvironment} JEKYLL_ENV=production NO_CONTRACTS=true`,
      ...renderSystemPackages(tree, bundle, 'build'),
      'WORKDIR /app',
      ...renderArguments(input),
      'COPY . .',
      ...(site.isBare
        ? [
            String.raw`RUN printf 'source "https://rubygems.org"\ngem "github-pages", group: :jekyll_plugins\n' > Gemfile`,
          ]
        : []),
      ...installGems(tree, bundle, []),
      ...renderStep(site.file, 'building the pages', `RUN bundle exec ${site.command}`),
      '',
      ...serveFiles({ port, from: `/app/${site.output}`, stage: 'build', fallback: false, notFoundPage: true }),
    ]),
    ignore: ['.git', '**/node_modules', 'vendor/bundle', site.output, '**/.DS_Store'],
    filesOnly: true,
    findings: [],
  };
}
