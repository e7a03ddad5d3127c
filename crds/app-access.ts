// What an app may call, and how it is offered: models with a budget, the paths of its operations, and its catalog entry.
import { z } from 'zod';
import { matches, withRules } from './rules.ts';

export const models = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'Whether the app can call models. If true, OPENAI_BASE_URL and OPENAI_API_KEY are set in the app, and its calls are charged to its budget. For an app that reads other variables, a value in run.env may contain ${{models.url}}, ${{models.origin}} (the same without its path) and ${{models.key}}.',
    ),
  dailyBudgetUsd: withRules(
    z.string().max(10),
    matches(
      '^(0|[1-9][0-9]{0,4})([.][0-9]{1,4})?$',
      'dailyBudgetUsd must be a decimal of USD with at most 4 decimal places, in quotes, like "2.50"',
    ),
  )
    .default('1')
    .describe(
      'Maximum cost in USD of the calls that the app makes to models per day (UTC). A call that could exceed the remaining budget is refused.',
    ),
});

/** A path at the app itself; never an address elsewhere. */
function pathAtApp(field: string): z.ZodString {
  return withRules(
    z.string().max(200),
    matches(
      String.raw`^/[\x21-\x7e]*$`,
      `${field} must start with / and have no space, like /${field === 'mcp' ? 'mcp' : 'openapi.json'}`,
    ),
  );
}

export const agents = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'Whether the operations of the app are offered to agents as tools at /mcp, named <name>.<operation>. The app can be called in either case.',
    ),
  openapi: pathAtApp('openapi')
    .default('/openapi.json')
    .describe('Path of the OpenAPI document of the app (3.1, 3.0 or 2.0; JSON or YAML).'),
  mcp: pathAtApp('mcp')
    .default('/mcp')
    .describe(
      'Path of the MCP endpoint of the app (streamable HTTP). If one responds there, its tools are used instead of the OpenAPI document.',
    ),
});

export const listing = z.strictObject({
  title: z.string().min(1).max(80).optional().describe('Display name. Defaults to the name of the HostedApp.'),
  description: z.string().max(500).optional().describe('One line that describes what the app does.'),
  category: z
    .enum(['chat', 'document', 'research', 'writing', 'slides', 'image', 'audio', 'code', 'other'])
    .default('other')
    .describe('Category in the catalog.'),
  upstream: withRules(
    z.string().max(512),
    matches(String.raw`^https?://[\x21-\x7e]+$`, 'upstream must be a URL that starts with https:// or http://'),
  )
    .optional()
    .describe('URL of the original project, if the repository is a fork.'),
});
