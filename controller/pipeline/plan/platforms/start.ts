// Finds how an app starts from files for other platforms. An explicit command takes precedence over detection.
import type { Tree } from '../../tree.ts';
import { quoteShellWord } from '../recipe.ts';
import { findPortInCommand } from '../port-literal.ts';
import type { Declaration } from './declaration.ts';
import { readFly, readHuggingFace, readNetlify, readProcfile, readRailway, readVercel, readRender } from './hosts.ts';

export interface DeclaredStart {
  /** Shell command, with $PORT not yet expanded. */
  readonly command: string;
  readonly because: string;
  readonly framework?: string;
  /** Python packages that it needs. */
  readonly needs: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly port?: number | undefined;
}

/** The first file with a start command wins. */
const starts: readonly ((tree: Tree) => Declaration | undefined)[] = [
  readProcfile,
  readRailway,
  readRender,
  readFly,
  readHuggingFace,
];

export function findDeclaredStart(tree: Tree): DeclaredStart | undefined {
  for (const read of starts) {
    const declaration = read(tree);
    if (declaration?.start !== undefined)
      return { ...toCommand(declaration, declaration.start), port: findPortInCommand(declaration.start) };
    if (declaration?.space !== undefined) return toSpaceStart(declaration.file, declaration.space);
  }
  return undefined;
}

function toCommand({ file, release }: Declaration, start: string): Omit<DeclaredStart, 'port'> {
  const first = release === undefined ? '' : `( ${release} ) && `;
  return {
    command: `${first}${prefixExec(start)}`,
    because: `${file} defines how it starts${release === undefined ? '' : ', and what runs before each start'}.`,
    needs: [],
  };
}

/** exec makes the app receive signals directly; a line with several commands keeps its shell. */
export function prefixExec(command: string): string {
  return /[;&|<>()`]|^(?:exec|cd|export)\b|^\w+=/.test(command) ? command : `exec ${command}`;
}

function toSpaceStart(file: string, { sdk, file: script, version }: NonNullable<Declaration['space']>): DeclaredStart {
  const because = `${file} makes it a Space of ${sdk === 'gradio' ? 'Gradio' : 'Streamlit'} that starts with ${script}.`;
  const needs = [version === undefined ? sdk : `${sdk}==${version}`];
  return sdk === 'gradio'
    ? {
        command: `export GRADIO_SERVER_PORT=$PORT; exec python ${quoteShellWord(script)}`,
        framework: 'Gradio',
        because,
        needs,
        environment: { GRADIO_SERVER_NAME: '0.0.0.0', GRADIO_ANALYTICS_ENABLED: 'False' },
      }
    : {
        command: `exec streamlit run ${quoteShellWord(script)} --server.port $PORT --server.address 0.0.0.0 --server.headless true --browser.gatherUsageStats false`,
        framework: 'Streamlit',
        because,
        needs,
      };
}

/** Finds the folder of built files that a static hosting file declares, and the file. */
export function findDeclaredSite(tree: Tree): { file: string; folder: string; fallback: boolean } | undefined {
  for (const read of [readNetlify, readVercel, readRender]) {
    const declaration = read(tree);
    const folder = declaration?.site?.folder.replace(/^(?:\.?\/)+/, '').replace(/\/+$/, '');
    if (declaration?.site !== undefined && folder !== undefined && folder !== '' && !folder.includes('..'))
      return { file: declaration.file, folder, fallback: declaration.site.fallback };
  }
  return undefined;
}
