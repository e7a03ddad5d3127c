// The problem types of hosted apps: of calling them, of submitting repositories, and of following their builds.
import type { ProblemType } from '../../lib/problem.ts';

export const unknownApp: ProblemType = {
  slug: 'unknown-app',
  status: 404,
  title: 'Unknown app',
  description:
    'No hosted app has this slug. `nearest` lists similar slugs; list_apps and /agent-capabilities.json list all live apps.',
};

export const appNotLive: ProblemType = {
  slug: 'app-not-live',
  status: 409,
  title: 'The app is not live',
  description:
    'The app is not live. `status` is in_pipeline while it is being built or deployed, and rejected if it was rejected or suspended; `status_url` has the reason. Nothing was sent to the app and nothing was charged.',
};

export const appProtected: ProblemType = {
  slug: 'app-protected',
  status: 403,
  title: 'The app is protected',
  description:
    'The author of the app decides who may visit it, so it is neither called through the platform nor offered to agents. Call it at its own address, with an access key of the author. Nothing was sent to the app and nothing was charged.',
};

export const appUnreachable: ProblemType = {
  slug: 'app-unreachable',
  status: 502,
  title: 'The app could not be reached',
  description:
    'The connection to the app failed, or its response was not valid HTTP. Nothing was charged. Trying again may help, but note that the request may have reached the app.',
};

export const appTimeout: ProblemType = {
  slug: 'app-timeout',
  status: 504,
  title: 'The app timed out',
  description:
    'The app did not respond within the time limit of a call, `limit_ms`. Nothing was charged. The app may still be processing the request.',
};

export const appAnswerTooLarge: ProblemType = {
  slug: 'app-answer-too-large',
  status: 502,
  title: 'The response of the app is too large',
  description:
    'The response of the app is larger than `limit_bytes`. Nothing was charged. Request less data, or call the app at /api/projects/{slug}/call/{path}, which streams larger responses.',
};

export const appProblems: readonly ProblemType[] = [
  unknownApp,
  appNotLive,
  appProtected,
  appUnreachable,
  appTimeout,
  appAnswerTooLarge,
];

export const notSubmitted: ProblemType = {
  slug: 'not-submitted',
  status: 404,
  title: 'Repository not submitted',
  description:
    'No app is hosted from this repository. To submit it, send POST /api/submit with {"repo": "owner/name"}.',
};

export const repositoryNotFound: ProblemType = {
  slug: 'repository-not-found',
  status: 422,
  title: 'Repository not found',
  description:
    'No public repository with a commit was found at this address, or it has moved. `detail` says which, and `rule` names it. If it may be private, `deploy_key` has the key with which this installation would read it: add it at the forge, and submit the repository again. No name was reserved.',
};

export const noDeployKey: ProblemType = {
  slug: 'no-deploy-key',
  status: 404,
  title: 'No deploy key for this git server',
  description:
    'This installation reads no private repositories of this git server: it does not know its SSH host key. The operator of this installation can set git.sshHostKeys.',
};

export const repositoryUnreachable: ProblemType = {
  slug: 'repository-unreachable',
  status: 503,
  title: 'Git server not reachable',
  description:
    'The git server of the repository could not be reached, so it is unknown whether the repository exists. No name was reserved. Submit it again after the number of seconds in Retry-After.',
};

export const tooManySubmissions: ProblemType = {
  slug: 'too-many-submissions',
  status: 429,
  title: 'Too many new repositories',
  description:
    'The number of new repositories is limited per caller within 24 hours, and the number of unreadable repositories per network within ten minutes. Repositories that are already hosted can be submitted again at any time.',
};

export const tooManyApps: ProblemType = {
  slug: 'too-many-apps',
  status: 429,
  title: 'Too many apps from one network',
  description:
    'The number of existing apps is limited per submitting network (/24 of IPv4, /48 of IPv6). Apps that never go live are deleted after a while. A repository that is already hosted can be submitted again at any time.',
};

export const platformFull: ProblemType = {
  slug: 'platform-full',
  status: 503,
  title: 'App limit reached',
  description:
    'This installation hosts the maximum number of apps (MOORAGE_MAX_APPS), or its resource quota is exhausted. Repositories that are already hosted are not affected.',
};

export const beingRemoved: ProblemType = {
  slug: 'being-removed',
  status: 409,
  title: 'The app is being deleted',
  description: 'The app of this repository is being deleted. Submit the repository again once it is gone.',
};

export const tooManyStreams: ProblemType = {
  slug: 'too-many-streams',
  status: 503,
  title: 'Too many log streams',
  description:
    'The number of log streams is limited per caller and per replica. Close a stream, poll /api/submit-status instead, or try again after the number of seconds in Retry-After.',
};

export const noCluster: ProblemType = {
  slug: 'no-cluster',
  status: 503,
  title: 'No cluster',
  description:
    'This API runs without a cluster, to try out models and tools. Hosting requires a Kubernetes cluster: `npm run up` starts one on a Linux machine, and the Helm chart installs Moorage into your own.',
};

