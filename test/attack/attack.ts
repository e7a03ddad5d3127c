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
  /** Tries it. An error counts as not tried. */
  run(victim: Victim): Promise<Outcome>;
}

export function judged(isHeld: boolean, evidence: string): Outcome {
  return { result: isHeld ? 'held' : 'open', evidence };
}

export function notTried(evidence: string): Outcome {
  return { result: 'not tried', evidence };
}

/** Runs one attack. Whatever goes wrong in it proves nothing, so that is said. */
export async function attempt(attack: Attack, victim: Victim): Promise<Outcome> {
  if (attack.needs === 'kubectl' && !victim.hasKubectl) return notTried('needs kubectl: name a context by --context.');
  if (attack.needs === 'git' && !(victim.hasKubectl && victim.hasGit))
    return notTried('needs a git server to push to, which only a local cluster has, and kubectl.');
  try {
    return await attack.run(victim);
  } catch (error) {
    return notTried(`failed: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)}`);
  }
}
