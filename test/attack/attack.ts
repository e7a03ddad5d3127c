// What an attack is, and what comes of it.
import type { Victim } from './victim.ts';

export interface Outcome {
  readonly result: 'held' | 'open' | 'not tried';
  /** What was seen, in a sentence. */
  readonly evidence: string;
}

export interface Attack {
  /** What whoever means harm would like. */
  readonly name: string;
  /** What it needs of the person who runs it: nothing but the address, the rights of an operator, or a git server. */
  readonly needs: 'address' | 'kubectl' | 'git';
  /** Submits the apps of the attack: those of all attacks are built while attacks run that need no app. */
  prepare?(victim: Victim): Promise<unknown>;
  /** Tries it. An error counts as not tried. */
  run(victim: Victim): Promise<Outcome>;
}

export function judged(isHeld: boolean, evidence: string): Outcome {
  return { result: isHeld ? 'held' : 'open', evidence };
}

export function notTried(evidence: string): Outcome {
  return { result: 'not tried', evidence };
}

/** Why the attack cannot be tried on this installation; undefined: it can. */
function explainLack({ needs }: Attack, victim: Victim): string | undefined {
  if (needs === 'kubectl' && !victim.hasKubectl) return 'needs kubectl: name a context by --context.';
  if (needs === 'git' && !(victim.hasKubectl && victim.hasGit))
    return 'needs a git server to push to, which only a local cluster has, and kubectl.';
  return undefined;
}

/** Submits the apps of the attack ahead of it. What fails here fails again in the attack, which reports it. */
export async function prepare(attack: Attack, victim: Victim): Promise<void> {
  if (explainLack(attack, victim) !== undefined) return;
  await attack.prepare?.(victim).catch(() => undefined);
}

/** Runs one attack. Whatever goes wrong in it proves nothing, so that is said. */
export async function attempt(attack: Attack, victim: Victim): Promise<Outcome> {
  const lack = explainLack(attack, victim);
  if (lack !== undefined) return notTried(lack);
  try {
    return await attack.run(victim);
  } catch (error) {
    return notTried(`failed: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`);
  }
}
