// Adds to the settings of a Phoenix app from which pages it takes sockets: its own, whose host name is not known while the
// image is built. Without it, Phoenix compares with the host name that the author wrote, and refuses all of them.
import type { Tree } from '../../tree.ts';
import { shellWord, step } from '../dockerfile-text.ts';
import type { ElixirProject } from './project.ts';

const runtime = 'config/runtime.exs';
/** Only a release of Mix reads it. */
const ofReleases = 'config/releases.exs';
const settings = ['config/config.exs', 'config/prod.exs', runtime, ofReleases];

/** Nothing where the author says it himself. */
export function configLines(tree: Tree, project: ElixirProject): string[] {
  const copied = !tree.has(runtime) && tree.has(ofReleases);
  const text = isSaid(tree) ? undefined : origins(project, !tree.has(runtime) && !copied);
  const commands = [
    ...(copied ? [`cp ${ofReleases} ${runtime}`] : []),
    ...(text === undefined ? [] : [`mkdir -p config && printf '%b' ${shellWord(text)} >> ${runtime}`]),
  ];
  return commands.length === 0
    ? []
    : step(runtime, 'adding the settings of this platform', `RUN ${commands.join(' && ')}`);
}

function isSaid(tree: Tree): boolean {
  return settings.some((file) => /^[^#\n]{0,200}\bcheck_origin:/m.test(tree.text(file, 64 * 1024) ?? ''));
}

/** With line breaks as printf writes them. */
function origins({ apps }: ElixirProject, isNew: boolean): string | undefined {
  const lines = apps.flatMap(({ name, endpoints }) =>
    endpoints.map(
      (module) => String.raw`  config :${name}, ${module}, check_origin: ["//" <> System.get_env("PHX_HOST")]\n`,
    ),
  );
  if (lines.length === 0) return undefined;
  const condition = String.raw`if config_env() == :prod and System.get_env("PHX_HOST", "") != "" do\n`;
  return `${isNew ? String.raw`import Config\n` : String.raw`\n`}${condition}${lines.join('')}end${String.raw`\n`}`;
}
