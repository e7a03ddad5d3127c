// Finds how a Ruby app starts: Procfile, Rails, Hanami, config.ru, or a file that serves by itself.
import type { Tree } from '../../tree.ts';
import { quoteShellWord } from '../recipe.ts';
import { findDeclaredStart } from '../platforms/start.ts';
import { findPortInFile } from '../port-literal.ts';
import type { Bundle } from './bundle.ts';

export interface RubyStart {
  /** Shell command, with $PORT not yet expanded. */
  readonly command: string;
  readonly framework?: string;
  readonly because: string;
  readonly isRails: boolean;
  /** A release command from a Procfile runs before it. */
  readonly isReleased: boolean;
  readonly port?: number;
  /** Gems that it needs and the Gemfile lacks. */
  readonly adds: readonly string[];
}

type StartCommand = Pick<RubyStart, 'command' | 'because' | 'adds'> & Partial<Pick<RubyStart, 'port'>>;

const servers = ['puma', 'falcon', 'thin', 'unicorn', 'webrick', 'iodine', 'agoo', 'passenger', 'pitchfork'];
const frameworks: readonly (readonly [gem: string, name: string])[] = [
  ['hanami', 'Hanami'],
  ['padrino', 'Padrino'],
  ['sinatra', 'Sinatra'],
  ['roda', 'Roda'],
  ['grape', 'Grape'],
  ['cuba', 'Cuba'],
];
const mains = ['app.rb', 'main.rb', 'server.rb', 'web.rb', 'application.rb', 'index.rb', 'run.rb'];
const serves =
  /\brequire\s?\(?\s?["'](?:sinatra|webrick|rackup|rack\/handler|socket|puma|agoo|async\/http|falcon|iodine|thin)\b|\bTCPServer\.|\bRack(?:up)?::Handler\b|\bSinatra::Base\b/;
/** Procfile commands that start Ruby. */
const ofRuby =
  /\b(?:bundle|ruby|rails|rake|rackup|puma|unicorn|thin|thrust|falcon|passenger|hanami|iodine|foreman)\b|(?:^|\s)\.?\/?(?:bin|script)\//;

export function findStart(tree: Tree, bundle: Bundle): RubyStart | undefined {
  const isRails = isRailsApp(tree, bundle);
  const declaredStart = findDeclaredStart(tree);
  const rubyStart = declaredStart !== undefined && ofRuby.test(declaredStart.command) ? declaredStart : undefined;
  const found = rubyStart === undefined ? findStartByFiles(tree, bundle, isRails) : { ...rubyStart, adds: [] };
  if (found === undefined) return undefined;
  const framework = isRails ? 'Rails' : frameworks.find(([gem]) => bundle.has(gem))?.[1];
  return {
    command: found.command,
    because: found.because,
    adds: found.adds,
    isRails,
    isReleased: rubyStart?.command.startsWith('( ') === true,
    ...(framework === undefined ? {} : { framework }),
    ...(found.port === undefined ? {} : { port: found.port }),
  };
}

function isRailsApp(tree: Tree, bundle: Bundle): boolean {
  return (
    /Rails::Application/.test(tree.readFile('config/application.rb') ?? '') &&
    (bundle.has('rails', 'railties') || tree.has('bin/rails'))
  );
}

function findStartByFiles(tree: Tree, bundle: Bundle, isRails: boolean): StartCommand | undefined {
  if (isRails && tree.has('bin/rails')) return createRailsStart(bundle);
  if (tree.has('config.ru')) return createRackStart(bundle);
  return findScriptStart(tree, bundle);
}

function createRailsStart(bundle: Bundle): StartCommand {
  return {
    command: 'exec bundle exec rails server -b 0.0.0.0 -p $PORT',
    because: 'config/application.rb makes it a Rails app.',
    adds: bundle.has(...servers) ? [] : ['puma'],
  };
}

function createRackStart(bundle: Bundle): StartCommand {
  const because = 'config.ru is what a Rack server runs.';
  const server = servers.find((each) => bundle.has(each)) ?? 'puma';
  const adds = bundle.has(server) ? [] : [server];
  if (server === 'puma') return { command: 'exec bundle exec puma -b tcp://0.0.0.0:$PORT config.ru', because, adds };
  if (server === 'falcon')
    return { command: 'exec bundle exec falcon serve --bind http://0.0.0.0:$PORT', because, adds };
  if (server === 'unicorn') return { command: 'exec bundle exec unicorn -l 0.0.0.0:$PORT config.ru', because, adds };
  return {
    command: 'exec bundle exec rackup config.ru -o 0.0.0.0 -p $PORT',
    because,
    adds: [...adds, ...listRackupGems(bundle)],
  };
}

/** Rack 3 moved its command rackup to a separate gem. */
function listRackupGems(bundle: Bundle): string[] {
  const rack = bundle.findVersion('rack') ?? '';
  return bundle.has('rackup') || /^[12]\./.test(rack) ? [] : ['rackup'];
}

/** Finds the file at the root that serves by itself: one with a usual name, or the only one. */
function findServingFile(tree: Tree): string | undefined {
  const able = tree.entries
    .filter((each) => each.kind === 'file' && /^[\w-]{1,80}\.rb$/.test(each.path))
    .map(({ path }) => path)
    .filter((path) => serves.test(tree.readFile(path) ?? ''));
  return mains.find((each) => able.includes(each)) ?? (able.length === 1 ? able[0] : undefined);
}

function findScriptStart(tree: Tree, bundle: Bundle): StartCommand | undefined {
  const file = findServingFile(tree);
  if (file === undefined) return undefined;
  const text = tree.readFile(file) ?? '';
  // A file that requires the classic Sinatra parses these arguments.
  const isClassic = /\brequire\s?\(?\s?["']sinatra["']/.test(text);
  const port = isClassic ? undefined : findPortInFile(text.replace(/:Port\s?=>/g, 'port:'));
  const isBare = bundle.has('sinatra') && !bundle.has(...servers);
  return {
    command: `exec bundle exec ruby ${quoteShellWord(file)}${isClassic ? ' -o 0.0.0.0 -p $PORT' : ''}`,
    because: `${file} is what serves.`,
    adds: isBare ? ['puma', ...listRackupGems(bundle)] : [],
    ...(port === undefined ? {} : { port }),
  };
}
