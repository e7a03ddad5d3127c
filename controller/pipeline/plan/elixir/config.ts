// Adds to the settings of a Phoenix app what this platform requires: nobody knows its address while the image is built.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
import { shellWord, step } from '../dockerfile-text.ts';
import type { ElixirProject } from './project.ts';

const runtime = 'config/runtime.exs';
/** Only a release of Mix reads it. */
const ofReleases = 'config/releases.exs';

/** Lines that let pages open sockets from the address that visitors see, unless the author names it in PHX_HOST. */
export function configLines(tree: Tree, project: ElixirProject): string[] {
  const copied = !tree.has(runtime) && tree.has(ofReleases);
  const text = origins(project, !tree.has(runtime) && !copied);
  const commands = [
    ...(copied ? [`cp ${ofReleases} ${runtime}`] : []),
    ...(text === undefined ? [] : [`mkdir -p config && printf '%b' ${shellWord(text)} >> ${runtime}`]),
  ];
  return commands.length === 0
    ? []
    : step(runtime, 'adding the settings of this platform', `RUN ${commands.join(' && ')}`);
}

/** With line breaks as printf writes them. */
function origins({ apps }: ElixirProject, isNew: boolean): string | undefined {
  const lines = apps.flatMap(({ name, endpoints }) =>
    endpoints.map((module) => String.raw`  config :${name}, ${module}, check_origin: false\n`),
  );
  if (lines.length === 0) return undefined;
  const condition = String.raw`if config_env() == :prod and System.get_env("PHX_HOST") in [nil, ""] do\n`;
  return `${isNew ? String.raw`import Config\n` : String.raw`\n`}${condition}${lines.join('')}end${String.raw`\n`}`;
}

/** Says so to the author. */
export function originFindings({ apps }: ElixirProject): Finding[] {
  if (apps.every(({ endpoints }) => endpoints.length === 0)) return [];
  return [
    {
      rule: 'plan/socket-origin',
      severity: 'warning',
      file: 'mix.exs',
      message: 'Unless PHX_HOST is set, Phoenix accepts sockets from pages of every address (check_origin: false).',
      fix: 'Set PHX_HOST in run.env of moorage.yaml to the host name of the app once it is known.',
    },
  ];
}
