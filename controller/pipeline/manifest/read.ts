// Reads moorage.yaml as its author wrote it: bounded, without aliases, and with the line of all that is wrong in it.
import { isAlias, isCollection, isNode, isScalar, LineCounter, parseDocument, visit, type Document } from 'yaml';
import { appManifest, maximumManifestBytes, manifestFile, type AppManifest } from '../../../crds/app-manifest.ts';
import type { Finding } from '../../../crds/hosted-app.ts';
import { head, oneLine } from '../text.ts';
import type { Tree } from '../tree.ts';
import { problemsOf } from './problems.ts';

/** What the file says; with an error among the findings, nothing. */
export interface ManifestResult {
  readonly settings?: AppManifest;
  readonly findings: readonly Finding[];
}

const maximumBytes = 16 * 1024;
const deepest = 12;

/** The tree is that of the repository. */
export function readManifest(tree: Tree): ManifestResult {
  const entry = tree.entry(manifestFile);
  if (entry === undefined) return { findings: misnamed(tree) };
  if (entry.kind !== 'file')
    return refused('This is not a regular file.', 'Commit the file itself at this path, not a link or a folder.');
  if (entry.bytes > maximumBytes)
    return refused(
      'This file is larger than 16 KiB.',
      'Keep only settings for this platform in it; put what the app itself reads into other files.',
    );
  const lines = new LineCounter();
  const document = parsed(tree.text(manifestFile, maximumBytes) ?? '', lines);
  return document instanceof Error ? notYaml(document.message) : judged(document, lines);
}

function judged(document: Document.Parsed, lines: LineCounter): ManifestResult {
  const [wrong] = [...document.errors, ...document.warnings];
  if (wrong !== undefined) return notYaml(wrong.message.split('\n')[0] ?? '', lines.linePos(wrong.pos[0]).line);
  const odd = oddNode(document);
  if (odd !== undefined) return refused(odd.what, odd.fix, lines.linePos(odd.at).line);
  const value: unknown = document.toJS({ maxAliasCount: 0 });
  const read = appManifest.safeParse(value ?? {});
  if (!read.success) return { findings: problemsOf(read.error, document, lines) };
  const bytes = Buffer.byteLength(JSON.stringify(read.data));
  if (bytes > maximumManifestBytes)
    return refused(
      `The settings take ${bytes} bytes as JSON; the maximum is ${maximumManifestBytes}.`,
      'Shorten run.env, build.env or build.args, or read long values from a file in the repository.',
    );
  return { settings: read.data, findings: [] };
}

/** YAML as far as it can be read; text nested so deep that reading it fails is refused too. */
function parsed(text: string, lines: LineCounter): Document.Parsed | Error {
  try {
    return parseDocument(text.replace(/^\ufeff/, ''), {
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: true,
      version: '1.2',
      schema: 'core',
      merge: false,
    });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function oddNode(document: Document.Parsed): { what: string; fix: string; at: number } | undefined {
  let odd: { what: string; fix: string; at: number } | undefined;
  visit(document, (_key, node, path) => {
    const at = isNode(node) ? (node.range?.[0] ?? 0) : 0;
    if (isAlias(node) || ((isScalar(node) || isCollection(node)) && node.anchor !== undefined))
      odd = { what: 'Anchors and aliases (& and *) are not supported.', fix: 'Write the value where it is used.', at };
    else if (path.length > 2 * deepest)
      odd = { what: 'This is nested too deeply.', fix: 'Settings are at most four levels deep; see the README.', at };
    return odd === undefined ? undefined : visit.BREAK;
  });
  return odd;
}

function misnamed(tree: Tree): Finding[] {
  const file = ['moorage.yml', '.moorage.yaml', '.moorage.yml'].find((name) => tree.has(name));
  if (file === undefined) return [];
  return [
    {
      rule: 'settings/name',
      severity: 'warning',
      file,
      message: 'This file is ignored.',
      fix: `Rename it to ${manifestFile} if it contains settings for this platform.`,
    },
  ];
}

function notYaml(message: string, line?: number): ManifestResult {
  return refused(
    `This is not valid YAML: ${head(oneLine(message), 300)}.`.replace(/\.\.$/, '.'),
    'Correct the syntax: each setting is a line like "port: 8000" under its section ("run:"), indented by two spaces.',
    line,
  );
}

function refused(message: string, fix: string, line?: number): ManifestResult {
  return {
    findings: [
      {
        rule: 'settings/invalid',
        severity: 'error',
        file: manifestFile,
        message,
        fix,
        ...(line === undefined ? {} : { line }),
      },
    ],
  };
}
