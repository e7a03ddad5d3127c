// The guides that the interface names.

export const guideSlugs = [
  'compare-llm-cost-for-a-prompt',
  'reliable-json-models-for-agents',
  'translate-paper-pdf-without-breaking-equations',
  'best-model-for-research-agent',
  'generate-downloadable-pptx-with-mcp',
  'free-llm-api-for-agents-no-signup',
  'do-expensive-llms-perform-better',
  'run-open-source-ai-apps-without-install',
  'best-llm-for-academic-polishing',
  'toolbox-for-your-agent-zero-install',
  'transcribe-audio-url-via-mcp',
] as const;

export type GuideSlug = (typeof guideSlugs)[number];