export const appKeyRequired: ProblemType = {
  slug: 'app-key-required',
  status: 401,
  title: 'Author key required',
  description:
    'Only the author of the app, and holders of a token from them, may see or change this. POST /api/apps/{slug}/keys gives you a key and a line of text. Commit the line to the file .moorage-owner at the top of the default branch, and send the key as `Authorization: Bearer mak-…`. Nothing is stored here until you commit it, and removing the line revokes the key.',
};

export const appPrivate: ProblemType = {
  slug: 'app-private',
  status: 404,
  title: 'Nothing to show',
  description:
    'This part of an app is shown only to its author. The key in the request is none of the newest reviewed commit of its repository, or the token is none of the app, has ended, or was made with such a key.',
};

export const notAuthor: ProblemType = {
  slug: 'not-author',
  status: 403,
  title: 'Not the author of the app',
  description:
    'The newest commit of the default branch has no line of this key in .moorage-owner, or the token is none of the app, has ended, or was made with such a key. Nothing was changed.',
};

export const missingScope: ProblemType = {
  slug: 'missing-scope',
  status: 403,
  title: 'Missing scope',
  description:
    'The token is valid, and has not the scope that this needs: `scope` names it. `owner` means that no token has it, and `key` that an account cannot do it either. The author can make a token with other scopes, or send their key. Nothing was changed.',
};

export const forgeUnreachable: ProblemType = {
  slug: 'forge-unreachable',
  status: 503,
  title: 'The forge did not say what the account may do',
  description:
    'The forge of the account that signed in did not answer, or asked to be asked less often. Nothing was changed. Try again after the number of seconds in Retry-After.',
};

export const signInUnconfigured: ProblemType = {
  slug: 'sign-in-unconfigured',
  status: 503,
  title: 'No sign-in providers here',
  description:
    'This installation has no forges with whose accounts authors sign in (MOORAGE_SIGN_IN_PROVIDERS). An author key opens an app without one.',
};

export const signInUnavailable: ProblemType = {
  slug: 'sign-in-unavailable',
  status: 503,
  title: 'The sign-in provider cannot be reached',
  description: 'Try again after the number of seconds in Retry-After, or sign in with an author key.',
};

export const signInRefused: ProblemType = {
  slug: 'sign-in-refused',
  status: 403,
  title: 'Not signed in',
  description:
    'The sign-in was not begun in this browser, has ended already, or the provider refused it. Begin again at /apps/{slug}/manage. Nothing was changed.',
};

export const unknownProvider: ProblemType = {
  slug: 'unknown-provider',
  status: 404,
  title: 'Unknown sign-in provider',
  description: 'This installation has no sign-in provider of this name. GET /api/sign-in lists them.',
};

export const unknownToken: ProblemType = {
  slug: 'unknown-token',
  status: 404,
  title: 'Unknown token',
  description: 'The app has no token of this id. GET /api/apps/{slug}/tokens lists them.',
};

export const tooManyTokens: ProblemType = {
  slug: 'too-many-tokens',
  status: 409,
  title: 'Too many tokens',
  description: 'An app has a limited number of tokens that have not ended. Revoke one that is no longer used.',
};

export const tooManyWrongKeys: ProblemType = {
  slug: 'too-many-wrong-keys',
  status: 429,
  title: 'Too many wrong keys',
  description:
    'The number of wrong author keys is limited per network and minute. Check the key, and try again after the number of seconds in Retry-After.',
};

export const settingRefused: ProblemType = {
  slug: 'setting-refused',
  status: 422,
  title: 'Setting refused',
  description:
    'The value is valid, but not for this app: `detail` names the field or the variable, the reason and the fix. Nothing was changed.',
};

export const slugTaken: ProblemType = {
  slug: 'slug-taken',
  status: 409,
  title: 'Slug taken',
  description:
    'Another app has this slug, or has had it so lately that it still redirects to that app. Nothing was changed. Choose another slug.',
};

export const unknownSecret: ProblemType = {
  slug: 'unknown-secret',
  status: 404,
  title: 'Unknown secret',
  description: 'The author has not set a secret of this name. `nearest` lists similar names.',
};

export const unknownAccessKey: ProblemType = {
  slug: 'unknown-access-key',
  status: 404,
  title: 'Unknown access key',
  description: 'The author has not created an access key of this name. `nearest` lists similar names.',
};

export const unknownDomain: ProblemType = {
  slug: 'unknown-domain',
  status: 404,
  title: 'Unknown domain',
  description: 'The author has not added this domain to the app. `nearest` lists similar names.',
};

export const domainsUnavailable: ProblemType = {
  slug: 'domains-unavailable',
  status: 503,
  title: 'No own domains here',
  description:
    'This installation has no issuer for the certificates of own domains (domains.issuer of the chart). Apps answer below its domain only.',
};

