// Records of the catalog as the agreed shapes have them, with figures that exercise each kind of cell.
import type {
  BenchmarkDetail,
  BenchmarkEntry,
  GuideRecord,
  ModelView,
  ProjectDetail,
  RankList,
  Score,
  TelemetryWindow,
} from '../../../api/catalog/index.ts';
import { baseUrl } from '../api/sample.ts';

/** The use of an app that is not live yet. */
const unmeasured: TelemetryWindow = {
  uptime: null,
  visits: null,
  compute: null,
  requests: null,
  callers: null,
  latency_ms: { p50: null, p95: null },
  error_rate: null,
  model_cost_usd: null,
  model_calls: null,
  model_costs_pending: null,
  unmeasured: {},
};

export function createProject(slug: string, change: Partial<ProjectDetail> = {}): ProjectDetail {
  return {
    slug,
    title: `App ${slug}`,
    title_zh: null,
    description: 'Chats with any model, keeps your conversations, and reads your documents.',
    description_zh: '可与任意模型聊天，保存对话，并阅读你的文档。',
    category: 'chat',
    repo: `https://git.test/octo/${slug}`,
    source: `https://git.test/octo/${slug}`,
    stars: 45_678,
    stars_at: '2026-05-01T10:00:00.000Z',
    stars_reason: null,
    license: 'MIT',
    license_reason: null,
    state: 'live',
    state_reason: null,
    url: `https://${slug}.apps.test/`,
    since: '2026-05-02T08:30:00.000Z',
    page: `${baseUrl}/apps/${slug}`,
    machine_readable: `${baseUrl}/api/projects/${slug}`,
    status_url: `${baseUrl}/api/submit-status/octo/${slug}`,
    commit: '0123456789abcdef0123456789abcdef01234567',
    idle: null,
    telemetry: { '24h': unmeasured, '7d': unmeasured, '30d': unmeasured },
    benchmark: null,
    benchmark_reason: 'No benchmark has been run on this app.',
    ...change,
  };
}

const measured: TelemetryWindow = {
  uptime: 0.9991,
  visits: 4_321,
  compute: { cpu_seconds: 812.4, memory_gib_hours: 3.27 },
  requests: 12_345,
  callers: 87,
  latency_ms: { p50: 231, p95: 1_904 },
  error_rate: 0.004,
  model_cost_usd: 0.01234,
  model_calls: 412,
  model_costs_pending: 0,
  unmeasured: {},
};

export const benchEntries: readonly BenchmarkEntry[] = [
  {
    slug: 'chat-ui-1',
    title: 'Chat UI 1',
    verdict: 'delta-5.5 passes more than alpha-v4-flash and costs nine times as much for each success.',
    verdict_zh: 'delta-5.5 的通过率高于 alpha-v4-flash，但每次成功的费用是后者的九倍。',
    updated: '2026-05-03T12:00:00.000Z',
    runs: 75,
    models: 3,
    tasks: 5,
    page: `${baseUrl}/bench/chat-ui-1`,
    data_url: `${baseUrl}/api/bench/chat-ui-1/runs.jsonl`,
    csv_url: `${baseUrl}/api/bench/chat-ui-1/runs.csv`,
    license: 'CC BY 4.0',
  },
];

const tasks = ['extract-total', 'json-schema', 'summarize-thread', 'unit-conversion', 'date-arithmetic'];

function model(name: string, passed: number, cost: number, latency: number): ModelView {
  const rate = passed / 25;
  const quality = {
    passed,
    n: 25,
    rate,
    interval: [Math.max(0, rate - 0.17), Math.min(1, rate + 0.13)] as [number, number],
  };
  return {
    model: name,
    runs: 25,
    quality,
    delivered: { ...quality, passed: Math.max(0, passed - 1), rate: Math.max(0, passed - 1) / 25 },
    cost_per_run_usd: cost,
    cost_per_success_usd: passed === 0 ? null : cost / rate,
    cost_per_success_at_least_usd: passed === 0 ? cost * 25 : null,
    cost_unknown: 0,
    errors: {},
    latency_ms: { p50: latency, p95: latency * 2.7 },
    by_task: tasks.map((task, index) => ({
      task,
      quality: {
        passed: Math.min(5, Math.max(0, passed - index * 5)),
        n: 5,
        rate: Math.min(5, Math.max(0, passed - index * 5)) / 5,
        interval: [0.2, 0.9] as [number, number],
      },
      delivered: quality,
      cost_per_run_usd: cost,
      latency_ms: { p50: latency, p95: latency * 2 },
    })),
  };
}

