// `npm run attack`: repeats known attacks on a running installation, and reports of each whether it holds.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { readCommandLine } from '../../lib/command-line.ts';
import { findKubectl } from '../../cli/install/programs.ts';
import { createKubectl, type Kubectl } from '../../localnode/kubectl.ts';
import { paths } from '../../localnode/paths.ts';
import { Fault, readInstallation, type Installation } from '../../cli/submit/installation.ts';
import { commandLine, readArguments, type Arguments } from './arguments.ts';
import { attempt, type Attack, type Outcome } from './attack.ts';
import { attacks, hostingAttacks, quickAttacks } from './attacks/all.ts';
import { Victim } from './victim.ts';

const write = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

async function installationOf({ url }: Arguments): Promise<Installation> {
  if (url === undefined) return await readInstallation();
  return { baseUrl: url, gitUrl: url, internalGitUrl: url, authority: undefined, gitPassword: undefined };
}

async function kubectlOf({ url, context }: Arguments): Promise<Kubectl | undefined> {
  if (url === undefined) return createKubectl(paths.kubectl, paths.kubeconfig);
  if (context === undefined) return undefined;
  return createKubectl(await findKubectl(), process.env['KUBECONFIG'] ?? join(homedir(), '.kube', 'config'), context);
}

async function main(args: Arguments): Promise<number> {
  const victim = new Victim(await installationOf(args), await kubectlOf(args), args.namespace);
  const isChosen = ({ name }: Attack): boolean => args.only === undefined || name.includes(args.only);
  write(`attacking ${victim.baseUrl.href} in ${attacks.filter(isChosen).length} ways\n`);
  const counts = { held: 0, open: 0, 'not tried': 0 } satisfies Record<Outcome['result'], number>;
  const attemptInTurn = async (group: readonly Attack[]): Promise<void> => {
    for (const attack of group.filter(isChosen)) {
      const { result, evidence } = await attempt(attack, victim);
      counts[result] += 1;
      write(`${result.padEnd(9)}  ${attack.name}\n${' '.repeat(11)}${evidence}`);
    }
  };
  try {
    await attemptInTurn(quickAttacks);
    await Promise.all(hostingAttacks.map(attemptInTurn));
  } finally {
    await victim.remove();
  }
  write(`\n${counts.held} held, ${counts.open} open, ${counts['not tried']} not tried`);
  return counts.open === 0 ? 0 : 1;
}

const args = readCommandLine(commandLine, readArguments);
try {
  process.exitCode = await main(args);
} catch (error) {
  if (!(error instanceof Fault)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