export const releaseNotKept: ProblemType = {
  slug: 'release-not-kept',
  status: 422,
  title: 'No such release',
  description:
    'No kept release of the app has this commit, or several do. `releases` lists the kept ones, newest first: the last four that have served. Nothing was changed.',
};

export const rebuildRefused: ProblemType = {
  slug: 'rebuild-refused',
  status: 409,
  title: 'Nothing can be built now',
  description:
    'The app is suspended, or its author pinned a release, so no build starts. `detail` says which, and what to do first. Nothing was changed.',
};

export const tooManyRebuilds: ProblemType = {
  slug: 'too-many-rebuilds',
  status: 429,
  title: 'Too many rebuilds',
  description: 'An app is rebuilt at most once a minute. Try again after the number of seconds in Retry-After.',
};

export const unknownTask: ProblemType = {
  slug: 'unknown-task',
  status: 404,
  title: 'Unknown task',
  description: 'The app has no task or cron component of this name. `nearest` lists similar names.',
};

export const unknownRun: ProblemType = {
  slug: 'unknown-run',
  status: 404,
  title: 'Unknown run',
  description:
    'The app has no run with this id. Runs are kept for 90 days, and only those of the app itself are shown.',
};

export const runRefused: ProblemType = {
  slug: 'run-refused',
  status: 409,
  title: 'Nothing can be run now',
  description:
    'The app is suspended, or has no image yet. `detail` says which, and what to do first. Nothing was started.',
};

export const tooManyRuns: ProblemType = {
  slug: 'too-many-runs',
  status: 429,
  title: 'Too many runs',
  description:
    'Two runs that the author of an app has started can be in progress. Try again after the number of seconds in Retry-After.',
};

export const wrongHookSignature: ProblemType = {
  slug: 'wrong-hook-signature',
  status: 403,
  title: 'Wrong signature',
  description:
    'The request has no signature by the secret of this push hook, or a wrong one. POST /api/apps/{slug}/push-hook-secret gives the author the secret, and says where to enter it. Nothing was done.',
};

export const hooksUnconfigured: ProblemType = {
  slug: 'hooks-unconfigured',
  status: 503,
  title: 'No push hooks here',
  description:
    'This installation has no secret from which those of push hooks are derived (MOORAGE_APP_TOKEN_SECRET). Repositories are polled.',
};

export const forgeUnsupported: ProblemType = {
  slug: 'forge-unsupported',
  status: 409,
  title: 'The forge of the repository is not known',
  description:
    'Commit statuses are reported to github.com, gitlab.com, codeberg.org and the forges with whose accounts authors sign in here. The repository of this app is at another host, or it is a package. Nothing was stored.',
};

export const noForgeToken: ProblemType = {
  slug: 'no-forge-token',
  status: 404,
  title: 'No forge token',
  description:
    'The app has no forge token, so no commit statuses are reported. PUT /api/apps/{slug}/forge-token sets one.',
};

export const noNotifications: ProblemType = {
  slug: 'no-notifications',
  status: 409,
  title: 'Nowhere to send notifications',
  description:
    'Nothing can be sent about this app. Mails need an e-mail address that the author gave in moorage.yaml or .moorage-owner, and an installation that sends mail; a webhook has to be added first. `detail` says what is missing.',
};

export const tooManyTests: ProblemType = {
  slug: 'too-many-tests',
  status: 429,
  title: 'Too many test notifications',
  description:
    'One test notification of an app is sent within 30 seconds. Try again after the number of seconds in Retry-After.',
};

export const tooManyContacts: ProblemType = {
  slug: 'too-many-contacts',
  status: 409,
  title: 'Too many contacts',
  description: 'An app has a limited number of contacts that are notified by mail. Remove one of them first.',
};

export const tooManyConfirmations: ProblemType = {
  slug: 'too-many-confirmations',
  status: 429,
  title: 'Too many requests for confirmation',
  description:
    'The number of mails that ask for a confirmation is limited for each app and each address, so that no one is flooded with them. Try again after the number of seconds in Retry-After.',
};

export const unknownStopLink: ProblemType = {
  slug: 'unknown-stop-link',
  status: 404,
  title: 'Unknown link',
  description:
    'This installation did not make the link, the link was cut off, or it has expired. Copy all of it from the mail. The author of the app can also change notifications with their key.',
};

/** What the pages of signing in are refused with. */
export const signInProblems: readonly ProblemType[] = [signInUnavailable, signInRefused, unknownProvider];

/** What any request for the private side of an app may be refused with. */
export const readingProblems: readonly ProblemType[] = [unknownApp, appKeyRequired, appPrivate, tooManyWrongKeys];

/** The same for a change. */
export const actionProblems: readonly ProblemType[] = [
  unknownApp,
  appKeyRequired,
  notAuthor,
  tooManyWrongKeys,
  repositoryUnreachable,
  beingRemoved,
];