const [firstEntry] = benchEntries;
if (firstEntry === undefined) throw new Error('there is no entry');

export const benchDetails: readonly BenchmarkDetail[] = [
  {
    ...firstEntry,
    app: {
      commit: '0123456789abcdef0123456789abcdef01234567',
      image: `registry.test/apps/chat-ui-1@sha256:${'a'.repeat(64)}`,
    },
    router: null,
    method: 'Each task runs through the live app with fresh instances; every registered run is published.',
    unfinished: { registered: 0, running: 0, interrupted: 0 },
    models: [
      model('alpha-v4-flash', 16, 0.000123, 840),
      model('beta-K3', 19, 0.00087, 1_320),
      model('gamma5.2', 18, 0.00081, 1_900),
      model('delta-5.5', 23, 0.0061, 3_100),
      model('zeta-opus-4-8', 0, 0.0123, 4_400),
    ],
    pairs: [
      {
        a: 'alpha-v4-flash',
        b: 'delta-5.5',
        difference: -0.28,
        interval: [-0.46, -0.09],
        tasks: 5,
        adjusted_p: 0.01,
        verdict: 'b',
        runs_to_decide: null,
      },
      {
        a: 'beta-K3',
        b: 'gamma5.2',
        difference: 0.04,
        interval: [-0.11, 0.19],
        tasks: 5,
        adjusted_p: 0.6,
        verdict: 'tie',
        runs_to_decide: 120,
      },
    ],
    tasks: tasks.map((slug) => ({
      slug,
      title: slug.replaceAll('-', ' '),
      title_zh: '示例任务',
      born: '2026-05-01',
      hash: slug,
    })),
    errors: { wrong: 21, timeout: 3, outage: 2, grader: 0 },
    campaigns: [],
  },
];

export const projectDetails: readonly ProjectDetail[] = [
  createProject('chat-ui-1', {
    title: 'Open WebUI',
    telemetry: {
      '24h': measured,
      '7d': { ...measured, uptime: null, unmeasured: { uptime: 'The gateway is not metered yet.' } },
      '30d': { ...measured, requests: 1_234_567 },
    },
    benchmark: firstEntry,
    benchmark_reason: null,
  }),
  createProject('pdf-translate', {
    title: 'PDF Translate',
    title_zh: 'PDF 翻译',
    category: 'document',
    state: 'not_deployed',
    state_reason: 'It is not deployed here: its base image is not reachable from this cluster.',
    url: null,
    status_url: null,
    commit: null,
    stars: null,
    stars_at: null,
    stars_reason: 'The forge did not answer.',
    license: null,
    license_reason: 'The repository has no license that is known.',
  }),
  createProject('slide-generator', { state: 'in_pipeline', state_reason: 'Building the image.', category: 'slides' }),
  createProject('academic-assistant', {
    state: 'rejected',
    state_reason: 'LICENSE: no license was found.',
    category: 'writing',
  }),
];

const score = (value: number): Score => ({
  value,
  interval: [Math.max(0, value - 0.1), Math.min(1, value + 0.08)],
  n: 40,
  detail: null,
  formula: `${baseUrl}/guides#cost`,
  reason: null,
});
const unscored = (reason: string): Score => ({
  value: null,
  interval: null,
  n: 0,
  detail: null,
  formula: `${baseUrl}/guides#cost`,
  reason,
});

