// The kinds of problem that submitting and following a repository answer with.
import type { ProblemType } from '../../lib/problem.ts';

export const notSubmitted: ProblemType = {
  slug: 'not-submitted',
  status: 404,
  title: 'This repository was never submitted',
  description: 'Nothing is hosted from this repository. Submit it first: POST /api/submit with {"repo": "owner/name"}.',
};

export const tooManySubmissions: ProblemType = {
  slug: 'too-many-submissions',
  status: 429,
  title: 'Too many new repositories today',
  description:
    'New repositories are limited for each caller within 24 hours. A repository that is hosted already can be submitted again at any time.',
};

export const tooManyApps: ProblemType = {
  slug: 'too-many-apps',
  status: 429,
  title: 'Too many apps from one network',
  description:
    'The apps that exist are limited for each network (/24 of IPv4, /48 of IPv6) that they were submitted from. Apps that never go live are deleted after a while. A repository that is hosted already can be submitted again at any time.',
};

export const platformFull: ProblemType = {
  slug: 'platform-full',
  status: 503,
  title: 'There is no room for another app',
  description:
    'As many apps are hosted as this installation allows (setting MOORAGE_MAX_APPS). Repositories that are hosted already are not affected.',
};

export const beingRemoved: ProblemType = {
  slug: 'being-removed',
  status: 409,
  title: 'The app is being removed',
  description:
    'The app of this repository is being taken down. Once that is done, the repository can be submitted anew.',
};

export const tooManyStreams: ProblemType = {
  slug: 'too-many-streams',
  status: 503,
  title: 'Too many logs are being followed',
  description:
    'This replica streams as many logs as it may. Poll the submit-status instead, or try again after the seconds in Retry-After.',
};

export const noCluster: ProblemType = {
  slug: 'no-cluster',
  status: 503,
  title: 'There is no cluster here',
  description:
    'The API runs alone, for a first look at models. Hosting needs a Kubernetes cluster: `npm run up` starts one on a Linux machine, and the Helm chart installs into your own.',
};
