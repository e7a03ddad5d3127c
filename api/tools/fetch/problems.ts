// The problem types of fetching a URL that a caller names.
import type { ProblemType } from '../../../lib/problem.ts';

export const urlRefused: ProblemType = {
  slug: 'url-refused',
  status: 422,
  title: 'Address not allowed',
  description:
    'Tools fetch only public URLs: http or https, on port 80, 443, 8080 or 8443 unless the operator changes the list, without a user name or password, and never inside a private network. The same applies to every redirect. `detail` gives the reason; `errors` names the field where it is known.',
};

export const fetchFailed: ProblemType = {
  slug: 'fetch-failed',
  status: 502,
  title: 'Fetch failed',
  description:
    'The remote server could not be reached, took too long, or returned something unusable. `detail` says which; `target_status` is its HTTP status if there was one. The call was not charged.',
};

export const fetchTooLarge: ProblemType = {
  slug: 'fetch-too-large',
  status: 422,
  title: 'Remote file too large',
  description:
    'The remote file is larger than this tool accepts, counted after decompression. `limit_bytes` is the limit. The call was not charged.',
};

export const fetchProblems: readonly ProblemType[] = [urlRefused, fetchFailed, fetchTooLarge];
