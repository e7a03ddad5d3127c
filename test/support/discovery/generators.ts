// Clients by other people and generators of them, installed once from npm and PyPI, apart from our own packages: they need
// another TypeScript.
import { execFileSync, type ExecFileSyncOptions } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { paths } from '../../../localnode/paths.ts';

const npmPackages = ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0', 'typescript@5.9.3'];
const pythonPackage = 'openapi-python-client==0.26.2';
const mcpClients = ['mcp==2.3.0', 'fastmcp==4.1.2'];
const goGenerator = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';
export const goRuntime = 'github.com/oapi-codegen/runtime@v1.8.0';
const quiet: ExecFileSyncOptions = { stdio: ['ignore', 'ignore', 'inherit'] };

/** @returns the folder in which node finds the packages */
export function installForTypeScript(): string {
  return once('openapi-typescript', npmPackages.join(' '), (folder) => {
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
    execFileSync('npm', ['install', '--no-audit', '--no-fund', ...npmPackages], { ...quiet, cwd: folder });
  });
}

/** @returns the folder of the programs */
export function installForPython(): string {
  return installFromPyPI('openapi-python-client', [pythonPackage]);
}

/** MCP clients of other people: Anthropic's for Python, and FastMCP. @returns the folder of the programs */
export function installMcpClients(): string {
  return installFromPyPI('mcp-clients', mcpClients);
}

function installFromPyPI(name: string, packages: readonly string[]): string {
  const folder = once(name, packages.join(' '), (at) => {
    execFileSync('python3', ['-m', 'venv', '--clear', at], quiet);
    execFileSync(join(at, 'bin', 'pip'), ['install', '-q', '--disable-pip-version-check', ...packages], quiet);
  });
  return join(folder, 'bin');
}

/** @returns the generator */
export function installForGo(go: string): string {
  const folder = once('oapi-codegen', goGenerator, (at) => {
    execFileSync(go, ['install', goGenerator], {
      ...quiet,
      cwd: at,
      env: { ...process.env, GOBIN: at, GOFLAGS: '-mod=mod' },
    });
  });
  return join(folder, 'oapi-codegen');
}

function once(name: string, version: string, install: (folder: string) => void): string {
  const folder = join(paths.cache, 'generators', name, version.replaceAll(/[^\w.-]+/g, '_'));
  const complete = join(folder, '.complete');
  if (existsSync(complete)) return folder;
  mkdirSync(folder, { recursive: true });
  install(folder);
  writeFileSync(complete, version);
  return folder;
}
