// Defines what a file for another platform declares about the app, in one form for all of them, and reads their YAML.
import { parse } from 'yaml';
import type { z } from 'zod';
import type { services } from '../../../../crds/backing-services.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';

export interface DeclaredVariable {
  readonly name: string;
  readonly value: string;
}

export interface DeclaredVolume {
  readonly name: string;
  readonly path: string;
}

/** Where the Dockerfile is, and how it is built. */
export interface DeclaredBuild {
  /** Folder of the build context, "." for the top. */
  readonly path: string;
  /** Relative to that folder. */
  readonly dockerfile: string;
  readonly target?: string;
  readonly args?: readonly DeclaredVariable[];
}

export interface Declaration {
  /** The file that says so. */
  readonly file: string;
  /** Shell command that starts the app. */
  readonly start?: string;
  /** Shell command that runs before the app starts, each time that it does. */
  readonly release?: string;
  /** Command and arguments for an image of a Dockerfile, without a shell. */
  readonly command?: readonly string[];
  /** Port that the app listens on. */
  readonly port?: number;
  /** Path that answers when the app is ready. */
  readonly healthPath?: string;
  readonly env?: readonly DeclaredVariable[];
  readonly volumes?: readonly DeclaredVolume[];
  readonly build?: DeclaredBuild;
  readonly services?: z.input<typeof services>;
  /** Folder of built files that are served, and whether every path answers with its index.html. */
  readonly site?: { readonly folder: string; readonly fallback: boolean };
  /** Framework of a Hugging Face Space, with the version that it is installed in. */
  readonly space?: { readonly sdk: 'gradio' | 'streamlit'; readonly file: string; readonly version?: string };
  readonly findings?: readonly Finding[];
}

/** A warning about such a file. */
export function createWarning(rule: string, file: string, message: string, fix: string): Finding {
  return { rule, severity: 'warning', file, message, fix };
}

const maximumBytes = 256 * 1024;

/** Parsed YAML; undefined when absent, too large, malformed, or made of more aliases than a person writes. */
export function parseYaml(text: string | undefined): unknown {
  if (text === undefined || text.length > maximumBytes) return undefined;
  try {
    return parse(text, { merge: true, maxAliasCount: 200, uniqueKeys: false, logLevel: 'silent' }) as unknown;
  } catch {
    return undefined;
  }
}
