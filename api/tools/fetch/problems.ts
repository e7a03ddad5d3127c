// The problems of fetching what a stranger names.
import type { ProblemType } from '../../../lib/problem.ts';

export const urlRefused: ProblemType = {
  slug: 'url-refused',
  status: 422,
  title: 'This address is not fetched',
  description:
    'Only public addresses are fetched: http or https, on a usual port, without user name or password, and never anything inside a network. That holds for every redirect on the way. `errors` names the field and the reason.',
};

export const fetchFailed: ProblemType = {
  slug: 'fetch-failed',
  status: 502,
  title: 'The address could not be fetched',
  description:
    'The other server could not be reached, took too long, or answered with something that cannot be used. The detail says which; `target_status` is its status where it had one. Nothing was charged.',
};

export const fetchTooLarge: ProblemType = {
  slug: 'fetch-too-large',
  status: 422,
  title: 'The file is too large',
  description:
    'What the address leads to is larger than this tool reads, counted after decompression. `limit_bytes` says how much that is.',
};

export const fetchProblems: readonly ProblemType[] = [urlRefused, fetchFailed, fetchTooLarge];
