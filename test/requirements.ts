// What the interface requires, as data. A test says which of these it shows by `[spec <id> …]` in its title;
// requirements.test.ts fails for one that none shows.

export interface Requirement {
  readonly id: string;
  /** Section of the interface specification. */
  readonly section: string;
  readonly behaviour: string;
}

const requirement = (id: string, section: string, behaviour: string): Requirement => ({ id, section, behaviour });

export const requirements: readonly Requirement[] = [
  requirement(
    'service.metered',
    '1',
    'Every answer of ask and compare carries its metered cost in USD and its latency in ms; the cost is read from billing, not estimated from list prices.',
  ),
  requirement(
    'service.pipeline',
    '1',
    'A submitted repository is reviewed, containerized and deployed on its own subdomain over HTTPS.',
  ),
  requirement('service.exposed', '1', 'A hosted app is exposed to agents once it is live.'),
  requirement('service.share', '1', "Of what a use is charged, the author's share is accrued."),
  requirement('service.openapi', '1', '/openapi.json describes every endpoint.'),
  requirement('service.agent-card', '1', '/.well-known/agent-card.json names an agent whose endpoint answers.'),
  requirement('service.llms-txt', '1', '/llms.txt says what can be done here.'),
  requirement('service.capabilities', '1', '/agent-capabilities.json lists endpoints, tools and apps.'),
  requirement('service.free-quota', '1', 'Anonymous callers use a free quota.'),

  requirement('submit.repo', '2.1', 'repo is required: owner/name or a full URL.'),
  requirement('submit.contact', '2.1', 'contact is an optional string.'),
  requirement('submit.note', '2.1', 'note is an optional one-line description.'),
  requirement('submit.free-form', '2.1', 'Submission and submit-status are answered with a JSON object.'),

  requirement('compare.prompt', '2.2', 'prompt is required, a string.'),
  requirement('compare.at-most-5', '2.2', 'models has at most 5 items.'),
  requirement('compare.spread-of-3', '2.2', 'When models is omitted the server picks a spread of 3.'),
  requirement('compare.system', '2.2', 'system applies to every model.'),
  requirement('compare.results', '2.3', 'results has one entry per model with model, answer, cost_usd and latency_ms.'),
  requirement('compare.error', '2.3', 'A model that failed has error in its entry, and the call still answers 200.'),
  requirement('compare.summary', '2.3', 'summary has cheapest, fastest and total_cost_usd.'),
  requirement(
    'compare.cost-spread',
    '2.3',
    'summary.cost_spread has the form "<ratio>x between cheapest and priciest".',
  ),

  requirement('ask.prompt', '2.4', 'prompt is required.'),
  requirement('ask.default-model', '2.4', 'When model is omitted a default model is used.'),
  requirement('ask.model', '2.4', 'model is one of the enumeration; any other is refused.'),
  requirement('ask.system', '2.4', 'system is an optional system prompt.'),
  requirement('ask.max-tokens', '2.4', 'max_tokens caps the output.'),
  requirement('ask.answer', '2.4', 'The answer comes with metered cost and latency.'),

  requirement('models.entry', '2.5', 'GET /api/models answers an array of id, label, tier, in_per_m and out_per_m.'),
  requirement('models.tier', '2.5', 'tier is free or premium.'),
  requirement('models.ids', '2.6', 'The model identifiers are the ten of the enumeration.'),

  requirement('projects.slugs', '2.7', 'The slugs of hosted apps are the eight of the enumeration.'),
  requirement(
    'projects.entry',
    '2.7',
    'Entries carry upstream repository, star count and category; the detail adds telemetry and benchmark.',
  ),
  requirement(
    'bench.records',
    '2.8',
    'A benchmark has per model and task pass rate, cost and latency; the index has a verdict each.',
  ),
  requirement('rank.scores', '2.8', 'The ranking scores apps on onboarding, quality, cost, stability and retention.'),
  requirement(
    'guides.record',
    '2.9',
    'A guide has slug, question, answer, method, tool, steps, evidence, licence and the other fields of its record.',
  ),
  requirement('guides.slugs', '2.9', 'The guides named by the interface exist.'),

  requirement('status.live', '3', 'live: hosted and running.'),
  requirement('status.in-pipeline', '3', 'in_pipeline: being reviewed, containerized or deployed.'),
  requirement('status.rejected', '3', 'rejected: with a reason.'),

  requirement(
    'endpoint.submit',
    '4',
    'POST /api/submit answers 200 when queued; the outcome is polled at submit-status.',
  ),
  requirement('endpoint.submit-status', '4', 'GET /api/submit-status/{owner}/{name} answers 200 with the status.'),
  requirement('endpoint.ask', '4', 'POST /api/ask answers 200, or 402 when the quota is exhausted.'),
  requirement('endpoint.compare', '4', 'POST /api/compare answers 200, or 402 when the quota is exhausted.'),
  requirement('endpoint.models', '4', 'GET /api/models answers 200.'),
  requirement('endpoint.json', '4', 'Bodies are application/json; others are refused.'),
  requirement(
    'compare.parallel',
    '4',
    'The models are asked in parallel: the call lasts as long as its slowest model.',
  ),
  requirement('endpoint.projects', '4', 'GET /api/projects and /api/projects/{slug}; 404 for no such app.'),
  requirement('endpoint.bench', '4', 'GET /api/bench and /api/bench/{slug}; 404 for no benchmark.'),
  requirement(
    'endpoint.agent-guides',
    '4',
    'GET /api/agent-guides and /api/agent-guides/{slug}; 404 for no such guide.',
  ),
  requirement('endpoint.rank', '4', 'GET /api/rank.'),

  requirement(
    'tools.open',
    '4',
    'GET /t/<tool> takes query parameters and answers JSON to any HTTP client, without signup or key.',
  ),
  requirement('tools.count', '4', '22 tools are exposed on this one endpoint, the named ones among them.'),
  requirement('tools.cost', '4', 'Every response of a tool reports the exact cost of the call.'),
  requirement('tools.raw', '4', 'raw=1 answers with the bytes of the artifact.'),
  requirement('tools.mcp', '4', '/mcp has the same capabilities.'),
  requirement('tools.session', '4', 'The query parameter s is taken with every tool.'),
  requirement('tools.web-search', '4', 'web_search takes query and answers titles, URLs and snippets.'),
  requirement('tools.compare-models', '4', 'compare_models behaves as POST /api/compare does.'),
  requirement('tools.convert-to-pdf', '4', 'convert_to_pdf makes a PDF, which raw=1 answers with.'),
  requirement('tools.screenshot', '4', 'screenshot, one of the 22, answers with a picture of a page.'),
  requirement('tools.list-apps', '4', 'list_apps lists the hosted apps.'),

  requirement(
    'transcribe.url',
    '4',
    'transcribe_audio takes url, the public address of a recording, fetches it and transcribes it.',
  ),
  requirement('transcribe.language', '4', 'transcribe_audio takes language as an optional hint, a short code.'),
  requirement('transcribe.answer', '4', 'transcribe_audio answers plain text and the detected language.'),

  requirement('auth.optional', '5', 'Every endpoint takes no credentials or a bearer credential.'),
  requirement('auth.anonymous', '5', 'Anonymous callers draw on a free quota.'),
  requirement('auth.key', '5', 'Authorization: Bearer sk-… of the model router removes the free-quota limit.'),
  requirement('auth.premium', '5', "Models of tier premium need the caller's own key; those of tier free do not."),
  requirement('tools.key', '5', 'A key lifts the limits of tools without changing a call.'),
  requirement('tools.memory', '5', 'With a key, memory is the same from every machine.'),
  requirement('events.polling', '6', 'Submission outcomes are obtained by polling submit-status.'),

  requirement('errors.402', '7', '402 explains how to go on with a key of one’s own.'),
  requirement(
    'tools.low-quota',
    '7',
    'When the free quota runs low, the answer of a tool says how to go on with a key.',
  ),
  requirement('errors.404', '7', '404 for an app, a benchmark or a guide that is not there.'),
  requirement('errors.shape', '7', 'An invalid body is refused in a form that names what is wrong and what to send.'),

  requirement('limits.quota', '8', 'The free quota holds whatever comes at once.'),
  requirement('limits.audio-size', '8', 'Audio is taken up to about 15 MB.'),
  requirement('limits.audio-formats', '8', 'Audio is taken as mp3, wav, m4a and ogg.'),
  requirement('limits.audio-long', '8', 'For long recordings the caller is told to split the file first.'),
  requirement('version.openapi', '9', 'The description is OpenAPI 3.1.0; the version of the interface is 1.1.0.'),
  requirement('version.paths', '9', 'Paths carry no version segment.'),
];
