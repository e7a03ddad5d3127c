// Follows the redirects of a renamed repository, but never to another host or protocol.
import { Fault } from '../outcome.ts';

const probe = '/info/refs?service=git-upload-pack';
const maximumHops = 3;

/** The address that a repository has now. @throws Fault when it leads elsewhere or nowhere. */
export async function followRedirect(repo: string, signal?: AbortSignal): Promise<string> {
  let address = repo.replace(/\/$/, '');
  for (let hop = 0; hop < maximumHops; hop += 1) {
    const answer = await fetch(`${address}${probe}`, {
      redirect: 'manual',
      ...(signal === undefined ? {} : { signal }),
    });
    await answer.body?.cancel();
    const location = answer.headers.get('location');
    if (answer.status < 300 || answer.status >= 400 || location === null) return address;
    address = nextAddress(address, location);
  }
  throw new Fault(`the repository redirects more than ${maximumHops} times`);
}

/** One hop. @throws Fault when it leaves the host or the protocol. */
export function nextAddress(address: string, location: string): string {
  const target = URL.canParse(location, `${address}${probe}`) ? new URL(location, `${address}${probe}`) : undefined;
  if (
    target === undefined ||
    target.origin !== new URL(address).origin ||
    target.username !== '' ||
    target.password !== ''
  ) {
    throw new Fault(
      `the repository redirects to another host (${target?.host ?? 'no valid address'}); submit it under its new address`,
    );
  }
  if (!target.pathname.endsWith('/info/refs'))
    throw new Fault('the repository redirects to something that is not a git repository');
  return `${target.origin}${target.pathname.slice(0, -'/info/refs'.length)}`;
}