export const rankAnswer: RankList = {
  weights: { quality: 5, cost: 2 },
  formulas: `${baseUrl}/api/rank#formulas`,
  apps: [
    {
      slug: 'chat-ui-1',
      page: `${baseUrl}/apps/chat-ui-1`,
      machine_readable: `${baseUrl}/api/projects/chat-ui-1`,
      title: 'Open WebUI',
      score: 0.812,
      score_reason: null,
      scores: {
        onboarding: { ...score(0.91), detail: { requests: 2, seconds: { p50: 1.24, p95: 4.1 } } },
        quality: score(0.78),
        cost: score(0.83),
        stability: score(0.999),
        retention: unscored('Fewer than ten callers came back yet.'),
      },
    },
    {
      slug: 'pdf-translate',
      page: `${baseUrl}/apps/pdf-translate`,
      machine_readable: `${baseUrl}/api/projects/pdf-translate`,
      title: 'PDF Translate',
      score: null,
      score_reason: 'No benchmark has been run.',
      scores: {
        onboarding: unscored('The app is not live.'),
        quality: unscored('No benchmark has been run.'),
        cost: unscored('No benchmark has been run.'),
        stability: unscored('The app is not live.'),
        retention: unscored('The app is not live.'),
      },
    },
  ],
  total: 2,
  next: null,
};

export const guideRecords: readonly GuideRecord[] = [
  {
    slug: 'compare-llm-cost-for-a-prompt',
    question: 'How can I compare what a prompt costs on several models?',
    title_zh: '如何比较同一个提示词在不同模型上的费用？',
    answer:
      'Send the prompt once to POST /api/compare. Each answer carries what the router billed for it, so the comparison rests on bills and not on list prices.',
    answer_zh: '把提示词发送一次到 POST /api/compare。每个答案都附有路由的实际账单，因此比较的是账单，而不是标价。',
    updated: '2026-05-04T09:00:00.000Z',
    method: 'Live app tasks are run repeatedly; pass or fail, billed USD cost and latency are recorded.',
    tool: {
      name: 'compare_models',
      description: 'Sends one prompt to several models at once.',
      arguments_example: { prompt: "What's the capital of France?", models: ['alpha-v4-flash', 'beta-K3'] },
      mcp_endpoint: `${baseUrl}/mcp`,
      openapi: `${baseUrl}/openapi.json`,
    },
    steps: [
      'Choose up to five models from GET /api/models.',
      'Send POST /api/compare with the prompt.',
      'Read cost_usd of each result.',
    ],
    evidence: [
      {
        slug: 'chat-ui-1',
        available: true,
        url: `${baseUrl}/bench/chat-ui-1`,
        data_url: `${baseUrl}/api/bench/chat-ui-1`,
        updated: '2026-05-03T12:00:00.000Z',
        runs_per_task: 5,
        models_tested: 5,
        models_with_complete_pass_rate: 4,
        best_measured_value: { model: 'alpha-v4-flash', usd_per_run: 0.000123 },
        failed_all_tasks: ['zeta-opus-4-8'],
        not_measured: [],
      },
    ],
    page: `${baseUrl}/guides/compare-llm-cost-for-a-prompt`,
    machine_readable: `${baseUrl}/api/agent-guides/compare-llm-cost-for-a-prompt`,
    license: 'CC BY 4.0',
  },
  {
    slug: 'free-llm-api-for-agents-no-signup',
    question: 'Is there a model API that an agent can call without signing up?',
    title_zh: '有没有无需注册、智能体可以直接调用的模型接口？',
    answer: 'Yes. POST /api/ask answers without a key, within a free daily quota.',
    answer_zh: '有。POST /api/ask 无需密钥即可使用，每天有免费额度。',
    updated: '2026-05-04T09:00:00.000Z',
    method: 'Live app tasks are run repeatedly.',
    tool: {
      name: 'ask_model',
      description: 'Asks a model.',
      arguments_example: { prompt: 'Hello' },
      mcp_endpoint: `${baseUrl}/mcp`,
      openapi: `${baseUrl}/openapi.json`,
    },
    steps: ['Send POST /api/ask.'],
    evidence: [],
    page: `${baseUrl}/guides/free-llm-api-for-agents-no-signup`,
    machine_readable: `${baseUrl}/api/agent-guides/free-llm-api-for-agents-no-signup`,
    license: 'CC BY 4.0',
  },
];
