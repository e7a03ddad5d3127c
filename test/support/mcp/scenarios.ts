// The scenarios of MCP's conformance suite, by revision: which hold for /mcp, which in part, and which do not apply,
// and why.

/**
 * `true`: all its checks pass. A list: all but these checks, which are of something that is not offered. A text: not
 * run, because of this.
 */
export type Expectation = true | { readonly but: readonly string[]; readonly because: string } | string;

const noPrompts = 'no prompts are offered';
const noLogging = 'no log messages are sent to clients';
const noAsking = 'no tool asks its client for anything (elicitation, sampling, roots)';
const noCompletion = 'no completion is offered';
const noSessions = 'the server is stateless: there is no session, and no stream to come back to';
const noSubscription = 'a file never changes, so there is nothing to subscribe to';
const ownFiles = 'resources are files that tools have made; it wants some that always exist';

const tools = {
  'tools-list': true,
  'tools-call-simple-text': true,
  'tools-call-image': true,
  'tools-call-audio': true,
  'tools-call-embedded-resource': true,
  'tools-call-mixed-content': 'a tool makes one file in a call, and it wants two',
  'tools-call-error': true,
  'tools-call-with-progress': true,
} satisfies Record<string, Expectation>;

const resources = {
  'resources-list': true,
  'resources-read-text': ownFiles,
  'resources-read-binary': ownFiles,
  'resources-templates-read': ownFiles,
} satisfies Record<string, Expectation>;

const prompts = {
  'prompts-list': noPrompts,
  'prompts-get-simple': noPrompts,
  'prompts-get-with-args': noPrompts,
  'prompts-get-embedded-resource': noPrompts,
  'prompts-get-with-image': noPrompts,
} satisfies Record<string, Expectation>;

const of2025 = {
  ...tools,
  ...resources,
  ...prompts,
  'server-initialize': true,
  'server-session-lifecycle': noSessions,
  ping: true,
  'logging-set-level': noLogging,
  'tools-call-with-logging': noLogging,
  'completion-complete': noCompletion,
  'tools-call-sampling': noAsking,
  'tools-call-elicitation': noAsking,
  'resources-subscribe': noSubscription,
  'resources-unsubscribe': noSubscription,
} satisfies Record<string, Expectation>;

const schemas = 'schemas of tools are made from zod, which has no $anchor, if or allOf to keep';

export const scenarios: Readonly<Record<string, Readonly<Record<string, Expectation>>>> = {
  // Of this revision the suite has nothing else; protocol.test.ts speaks it with /mcp.
  '2025-03-26': { 'server-session-lifecycle': noSessions },
  '2025-06-18': of2025,
  '2025-11-25': {
    ...of2025,
    'json-schema-2020-12': schemas,
    'elicitation-sep1034-defaults': noAsking,
    'elicitation-sep1330-enums': noAsking,
    'server-sse-polling': noSessions,
    'server-sse-multiple-streams': noSessions,
    'dns-rebinding-protection': true,
  },
  '2026-07-28': {
    ...tools,
    ...resources,
    ...prompts,
    'server-stateless': {
      but: [
        'sep-2575-server-rejects-undeclared-capability',
        'sep-2575-missing-capability-http-400',
        'sep-2575-http-server-no-independent-requests-on-stream',
        'sep-2575-server-no-log-without-loglevel',
      ],
      because: `these need tools of the suite's own: ${noAsking}, and ${noLogging}`,
    },
    'completion-complete': noCompletion,
    'json-schema-2020-12': schemas,
    'server-sse-multiple-streams': true,
    'sep-2164-resource-not-found': true,
    'dns-rebinding-protection': true,
    caching: { but: ['sep-2549-prompts-list-caching-hints'], because: noPrompts },
    'http-header-validation': true,
    'http-custom-header-server-validation': 'no field of a tool is repeated in a header (x-mcp-header)',
    'input-required-result-unsupported-methods': true,
    'input-required-result-validate-input': true,
    ...Object.fromEntries(
      [
        'basic-elicitation',
        'basic-sampling',
        'basic-list-roots',
        'request-state',
        'multiple-input-requests',
        'multi-round',
        'missing-input-response',
        'non-tool-request',
        'result-type',
        'tampered-state',
        'capability-check',
        'ignore-extra-params',
      ].map((name) => [`input-required-result-${name}`, noAsking]),
    ),
  },
};
