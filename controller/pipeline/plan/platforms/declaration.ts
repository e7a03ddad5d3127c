// Defines the common form of what files for other platforms declare about the app, and parses their YAML.
import { parse } from 'yaml';
import type { z } from 'zod';
import type { services } from '../../../../crds/backing-services.ts';
import type { DeclaredComponent } from '../../../../crds/components.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';

export interface DeclaredVariable {
  readonly name: string;
  readonly value: string;
}

export interface DeclaredVolume {
  readonly name: string;
  readonly path: string;
}

/** Location of the Dockerfile, and how to build it. */
export interface DeclaredBuild {
  /** Folder of the build context, "." for the root. */
  readonly path: string;
  /** Relative to that folder. */
  readonly dockerfile: string;
  readonly target?: string;
  readonly args?: readonly DeclaredVariable[];
}

export interface Declaration {
  /** The declaring file. */
  readonly file: string;
  /** Shell command that starts the app. */
  readonly start?: string;
  /** Shell command that runs before every start of the app. */
  readonly release?: string;
  /** Command and arguments for a Dockerfile's image, without a shell. */
  readonly command?: readonly string[];
  /** Port that the app listens on. */
  readonly port?: number;
  /** Path that responds when the app is ready. */
  readonly healthPath?: string;
  readonly env?: readonly DeclaredVariable[];
  readonly volumes?: readonly DeclaredVolume[];
  readonly build?: DeclaredBuild;
  readonly services?: z.input<typeof services>;
  /** The processes of an app that has several; then it declares no build, command, port, path or volume for one. */
  readonly components?: readonly DeclaredComponent[];
  /** Folder of built files to serve, and whether every path falls back to its index.html. */
  readonly site?: { readonly folder: string; readonly fallback: boolean };
  /** Framework of a Hugging Face Space, and the version to install. */
  readonly space?: { readonly sdk: 'gradio' | 'streamlit'; readonly file: string; readonly version?: string };
  readonly findings?: readonly Finding[];
}

/** Creates a warning about such a file. */
export function createWarning(rule: string, file: string, message: string, fix: string): Finding {
  return { rule, severity: 'warning', file, message, fix };
}

const maximumBytes = 256 * 1024;

/** Parses YAML; undefined if absent, too large, malformed, or with more aliases than a person would write. */
export function parseYaml(text: string | undefined): unknown {
  if (text === undefined || text.length > maximumBytes) return undefined;
  try {
    return parse(text, { merge: true, maxAliasCount: 200, uniqueKeys: false, logLevel: 'silent' }) as unknown;
  } catch {
    return undefined;
  }
}
