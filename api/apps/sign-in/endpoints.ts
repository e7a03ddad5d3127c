// The endpoint that lists the forges with whose accounts authors sign in here, or says that there are none.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { signInUnconfigured } from '../problems.ts';
import type { SignInProvider } from './config.ts';

const signInView = z.object({
  providers: z.array(
    z.object({
      id: z.string(),
      label: z.string(),
      host: z.string().describe('Git host whose repositories its accounts can own.'),
      url: z.string().describe('Where a browser signs in; add `?app=` and the name of an app.'),
    }),
  ),
});

export function createSignInEndpoints(providers: readonly SignInProvider[], baseUrl: string): Endpoint[] {
  return [
    defineEndpoint({
      method: 'GET',
      path: '/api/sign-in',
      operation: 'listSignInProviders',
      tag: 'apps',
      summary: 'List the forges with whose accounts authors sign in',
      description:
        'An account owns an app if the forge says that it can push to the repository. It is for browsers; programs send an author key or a token.',
      output: signInView,
      outputDescription: 'The providers.',
      problems: [signInUnconfigured],
      head: 'as GET',
      handler: async () => {
        if (providers.length === 0)
          throw new Problem(
            signInUnconfigured,
            'This installation has no sign-in providers: use an author key. Its operator can set signIn.providersSecret of the chart.',
          );
        const listed = providers.map(({ id, label, host }) => ({ id, label, host, url: `${baseUrl}/sign-in/${id}` }));
        return Promise.resolve({ providers: listed });
      },
    }),
  ];
}
